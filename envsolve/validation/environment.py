"""The environment to validate: its interpreter and its content."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from envsolve.boundary.answers import PATIENCE, Answer, no_answer, not_usable, query_python
from envsolve.boundary.programs import find_program, named_program
from envsolve.errors import Hint, OutsideError, UsageError
from envsolve.validation.child import Children, Outcome
from envsolve.validation.inventory import Inventory, inventory_of

_OLDEST = (3, 7)
IS_WINDOWS = os.name == "nt"
_NAME_IT = Hint("name the environment's interpreter", "envsolve validate --python PREFIX/bin/python")


def interpreter(prefix: str | None, python: str | None, environ: Mapping[str, str]) -> Path:
    """The requested interpreter: ``python``, that of ``prefix``, or that of the active environment.

    The active environment is, in order: 1. the one of VIRTUAL_ENV or CONDA_PREFIX (if both are set, the first on PATH),
    2. ``python3`` or ``python`` on PATH, 3. the interpreter that runs envsolve. Raises UsageError if there is none.
    """
    try:
        return _meant(prefix, python, environ)
    except OSError as error:  # a name that is too long, a directory that cannot be accessed
        message = f"{python or prefix or 'the active environment'} cannot be looked at: {error.strerror or error}"
        raise UsageError("python-not-found", message, hints=(_NAME_IT,)) from error


def _meant(prefix: str | None, python: str | None, environ: Mapping[str, str]) -> Path:
    if python is not None:
        return _named(python, environ)
    if prefix is not None:
        return _of_prefix(Path(prefix))
    for directory in _active(environ):
        found = next(_candidates(directory), None)
        if found is not None:
            return found
    on_path = find_program("python3", environ) or find_program("python", environ)
    return Path(on_path or sys.executable)


def take_inventory(
    python: Path, environ: Mapping[str, str], children: Children, *, timeout: float = PATIENCE
) -> Inventory:
    """The inventory of the environment from its interpreter, which has at most ``timeout`` seconds.

    Raises OutsideError if it is no interpreter or does not answer, UsageError if it is older than Python 3.7.
    """
    outcome = children.run(python, "inventory", {}, environ, timeout)
    if outcome.result is None:
        if outcome.ending.exit_code is not None:
            _require_new_enough(python, environ, timeout)
        raise _no_inventory(python, outcome, environ)
    try:
        return inventory_of(outcome.result)
    except ValueError as error:
        raise _malformed(python, str(error)) from None


def _require_new_enough(python: Path, environ: Mapping[str, str], timeout: float) -> None:
    """Raise UsageError for a Python that is too old for the probes: it cannot report that itself."""
    try:
        found = query_python(python, "list(sys.version_info[:2])", environ, options=(), timeout=timeout)
    except OutsideError:
        return
    match found:
        case [int(major), int(minor)] if (major, minor) < _OLDEST:
            message = f"{python} is Python {major}.{minor}, and probes need 3.7 or newer"
            raise UsageError("python-too-old", message, hints=(_NAME_IT,))


def _named(python: str, environ: Mapping[str, str]) -> Path:
    found = named_program(python, environ)
    if found is None:
        if Path(python).is_dir():
            return _of_prefix(Path(python))
        message = f"there is no interpreter {python}"
        raise UsageError("python-not-found", message, hints=(_NAME_IT,))
    return Path(found).absolute()


def _of_prefix(prefix: Path) -> Path:
    found = next(_candidates(prefix), None)
    if found is None:
        name = "name the directory of a virtual or conda environment"
        if prefix.is_dir():
            raise UsageError("python-not-found", f"{prefix} holds no Python interpreter", hints=(Hint(name),))
        make = Hint(f"{name}, or make one", shlex.join(["envsolve", "create", str(prefix), "--lock", "pylock.toml"]))
        raise UsageError("python-not-found", f"{prefix} is not a directory", hints=(make,))
    return found


def _candidates(prefix: Path) -> Iterator[Path]:
    names = ("python.exe", "Scripts/python.exe") if IS_WINDOWS else ("bin/python", "bin/python3")
    paths = (prefix.absolute() / name for name in names)
    return (path for path in paths if path.is_file())


def _active(environ: Mapping[str, str]) -> list[Path]:
    """Prefixes that are activated, first the one whose programs are found first."""
    prefixes = [Path(environ[name]) for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if environ.get(name)]
    path = environ.get("PATH", "").split(os.pathsep)

    def place(prefix: Path) -> int:
        places = [number for number, entry in enumerate(path) if entry and Path(entry).is_relative_to(prefix)]
        return min(places, default=len(path))

    return sorted(prefixes, key=place)


def _no_inventory(python: Path, outcome: Outcome, environ: Mapping[str, str]) -> OutsideError:
    error = no_answer(python, Answer(b"", "", outcome.ending, outcome.tail))
    if outcome.error is not None:
        error.cause = (f"{outcome.error.get('type')}: {outcome.error.get('text')}",)
    if environ.get("PYTHONPATH"):
        error.cause += (f"modules in PYTHONPATH come before its own: {environ['PYTHONPATH']}",)
    error.hints = (_NAME_IT,)
    return error


def _malformed(python: Path, why: str) -> OutsideError:
    error = not_usable(python, "gave an answer that makes no sense", (why,))
    error.hints = (_NAME_IT,)
    return error
