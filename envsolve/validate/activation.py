"""What activating an environment sets: where libraries look for their files, and what its packages want.

An environment is proven as its user gets it, so one that is not active is activated for its probes alone: its programs
come first on PATH, and of a conda prefix the variables (conda-meta/state) and scripts (etc/conda/activate.d) count.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from envsolve.errors import Hint, OutsideError
from envsolve.validate.inventory import Inventory

IS_WINDOWS = os.name == "nt"
SCRIPTS = "etc/conda/activate.d"
_TIMEOUT = 30.0
"""Seconds for the scripts of all packages together."""
_SOURCE_ALL = """
for script in "$CONDA_PREFIX"/etc/conda/activate.d/*.sh; do . "$script"; done >&2
exec "$0" -c 'import json, os, sys; json.dump(dict(os.environ), sys.stdout)'
"""


def activated(environ: Mapping[str, str], inventory: Inventory) -> dict[str, str]:
    """``environ`` as activating the environment would leave it; of an active one as it is.

    Raises OutsideError where a script of a conda prefix fails.
    """
    variable = "CONDA_PREFIX" if inventory.is_conda else "VIRTUAL_ENV"
    prefix = inventory.prefix
    if not inventory.owns_prefix or (environ.get(variable) and Path(environ[variable]) == prefix):
        return dict(environ)
    changed = {**environ, variable: os.fspath(prefix)}
    changed.pop("VIRTUAL_ENV" if inventory.is_conda else "CONDA_PREFIX", None)
    programs = [os.fspath(directory) for directory in _program_directories(prefix, conda=inventory.is_conda)]
    others = [entry for entry in environ.get("PATH", "").split(os.pathsep) if entry and entry not in programs]
    changed["PATH"] = os.pathsep.join([*programs, *others])
    return _with_scripts({**changed, **_variables(prefix)}, inventory) if inventory.is_conda else changed


def _program_directories(prefix: Path, *, conda: bool) -> tuple[Path, ...]:
    """What activation puts in front of PATH; on Windows conda's DLLs are found through it (conda's own activator)."""
    if not IS_WINDOWS:
        return (prefix / "bin",)
    if not conda:
        return (prefix / "Scripts",)
    return (prefix, *(prefix / "Library" / name for name in ("mingw-w64/bin", "usr/bin", "bin")), prefix / "Scripts")


def _variables(prefix: Path) -> dict[str, str]:
    """The variables of ``conda env config vars``; none where the file is not there or not as conda writes it."""
    try:
        state = json.loads((prefix / "conda-meta/state").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found = state.get("env_vars") if isinstance(state, dict) else None
    return {name: value for name, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}


def _with_scripts(environ: dict[str, str], inventory: Inventory) -> dict[str, str]:
    """What the scripts of the packages leave, run as conda's shells run them; those for cmd.exe are not run."""
    if IS_WINDOWS or not any((inventory.prefix / SCRIPTS).glob("*.sh")):
        return environ
    command = ["sh", "-c", _SOURCE_ALL, os.fspath(inventory.executable)]
    hint = Hint("activate the environment, and validate it from there")
    try:
        done = subprocess.run(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT,
        )
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        message = f"the activation scripts in {inventory.prefix / SCRIPTS} do not run through"
        raise OutsideError("activation-failed", message, (str(error),), (hint,)) from error
    return {name: value for name, value in found.items() if name not in ("_", "SHLVL", "PWD", "OLDPWD")}
