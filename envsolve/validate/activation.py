"""What activating an environment sets: where libraries look for their files, and what its packages want.

An environment is proven as its user gets it, so one that is not active is activated for its probes alone: its programs
come first on PATH, and of a conda prefix the variables (conda-meta/state) and scripts (etc/conda/activate.d) count.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.programs import find_program, run_program
from envsolve.validate.inventory import Inventory

IS_WINDOWS = os.name == "nt"
SCRIPTS = "etc/conda/activate.d"
_TIMEOUT = 30.0
"""Seconds for the scripts of all packages together."""
_SOURCE_ALL = """
for script in "$CONDA_PREFIX"/etc/conda/activate.d/*.sh; do . "$script"; done >/dev/null 2>&1 </dev/null
exec "$0" -I -c 'import json, os, sys; json.dump(dict(os.environ), sys.stdout)'
"""
_OF_THE_SHELL = ("_", "SHLVL", "PWD", "OLDPWD")
_SEARCHED = ("PYTHONPATH", "LD_LIBRARY_PATH")


class Activation(NamedTuple):
    """The variables that programs of the environment get, and what could not be done for them."""

    environ: dict[str, str]
    notes: tuple[str, ...] = ()


def activated(environ: Mapping[str, str], inventory: Inventory) -> Activation:
    """``environ`` as activating the environment would leave it; of an active one as it is.

    Directories that are told from the current one are told in full, since probes run elsewhere.
    """
    found = {**environ, **{name: _in_full(environ[name]) for name in _SEARCHED if environ.get(name)}}
    variable = "CONDA_PREFIX" if inventory.is_conda else "VIRTUAL_ENV"
    prefix = inventory.prefix
    if not inventory.owns_prefix or (environ.get(variable) and Path(environ[variable]) == prefix):
        return Activation(found)
    found[variable] = os.fspath(prefix)
    found.pop("VIRTUAL_ENV" if inventory.is_conda else "CONDA_PREFIX", None)
    programs = [os.fspath(directory) for directory in _program_directories(prefix, conda=inventory.is_conda)]
    others = [entry for entry in environ.get("PATH", "").split(os.pathsep) if entry and entry not in programs]
    found["PATH"] = os.pathsep.join([*programs, *others])
    return _with_scripts({**found, **_variables(prefix)}, inventory) if inventory.is_conda else Activation(found)


def _in_full(path: str) -> str:
    """A list of directories without relative entries; an empty one is the current directory (ld.so(8), sys.path)."""
    return os.pathsep.join(os.fspath(Path(entry).absolute()) for entry in path.split(os.pathsep))


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


def _with_scripts(environ: dict[str, str], inventory: Inventory) -> Activation:
    """What the scripts of the packages leave, run by bash, which they are written for. Those for cmd.exe are not."""
    if IS_WINDOWS or not any((inventory.prefix / SCRIPTS).glob("*.sh")):
        return Activation(environ)
    shell = find_program("bash", os.environ) or find_program("sh", os.environ) or "/bin/sh"
    try:
        done = run_program([shell, "-c", _SOURCE_ALL, os.fspath(inventory.executable)], environ, _TIMEOUT)
        left = json.loads(done.output)
    except (OSError, ValueError):
        why = f"the scripts in {inventory.prefix / SCRIPTS} do not run through"
        return Activation(environ, (f"{why}: the environment is looked at without what they set",))
    return Activation({name: value for name, value in left.items() if name not in _OF_THE_SHELL})
