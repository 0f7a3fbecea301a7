"""The Python of a venv: an installed CPython of the versions that the lock is for.

Searched in order: 1. uv, which knows its own and those on PATH 2. python3.X, python3 and python on PATH, and the Python
of envsolve itself 3. uv again, which downloads one if its settings and --offline allow it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.boundary.answers import PATIENCE, query_python
from envsolve.boundary.programs import find_program, is_system_text, run_program
from envsolve.create.child import run
from envsolve.errors import Hint, OutsideError
from envsolve.model.request import versions_text
from envsolve.model.requester import Requester

_FACTS = (
    "[list(sys.version_info[:3]), sys.implementation.name, sys.executable, "
    "bool(sysconfig.get_config_var('Py_GIL_DISABLED')), sys.version_info[3]]"
)
_MINOR = re.compile(r"==(3\.\d+)(?:\.\*|\.\d+)?\Z")
_ANY = SpecifierSet(">=3.9")
_OLDEST, _NEWEST = 6, 30
"""Minor versions of CPython 3 that are searched by name."""
_UV = ("--no-config", "--no-project", "--color", "never")


class Found(NamedTuple):
    """A Python: its program, and its version; "" if uv is to find or download it."""

    program: str
    version: str = ""


def find_python(
    versions: SpecifierSet | None,
    uv: str | None,
    environ: Mapping[str, str],
    *,
    offline: bool,
    project: str = "",
) -> Found:
    """A Python of ``versions``, None for any; ``project`` is the file that requests the lock, if any.

    Raises OutsideError ``python-not-found`` if there is none.
    """
    wanted = versions or _ANY
    if uv is not None:
        found = _by_uv(uv, wanted, environ)
        if found is not None:
            return found
    for program in dict.fromkeys(_candidates(wanted, environ)):
        found = _query(program, wanted, environ)
        if found is not None:
            return found
    if uv is not None and not offline:
        ran = run([uv, "python", "install", "--no-bin", "--no-config", "--color", "never", _for_uv(wanted)], environ)
        found = _by_uv(uv, wanted, environ) if ran.code == 0 else None
        if found is not None:
            return found
    raise _not_found(wanted, uv, project)


def pythons_here(environ: Mapping[str, str], versions: SpecifierSet | None) -> tuple[str, ...]:
    """The minor versions of Python that :func:`find_python` finds without uv, as ``3.12``, the newest first."""
    wanted = versions or _ANY
    programs = dict.fromkeys(_candidates(wanted, environ))
    found = {Version(it.version) for program in programs if (it := _query(program, wanted, environ)) is not None}
    return tuple(dict.fromkeys(f"{it.major}.{it.minor}" for it in sorted(found, reverse=True)))


def runs(python: Path, environ: Mapping[str, str]) -> bool:
    """Whether the interpreter of an environment exists and starts."""
    try:
        return query_python(python, "True", environ) is True
    except OutsideError:
        return False


def _by_uv(uv: str, versions: SpecifierSet, environ: Mapping[str, str]) -> Found | None:
    command = [uv, "python", "find", "--system", *_UV, "--no-python-downloads", _for_uv(versions)]
    ran = run_program(command, environ, PATIENCE)
    return _query(ran.last_line, versions, environ) if ran.exit_code == 0 and ran.last_line else None


def _for_uv(versions: SpecifierSet) -> str:
    return ",".join(sorted(str(clause) for clause in versions))


def _candidates(versions: SpecifierSet, environ: Mapping[str, str]) -> Iterator[str]:
    minors = (f"3.{minor}" for minor in range(_NEWEST, _OLDEST, -1))
    fitting = (it for it in minors if f"{it}.0" in versions or f"{it}.99" in versions)
    for name in (*(f"python{minor}" for minor in fitting), "python3", "python"):
        program = find_program(name, environ)
        if program is not None:
            yield program
    yield str(getattr(sys, "_base_executable", sys.executable))


def _query(program: str, versions: SpecifierSet, environ: Mapping[str, str]) -> Found | None:
    """The Python that a program reports, if it is a CPython of ``versions`` with the GIL: wheels are for that."""
    try:
        facts = query_python(program, _FACTS, environ)
    except OutsideError:
        return None
    match facts:
        case [[int(major), int(minor), int(patch)], "cpython", str(executable), False, "final"]:
            text = f"{major}.{minor}.{patch}"
            is_there = is_system_text(executable) and os.path.exists(executable)  # noqa: PTH110 - it never raises
            return Found(executable, text) if is_there and text in versions else None
    return None


def _not_found(versions: SpecifierSet, uv: str | None, project: str) -> OutsideError:
    minor = next((found[1] for it in versions if (found := _MINOR.match(str(it))) is not None), None)
    named = minor if minor is not None and f"{minor}.0" in versions else versions_text(versions)
    hints = []
    if uv is None:
        hints.append(Hint("install uv to let envsolve fetch the missing Python", "pip install uv"))
    elif minor is not None:
        hints.append(Hint("install that Python, or fetch it with uv", f"uv python install {minor}"))
    else:
        hints.append(Hint("install one of these Python versions and add it to the PATH"))
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    relock = "envsolve lock" if project else None
    hints.append(Hint(f"or lock for an installed Python: {Requester(project).setting('python', here)}", relock))
    hints.append(Hint("or lock conda packages, which include Python: conda-lock.yml"))
    return OutsideError(
        "python-not-found",
        f"the lock is for Python {named}, but this machine has no such CPython",
        ("searched with uv and on the PATH" if uv is not None else "searched on the PATH; uv is not installed",),
        tuple(hints),
    )
