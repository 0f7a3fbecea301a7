"""Whether the environment of an interpreter may be changed: it is not the system's, and this user may write to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from envsolve.boundary.answers import query_python
from envsolve.errors import Hint, UsageError
from envsolve.host.containers import is_container

_ALLOWED_BY = ("PIP_BREAK_SYSTEM_PACKAGES", "UV_BREAK_SYSTEM_PACKAGES")


def require_changeable(python: Path, environ: Mapping[str, str], *, is_systems: bool) -> None:
    """Raise UsageError for a Python that the system manages, and if this user may not write to it.

    ``is_systems`` says that it belongs to no separate environment (PEP 668). In a container only the author of the
    image manages it; elsewhere pip's own variable allows the change.
    """
    paths = "[sysconfig.get_path('stdlib'), sysconfig.get_path('purelib')]"
    library, packages = (Path(str(it)) for it in _texts(query_python(python, paths, environ)))
    is_allowed = any(environ.get(name, "0") not in ("", "0", "false") for name in _ALLOWED_BY)
    is_managed = is_systems and os.path.isfile(library / "EXTERNALLY-MANAGED")  # noqa: PTH113 - it never raises
    if is_managed and not is_allowed and not is_container(Path(os.sep)):
        raise UsageError(
            "externally-managed",
            f"{python} is managed by the system's package manager",
            hints=(
                Hint("make an environment that sees its packages", "python3 -m venv --system-site-packages .venv"),
                Hint(f"or set {_ALLOWED_BY[0]}=1 to change it anyway, as pip requires it"),
            ),
        )
    there = next((it for it in (packages, *packages.parents) if it.is_dir()), packages)
    if not os.access(there, os.W_OK):
        raise UsageError("not-writable", f"{there} is not writable for this user", hints=(Hint("check its owner"),))


def _texts(answer: object) -> list[object]:
    return answer if isinstance(answer, list) else []
