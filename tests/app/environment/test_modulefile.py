"""Module files, read by the real Environment Modules and Lmod if these are installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envsolve.app.environment.modulefile import MADE, Description, modulefile, require_own
from envsolve.errors import OutsideError, UsageError
from envsolve.lockfile.lock import LockedFramework, Stack

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="clusters run Linux")

STACK = Stack((LockedFramework("pytorch", "2.14.0", "torch", "pypi", "cu126"),), ("8.0", "9.0"), "525.60.13", "12.6")
SCRIPT = """\
export XLA_FLAGS="--xla_gpu_cuda_data_dir=$CONDA_PREFIX ${XLA_FLAGS-}"
export ENVSOLVE_OLD_LD_LIBRARY_PATH="$LD_LIBRARY_PATH"
export LD_LIBRARY_PATH="$CONDA_PREFIX/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
"""
PRINTED = "import json, os, sys; print(json.dumps([sys.prefix, dict(os.environ)]))"
_LIBRARIES = Path("/usr/lib")
MODULES = os.environ.get("MODULES_CMD") or next(map(str, _LIBRARIES.glob("*/modulecmd.tcl")), "")
LMOD = os.environ.get("LMOD_CMD") or next(map(str, Path("/usr/share/lmod/lmod/libexec").glob("lmod")), "")


def environment(prefix: Path, *, conda: bool = False) -> Description:
    """An environment of the Python of the tests; with ``conda`` one that looks like conda's."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    if conda:
        (prefix / "conda-meta").mkdir()
        (prefix / "conda-meta" / "state").write_text('{"env_vars": {"ODD": "a$b [c] {"}}')
        (prefix / "etc" / "conda" / "activate.d").mkdir(parents=True)
        (prefix / "etc" / "conda" / "activate.d" / "own.sh").write_text(SCRIPT)
    return Description(prefix, prefix / "bin" / "python", STACK)


def test_it_states_the_facts_of_the_lock(tmp_path: Path) -> None:
    about = environment(tmp_path / "my env")
    python = ".".join(map(str, sys.version_info[:3]))
    escaped = str(tmp_path / "my env").replace(" ", r"\ ")
    assert modulefile(about, tmp_path / "torch" / "2.14", os.environ).splitlines() == [
        "#%Module1.0",
        MADE,
        r"proc ModulesHelp {} { puts stderr To\ test\ it:\ envsolve\ validate\ --prefix\ "
        + str(tmp_path / "my env").replace(" ", r"\ ")
        + " }",
        rf"module-whatis pytorch\ 2.14.0\ \(pypi,\ cu126\),\ Python\ {python}",
        r"module-whatis NVIDIA\ driver\ 525.60.13\ or\ newer",
        r"module-whatis compute\ capability\ 8.0,\ 9.0",
        "conflict torch",
        f"prepend-path PATH {escaped}/bin",
        f"setenv VIRTUAL_ENV {escaped}",
        "unsetenv PYTHONHOME",
    ]


def test_a_lock_of_another_tool_has_no_driver(tmp_path: Path) -> None:
    text = modulefile(environment(tmp_path / "env")._replace(stack=None), tmp_path / "a" / "1", os.environ)
    assert [it for it in text.splitlines() if it.startswith("module-whatis")] == [
        rf"module-whatis Python\ {'.'.join(map(str, sys.version_info[:3]))}"
    ]


@pytest.mark.thorough
def test_an_activation_script_that_fails_is_named(tmp_path: Path) -> None:
    about = environment(tmp_path / "env", conda=True)
    (about.prefix / "etc" / "conda" / "activate.d" / "own.sh").write_text("exit 3\n")
    with pytest.raises(OutsideError) as caught:
        modulefile(about, tmp_path / "a" / "1", os.environ)
    assert caught.value.code == "activation-failed"
    assert "exit code 3" in caught.value.message


@pytest.mark.thorough
@pytest.mark.parametrize("conda", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        pytest.param([MODULES], marks=pytest.mark.skipif(not MODULES, reason="needs environment-modules")),
        pytest.param([LMOD], marks=pytest.mark.skipif(not LMOD, reason="needs lmod")),
    ],
    ids=["modules", "lmod"],
)
def test_a_module_system_loads_and_unloads_it(command: list[str], conda: bool, tmp_path: Path) -> None:
    about = environment(tmp_path / "my {env", conda=conda)
    (tmp_path / "modules" / "torch").mkdir(parents=True)
    file = tmp_path / "modules" / "torch" / "2.14"
    file.write_text(modulefile(about, file, os.environ))
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    environ = {"PATH": path, "MODULEPATH": str(tmp_path / "modules"), "LD_LIBRARY_PATH": "/opt/site/lib"}

    def after(*words: tuple[str, ...]) -> list[tuple[str, dict[str, str]]]:
        """The Python and the variables after each call of the module system, in one shell."""
        lines = []
        for it in words:
            lines += [f'eval "$({" ".join([*command, "bash", *it])})"', f"python3 -c '{PRINTED}'"]
        done = subprocess.run(
            ["bash", "-c", "\n".join(lines)], env=environ, text=True, capture_output=True, check=True, timeout=60
        )
        return [tuple(json.loads(line)) for line in done.stdout.splitlines()]

    (loaded, inside), (_, left) = after(("load", "torch/2.14"), ("unload", "torch/2.14"))
    assert loaded == str(about.prefix)
    assert inside["CONDA_PREFIX" if conda else "VIRTUAL_ENV"] == str(about.prefix)
    assert inside["PATH"] == f"{about.prefix}/bin:{path}"
    if conda:
        assert inside["LD_LIBRARY_PATH"] == f"{about.prefix}/lib:/opt/site/lib"
        assert inside["ODD"] == "a$b [c] {"
        assert inside["XLA_FLAGS"].strip() == f"--xla_gpu_cuda_data_dir={about.prefix}"
    assert {left.get(it) for it in ("CONDA_PREFIX", "VIRTUAL_ENV", "ODD", "XLA_FLAGS")} == {None}
    assert (left["PATH"], left["LD_LIBRARY_PATH"]) == (path, "/opt/site/lib")


def test_a_file_of_another_tool_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "2.14"
    require_own(file)
    file.write_text(f"#%Module1.0\n{MADE}\n")
    require_own(file)
    file.write_text("#%Module1.0\nsetenv A b\n")
    for it, code in ((file, "output-not-ours"), (tmp_path / "none" / "a", "output-not-writable")):
        with pytest.raises(UsageError) as caught:
            require_own(it)
        assert caught.value.code == code
