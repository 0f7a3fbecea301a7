"""Which environment is meant, and what it holds, also where its Python is too broken to say."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.diagnose.environment.from_files import inventory_from_files, is_environment, program_of, settings_of
from envsolve.diagnose.environment.reading import is_directory, is_file, names_of
from envsolve.diagnose.environment.remedies import quoted
from envsolve.errors import EnvsolveError, OutsideError, UsageError
from envsolve.model.finding import Finding, Severity
from envsolve.validate.child import Children
from envsolve.validate.environment import interpreter, take_inventory
from envsolve.validate.inventory import Inventory

_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
_TOO_OLD = "python-too-old"
_STANDARD_LIBRARY = re.compile(r"No module named '?encodings|Could not find platform (?:in)?dependent libraries")
_SHARED_LIBRARY = re.compile(r"error while loading shared libraries: (\S+):")
_OTHER_MACHINE = re.compile(r"Exec format error")


class FoundEnvironment(NamedTuple):
    """An environment, and a finding where its Python does not run: then the inventory is that of its files."""

    inventory: Inventory
    findings: tuple[Finding, ...] = ()


def find_environment(
    prefix: str | None, python: str | None, environ: Mapping[str, str], children: Children, *, timeout: float = 60.0
) -> FoundEnvironment:
    """The environment that is meant, as :func:`~envsolve.validate.environment.interpreter` finds it, or its files.

    Its Python has ``timeout`` seconds to answer.

    Raises UsageError where nothing that is named or active was ever an environment, OutsideError where what is named
    is a program and no interpreter.
    """
    try:
        executable = interpreter(prefix, python, environ)
        broken = _broken_active(executable, environ) if prefix is None and python is None else None
        if broken is None:
            return FoundEnvironment(take_inventory(executable, environ, children, timeout=timeout))
        raise UsageError("python-not-found", f"{broken} is active and holds no Python interpreter that runs")
    except (UsageError, OutsideError) as error:
        directory = _directory(prefix, python, environ)
        if directory is None:
            raise
        return FoundEnvironment(inventory_from_files(directory), (_broken(directory, error, environ),))


def _broken_active(executable: Path, environ: Mapping[str, str]) -> Path | None:
    """An active environment that ``executable`` is not of: its own Python is not there any more."""
    active = [Path(environ[name]) for name in _ACTIVE if environ.get(name)]
    if any(executable.is_relative_to(it.absolute()) for it in active):
        return None
    return next((it for it in active if is_environment(it)), None)


def _directory(prefix: str | None, python: str | None, environ: Mapping[str, str]) -> Path | None:
    """The directory of the environment that is meant; None where that is none."""
    named = [Path(it).absolute() for it in (prefix, python) if it is not None]
    active = [Path(environ[name]).absolute() for name in _ACTIVE if environ.get(name)]
    for path in named or active:
        if is_directory(path):
            found = path if is_environment(path) else None
        elif path.name.startswith("python"):
            found = next((it for it in (path.parent, path.parent.parent) if is_environment(it)), None)
        else:  # another program, or Python under another name
            found = next((it for it in (path.parent, path.parent.parent) if _is_marked(it)), None)
        if found is not None:
            return found
    return None


def _is_marked(directory: Path) -> bool:
    return is_file(directory / "pyvenv.cfg") or is_directory(directory / "conda-meta")


def _broken(directory: Path, error: EnvsolveError, environ: Mapping[str, str]) -> Finding:
    if error.code == _TOO_OLD:
        return _too_old(directory, error)
    program = program_of(directory)
    if not is_file(program) and _is_conda_without_python(directory):
        return _without_python(directory)
    reasons = list(dict.fromkeys((*_seen(directory, program), *_said(error, environ), *error.cause)))
    home = environ.get("PYTHONHOME")
    return Finding(
        "interpreter-broken",
        f"the Python of {directory.name or directory} does not run",
        Severity.ERROR,
        f"{error.message}" + (f": {reasons[0]}" if reasons else "") + ". What follows was read from the files",
        "start it without PYTHONHOME"
        if home
        else "make the environment again; its packages can be read off this report",
        ("unset PYTHONHOME",) if home else _commands(directory),
        (str(program), *reasons),
        about="python",
    )


def _is_conda_without_python(directory: Path) -> bool:
    """Whether conda made it and never put a Python into it: an environment of compilers or libraries."""
    names = names_of(directory / "conda-meta")
    return "history" in names and not any(re.match(r"python-\d", name) for name in names)


def _without_python(directory: Path) -> Finding:
    return Finding(
        "environment-without-python",
        f"{directory.name or directory} holds no Python",
        Severity.INFO,
        f"{directory} is a conda environment in which no Python is installed, so no framework is looked for by name",
        "nothing has to be done, unless frameworks are to be installed into it",
        evidence=(str(directory / "conda-meta"),),
        about="python",
    )


def _seen(directory: Path, program: Path) -> Iterator[str]:
    """What the files say against the interpreter."""
    settings = settings_of(directory)
    if program.is_symlink() and not os.path.exists(program):  # noqa: PTH110 - never raises
        yield f"{program} is a link to {os.readlink(program)}, which is not there"  # noqa: PTH115 - as written
    elif not is_file(program):
        yield f"{program} is not there"
    elif not os.access(program, os.X_OK):
        yield f"{program} may not be run by this user"
    home = settings.get("home")
    if home and not is_directory(Path(home)):
        yield f"pyvenv.cfg names {home} as the home of its Python, which is gone: that Python was removed or replaced"


def _said(error: EnvsolveError, environ: Mapping[str, str]) -> Iterator[str]:
    """What the interpreter said when it was started, in other words."""
    text = "\n".join(error.cause)
    shared = _SHARED_LIBRARY.search(text)
    if environ.get("PYTHONHOME"):
        yield f"PYTHONHOME={environ['PYTHONHOME']} sends it to the standard library of another Python"
    elif _STANDARD_LIBRARY.search(text):
        yield "it does not find its standard library, which was removed or moved"
    if shared is not None:
        yield f"it needs {shared[1]}, which the loader does not find"
    if _OTHER_MACHINE.search(f"{error.message}\n{text}"):
        yield "it is a program for another processor"


def _commands(directory: Path) -> tuple[str, ...]:
    if is_directory(directory / "conda-meta"):
        return (f"conda install -p {quoted(directory)} --force-reinstall python",)
    version = ".".join(
        (settings_of(directory).get("version_info") or settings_of(directory).get("version") or "").split(".")[:2]
    )
    return (f"python{version or '3'} -m venv --upgrade {quoted(directory)}",)


def _too_old(directory: Path, error: EnvsolveError) -> Finding:
    return Finding(
        "interpreter-too-old",
        "the Python of the environment is too old to be asked",
        Severity.INFO,
        f"{error.message}. What follows was read from the files",
        "nothing has to be done; frameworks of today need Python 3.10 or newer",
        evidence=(str(program_of(directory)),),
        about="python",
    )
