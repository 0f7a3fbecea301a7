"""``create --modulefile``: a module file for an environment that both Environment Modules and Lmod can read.

It is Tcl, which Lmod translates, and uses only commands that both have (modules.readthedocs.io, modulefile;
lmod.readthedocs.io, "TCL modulefiles and Lmod"). Not every Lmod has ``source-sh``, which would run conda's activation
scripts. So the scripts run here, and the file sets the resulting variables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError, read_text
from envsolve.errors import Hint, OutsideError, UsageError
from envsolve.lockfile.lock import Stack
from envsolve.validation.activation import activated
from envsolve.validation.child import Children
from envsolve.validation.environment import take_inventory

MADE = "# Made by envsolve create, which overwrites this file."
_MAGIC = "#%Module1.0"
_LONGEST = 1 << 20
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "USER")
"""Variables that activation scripts may read and that no module sets."""
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_BACKUPS = ("CONDA_BACKUP_", "ENVSOLVE_OLD_")
"""Prefixes of variables in which scripts save values for deactivation; the module system does so itself."""


class Description(NamedTuple):
    """The contents of a module file. ``stack`` is None if the lock has none."""

    prefix: Path
    python: Path
    stack: Stack | None


def require_own(file: Path) -> None:
    """Raise UsageError for a file that someone else wrote, or in a directory that does not exist."""
    try:
        text = read_text(file, _LONGEST)
    except FileError as error:
        raise UsageError("output-not-writable", f"{file} cannot be overwritten: {error.reason}") from None
    if text is not None and MADE not in text.splitlines()[:2]:
        hint = Hint("choose another file, or remove it first")
        raise UsageError("output-not-ours", f"{file} was not made by envsolve create", hints=(hint,))
    if not file.absolute().parent.is_dir():
        raise UsageError("output-not-writable", f"{file} cannot be written: its directory does not exist")


def modulefile(about: Description, file: Path, environ: Mapping[str, str]) -> str:
    """The content of ``file``. Raises OutsideError if the environment or its activation scripts do not run."""
    plain = {"PATH": _SYSTEM_PATH, **{name: environ[name] for name in _PASSED_ON if name in environ}}
    with Children() as children:
        inventory = take_inventory(about.python, environ, children)
        found = activated(plain, inventory)
    if found.findings:
        finding = found.findings[0]
        raise OutsideError("activation-failed", f"{finding.title}: {finding.cause}")
    lines = (
        _MAGIC,
        MADE,
        f"proc ModulesHelp {{}} {{ puts stderr {_word(f'To test it: envsolve validate --prefix {about.prefix}')} }}",
        *(f"module-whatis {_word(it)}" for it in _whatis(about, inventory.python)),
        f"conflict {_word(file.absolute().parent.name)}",
        *_settings(plain, found.environ),
        "unsetenv PYTHONHOME",
    )
    return "".join(f"{line}\n" for line in lines)


def _whatis(about: Description, python: str) -> Iterator[str]:
    stack = about.stack
    names = (
        [] if stack is None else [f"{it.framework} {it.version} ({it.source}, {it.build})" for it in stack.frameworks]
    )
    yield ", ".join([*names, f"Python {python}"])
    if stack is not None and stack.minimum_driver is not None:
        yield f"NVIDIA driver {stack.minimum_driver} or newer"
    if stack is not None and stack.capabilities:
        yield f"compute capability {', '.join(stack.capabilities)}"


def _settings(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """The commands that change ``before`` to ``after``: they prepend directories or set values."""
    for name, value in sorted(after.items()):
        if value in ("", before.get(name)) or name.startswith(_BACKUPS):
            continue
        if not name.endswith("PATH"):
            yield f"setenv {name} {_word(value)}"
            continue
        there = before.get(name, "").split(os.pathsep)
        added = dict.fromkeys(it for it in value.split(os.pathsep) if it and it not in there)
        yield from (f"prepend-path {name} {_word(it)}" for it in reversed(added))


def _word(text: str) -> str:
    """``text`` as a single Tcl word, whatever its characters."""
    escaped = re.sub(r"([^\w./:,=@+-])", r"\\\1", text).replace("\\\n", "\\n")
    return escaped or "{}"
