"""What activation of a conda environment sets, if something in it needs that; nothing else is ever changed.

Variables of an environment.yml are stored like by ``conda env config vars set``, which conda, mamba and pixi read. A
library path is set for wheels without CUDA of their own, which find conda's only there. The directory of libdevice is
set for TensorFlow, whose XLA does not find it in a conda environment (conda-forge/tensorflow-feedstock, issues 296 and
420; the fix is that of TensorFlow's own guide for 2.11 and 2.12).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

_STATE = Path("conda-meta", "state")
_LIBDEVICE = "libdevice.10.bc"
_ROOTS = (".", "targets/*", "lib")
"""The places of ``nvvm/libdevice`` in a prefix: those of CUDA 12 packages, and that of the guide."""
_ACTIVATE = """\
# Made by envsolve: {reason}.
export ENVSOLVE_OLD_{name}="${{{name}-}}"
export {name}="{value}${{{name}:+{separator}${name}}}"
"""
_DEACTIVATE = """\
export {name}="$ENVSOLVE_OLD_{name}"
[ -n "${name}" ] || unset {name}
unset ENVSOLVE_OLD_{name}
"""


def write_variables(prefix: Path, variables: Sequence[tuple[str, str]]) -> None:
    """Set variables on activation. Raises OSError."""
    if variables:
        state = {"env_vars": {name: str(value) for name, value in variables}}
        (prefix / _STATE).write_text(json.dumps(state, indent=2, ensure_ascii=False) + "\n", "utf-8")


def forget(prefix: Path) -> None:
    """Remove the scripts that an earlier lock needed. Raises OSError."""
    for path in prefix.glob("etc/conda/*activate.d/envsolve-*.sh"):
        path.unlink()


def write_library_path(prefix: Path) -> None:
    """Add the environment's libraries to the loader's path on activation. Raises OSError."""
    reason = "a wheel in this environment looks for its CUDA libraries on the library path only"
    _write(prefix, "library-path", "LD_LIBRARY_PATH", "$CONDA_PREFIX/lib", ":", reason)


def write_xla_flags(prefix: Path) -> bool:
    """Let XLA find the environment's libdevice on activation; False if it has none.

    That of the package cudatoolkit is where XLA does not look, and gets a link. Raises OSError.
    """
    old = prefix / "lib" / _LIBDEVICE
    if _root(prefix) is None and old.is_file():
        link = prefix / "lib" / "nvvm" / "libdevice" / _LIBDEVICE
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(Path("..", "..", _LIBDEVICE))
    root = _root(prefix)
    if root is None:
        return False
    below = root.relative_to(prefix)
    place = "$CONDA_PREFIX" if below == Path() else f"$CONDA_PREFIX/{below.as_posix()}"
    reason = "XLA, which compiles kernels, looks for libdevice in no conda environment"
    _write(prefix, "xla-flags", "XLA_FLAGS", f"--xla_gpu_cuda_data_dir={place}", " ", reason)
    return True


def _root(prefix: Path) -> Path | None:
    """The directory above ``nvvm/libdevice``, which XLA needs."""
    found = (path for root in _ROOTS for path in sorted(prefix.glob(f"{root}/nvvm/libdevice/{_LIBDEVICE}")))
    return next((path.parents[2] for path in found), None)


def _write(prefix: Path, stem: str, name: str, value: str, separator: str, reason: str) -> None:
    for folder, text in (("activate.d", _ACTIVATE), ("deactivate.d", _DEACTIVATE)):
        path = prefix / "etc" / "conda" / folder / f"envsolve-{stem}.sh"
        path.parent.mkdir(parents=True, exist_ok=True)
        filled = text.format(name=name, value=value, separator=separator, reason=reason)
        path.write_text(filled, "utf-8", newline="\n")
