"""The comments for people that stand on top of every lock of conda packages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from envsolve.boundary.display import one_line
from envsolve.lockfile.conda_lock import CondaLock, PlatformLock
from envsolve.lockfile.conda_specs import environment_name
from envsolve.lockfile.header import made_by, made_for
from envsolve.lockfile.recorded import UNNAMED
from envsolve.lockfile.remarks import use_remarks


def header_lines(lock: CondaLock, parts: Sequence[PlatformLock]) -> Iterator[str]:
    """Who made the file and with which command; for each of ``parts`` what it is for; how to use what it installs."""
    if lock.recorded is not None:
        yield from lock.recorded.made
    else:
        command = lock.command
        yield from made_by(lock.envsolve_version, command, lock.matrix_date, own_matrix=lock.own_matrix)
    for part in parts:
        yield from _made_for(part)
    yield from dict.fromkeys(line for part in parts for line in _remarks(part))


def variable_remarks(lock: CondaLock, name: str) -> Iterator[str]:
    """How to set the variables of a lock whose format has no place for them."""
    if lock.variables:
        yield "# Its variables are set once it is there:"
        given = " ".join(quote(f"{variable}={text}") for variable, text in lock.variables)
        yield f"#   {one_line(f'conda env config vars set --name {name} {given}')}"


def name_of(parts: Sequence[PlatformLock]) -> str:
    """What the environment is called: by its frameworks and their CUDA, where they are the same everywhere."""
    names = set(map(_name, parts))
    return names.pop() if len(names) == 1 else UNNAMED


def _name(part: PlatformLock) -> str:
    if part.recorded is not None:
        return part.recorded.name
    return UNNAMED if part.answer is None else environment_name(part.answer.solution)


def _remarks(part: PlatformLock) -> Iterator[str]:
    if part.recorded is not None:
        yield from part.recorded.remarks
    elif part.answer is not None:
        yield from use_remarks(part.answer)


def _made_for(part: PlatformLock) -> Iterator[str]:
    if part.recorded is not None and part.recorded.made_for:
        yield from part.recorded.made_for
        return
    if part.answer is None:
        yield one_line(f"# For: {part.platform}")
    else:
        yield from made_for(part.answer)
    python = f"Python {part.python}, " if part.python else ""
    assumed = ", ".join(str(package) for package in part.virtual_packages) or "no virtual package"
    yield one_line(f"# Resolved for: {python}{assumed}")
