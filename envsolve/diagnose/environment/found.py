"""Find the environment to examine and its content, even if its Python is broken.

The shell's variables may name an environment that is none any more. A directory that was removed leaves its variables
behind in every open shell, in sessions of tmux, in editors and in start-up files. Python does not read them; uv, Poetry
and conda do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from envsolve.boundary.answers import PATIENCE
from envsolve.boundary.reading import (
    closed_directory,
    fault_of,
    is_directory,
    is_file,
    is_missing,
    names_of,
    real,
    unread,
)
from envsolve.diagnose.environment.commands import Shell, shell_of
from envsolve.diagnose.environment.from_files import (
    inventory_from_files,
    is_environment,
    is_marked,
    program_of,
    settings_of,
)
from envsolve.errors import EnvsolveError, Hint, OutsideError, UsageError
from envsolve.findings.catalogue import make_finding
from envsolve.model.finding import Finding
from envsolve.validation.child import Children
from envsolve.validation.environment import interpreter, take_inventory
from envsolve.validation.inventory import Inventory

_NOT_FOUND, _TOO_OLD = "python-not-found", "python-too-old"
_STANDARD_LIBRARY = re.compile(r"No module named '?encodings|Could not find platform (?:in)?dependent libraries")
_SHARED_LIBRARY = re.compile(r"error while loading shared libraries: (\S+):")
_OTHER_MACHINE = re.compile(r"Exec format error")
ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
"""The variables that activation sets to the directory of an environment."""
_BESIDE = {
    "VIRTUAL_ENV": ("VIRTUAL_ENV_PROMPT",),
    "CONDA_PREFIX": ("CONDA_DEFAULT_ENV", "CONDA_PROMPT_MODIFIER", "CONDA_SHLVL"),
}
"""What activation sets in addition to each of them (``venv``'s activate; ``conda/activate.py``)."""
_PYTHON = re.compile(r"python-\d")


class FoundEnvironment(NamedTuple):
    """An environment, and a finding if its Python does not run: then the inventory is read from its files.

    ``origin`` says how it was found: by an option, a variable, or PATH.
    """

    inventory: Inventory
    findings: tuple[Finding, ...] = ()
    origin: str = ""
    runs: bool = True


def find_environment(
    prefix: str | None, python: str | None, environ: Mapping[str, str], children: Children, *, timeout: float = PATIENCE
) -> FoundEnvironment:
    """The requested environment, as :func:`~envsolve.validation.environment.interpreter` finds it, or its files.

    Variables that no longer name an environment are ignored. Its Python has ``timeout`` seconds to answer.

    Raises UsageError if nothing that is named or active is or was an environment, OutsideError if a program is named
    that is not an interpreter.
    """
    stale = {it.variable for it in stale_in(environ)}
    usable = {name: value for name, value in environ.items() if name not in stale}
    try:
        executable = interpreter(prefix, python, usable)
        broken = _broken_active(executable, usable) if prefix is None and python is None else None
        if broken is None or is_conda_without_python(broken):
            inventory = take_inventory(executable, environ, children, timeout=timeout)
            findings = () if broken is None else (_without_python(broken),)
            named = Path(prefix).absolute() if prefix is not None else None
            if named is not None and real(inventory.prefix) != real(named):
                found = inventory_from_files(named) if is_environment(named) else inventory
                findings = (_of_other(named, executable, inventory.prefix),)
                return FoundEnvironment(found, findings, "--prefix", runs=found is inventory)
            return FoundEnvironment(inventory, findings, _origin(executable, prefix, python, usable))
        raise UsageError("python-not-found", f"{broken} is active and holds no Python interpreter that runs")
    except (UsageError, OutsideError) as error:
        directory = _directory(prefix, python, usable)
        if directory is None:
            raise _hinted(error, prefix, python, usable) from None
        named = Path(python).absolute() if python is not None else None
        is_program = named is not None and os.path.lexists(named) and not is_directory(named)
        program = named if named is not None and is_program else program_of(directory)
        findings = (_broken(directory, program, error, environ),)
        return FoundEnvironment(
            inventory_from_files(directory), findings, _origin(program, prefix, python, usable), runs=False
        )


def _origin(executable: Path, prefix: str | None, python: str | None, environ: Mapping[str, str]) -> str:
    """How an interpreter was found; the order is that of ``interpreter``."""
    if prefix is not None or python is not None:
        return "--prefix" if python is None else "--python"
    named = (name for name in ACTIVE if environ.get(name) and _lies_in(executable, Path(environ[name])))
    on_path = (entry for entry in environ.get("PATH", "").split(os.pathsep) if entry)
    listed = any(real(entry) == real(executable.parent) for entry in on_path)
    return next(named, "PATH" if listed else "the Python that runs envsolve")


def _lies_in(executable: Path, directory: Path) -> bool:
    return executable.is_relative_to(directory.absolute())


def _hinted(error: EnvsolveError, prefix: str | None, python: str | None, environ: Mapping[str, str]) -> EnvsolveError:
    """The error, about what is at the place that was named, and with the doctor's own command as a hint."""
    hints = (Hint("look at the active environment, or at the Python on PATH", "envsolve doctor"),)
    nearest = _nearest(Path(prefix or python or os.curdir).absolute())
    if nearest is not None:
        option = "--prefix", str(nearest)
        shell = shell_of(environ, windows=os.name == "nt")
        hints = (Hint("look at the environment there", shell.joined(["envsolve", "doctor", *option])),)
    named = Path(python).absolute() if python is not None else None
    fault = fault_of(named) if named is not None and not is_missing(named) else None
    if fault is not None:
        return OutsideError("python-not-usable", f"{named} {fault}", hints=hints)
    error.hints = hints if error.hints else ()
    return error


def _nearest(path: Path) -> Path | None:
    """An environment in a directory, or around it."""
    below = (path / name for name in names_of(path))
    return next((it for it in (*below, *path.parents) if is_marked(it)), None)


def _broken_active(executable: Path, environ: Mapping[str, str]) -> Path | None:
    """An active environment that ``executable`` does not belong to: its own Python is gone."""
    active = [Path(environ[name]) for name in ACTIVE if environ.get(name)]
    if any(_lies_in(executable, it) for it in active):
        return None
    return next((it for it in active if is_environment(it)), None)


def _directory(prefix: str | None, python: str | None, environ: Mapping[str, str]) -> Path | None:
    """The directory of the requested environment; None if it is none."""
    named = [Path(it).absolute() for it in (prefix, python) if it is not None]
    active = [Path(environ[name]).absolute() for name in ACTIVE if environ.get(name)]
    for path in named or active:
        if is_directory(path):
            found = path if is_environment(path) else None
        elif path.name.startswith("python"):
            found = next((it for it in (path.parent, path.parent.parent) if is_environment(it)), None)
        else:  # another program, or Python under another name
            found = next((it for it in (path.parent, path.parent.parent) if is_marked(it)), None)
        if found is not None:
            return found
    return None


def _broken(directory: Path, program: Path, error: EnvsolveError, environ: Mapping[str, str]) -> Finding:
    if error.code == _TOO_OLD:
        evidence = (str(program_of(directory)),)
        return make_finding("interpreter-too-old", evidence, about="python", reason=error.message)
    if is_missing(program) and is_conda_without_python(directory):
        return _without_python(directory)
    seen = tuple(_seen(directory, program))
    reasons = list(dict.fromkeys((*seen, *_output_of(error, environ), *error.cause)))
    return make_finding(
        "interpreter-broken",
        (str(program), *reasons),
        about="python",
        prefix=directory.name or directory,
        reason=_message(error, program, seen, reasons),
        **_way_out(directory, program, environ),
    )


def _message(error: EnvsolveError, program: Path, seen: tuple[str, ...], reasons: list[str]) -> str:
    """The problem with the reasons; a program that exists and cannot start is not called missing."""
    if error.code == _NOT_FOUND and seen and not is_missing(program):
        return seen[0]
    return f"{error.message}: {reasons[0]}" if reasons else error.message


def _way_out(directory: Path, program: Path, environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Facts on what to do: the command that unsets PYTHONHOME, makes the program accessible, or recreates it."""
    shell = shell_of(environ, windows=os.name == "nt")
    if environ.get("PYTHONHOME"):
        return {"home": next(iter(shell.unset(["PYTHONHOME"])))}
    fault = None if is_missing(program) else fault_of(program) or unread(program)
    if fault is not None:
        return {"closed": True, "opened": _opened(program, shell)}
    return {"again": _made_again(directory, shell)}


def _opened(program: Path, shell: Shell) -> str | None:
    """The command that makes a program executable for its owner."""
    if shell is not Shell.POSIX or not is_file(program) or program.stat().st_uid != os.geteuid():
        return None
    return shell.joined(["chmod", "u+rx", str(program)])


def _made_again(directory: Path, shell: Shell) -> str:
    if is_directory(directory / "conda-meta"):
        return shell.joined(["conda", "install", "-p", str(directory), "--force-reinstall", "python"])
    settings = settings_of(directory)
    version = ".".join((settings.get("version_info") or settings.get("version") or "").split(".")[:2])
    return shell.joined([f"python{version or '3'}", "-m", "venv", "--upgrade", str(directory)])


def _of_other(directory: Path, program: Path, other: Path) -> Finding:
    evidence = (f"{program} is {real(program)}", f"its sys.prefix is {other}")
    return make_finding(
        "python-of-other-environment",
        evidence,
        about="python",
        prefix=directory,
        program=program,
        other_prefix=other,
        again=_made_again(directory, Shell.POSIX),
    )


def _without_python(directory: Path) -> Finding:
    evidence = (str(directory / "conda-meta"),)
    return make_finding("environment-without-python", evidence, about="python", prefix=directory)


def _seen(directory: Path, program: Path) -> Iterator[str]:
    """What the files show about the interpreter."""
    fault = fault_of(program) or unread(program)
    if fault is not None:
        yield f"{program} {fault}"
    home = settings_of(directory).get("home")
    if home and not is_directory(Path(home)):
        gone = "which is gone: that Python was removed or replaced"
        which = gone if is_missing(Path(home)) else "which is closed to this user"
        yield f"pyvenv.cfg names {home} as the home of its Python, {which}"


def _output_of(error: EnvsolveError, environ: Mapping[str, str]) -> Iterator[str]:
    """What the interpreter printed when it was started, in other words."""
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


class Stale(NamedTuple):
    """A variable that names no environment: its value, the problem with it, and what else activation has set."""

    variable: str
    path: str
    fault: str
    beside: tuple[str, ...]


def stale_in(environ: Mapping[str, str], examined: Path | None = None) -> Iterator[Stale]:
    """The activation variables whose directory is gone, not accessible, or contains no Python and no environment.

    An environment that only lacks its Python is included only if another one is ``examined``: otherwise it is reported
    as broken.
    """
    for variable in ACTIVE:
        path = environ.get(variable)
        fault = _fault_of_active(Path(path).absolute(), examined) if path else None
        if path and fault is not None:
            yield Stale(variable, path, fault, tuple(it for it in _BESIDE[variable] if environ.get(it)))


def is_conda_without_python(directory: Path) -> bool:
    """Whether conda made it without ever installing a Python: an environment of compilers or libraries."""
    names = names_of(directory / "conda-meta")
    return "history" in names and not any(_PYTHON.match(name) for name in names)


def _fault_of_active(directory: Path, examined: Path | None) -> str | None:
    if not is_directory(directory):
        if is_missing(directory):
            return "is not there"
        closed = closed_directory(directory)
        return "is not a directory" if closed is None else f"cannot be looked at: {closed}"
    is_judged = examined is None or real(examined) == real(directory) or is_conda_without_python(directory)
    if is_judged and is_environment(directory):
        return None
    fault = fault_of(program_of(directory))
    return None if fault is None else f"holds no Python that runs: {program_of(directory)} {fault}"
