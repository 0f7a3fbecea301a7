"""The comments at the top of every file of conda packages, and how they are read back.

The first lines are those of every lock (:mod:`envsolve.lockfile.header`). An environment.yml of a stack has no other
place for its facts.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from shlex import quote
from typing import NamedTuple

from envsolve.boundary.display import one_line
from envsolve.lockfile.checked_packages import require_platform
from envsolve.lockfile.header import comments_on_top, exported_from_in, exported_from_line, made_by, made_for_lines
from envsolve.lockfile.header_lines import COMMAND, FOR, GPU, MADE_BY, MADE_BY_OWN_MATRIX, NEEDS, RESOLVED_FOR
from envsolve.lockfile.lock import Lock, Stack

UNNAMED = "envsolve"
"""The name of an environment without a framework."""
_OURS = ("# Made by envsolve ", "# Exported from ")
_OF_A_PLATFORM = ("# For: ", "# Needs: ", "# Resolved for: ")
_AFTER_REMARKS = ("# To ", "# Its variables ", "# platform:", "# From several indexes")
_NAMED = re.compile(r"#.* --name ([\w.+-]+)(?: |\Z)")
_VARIABLES = re.compile(r"#   conda env config vars set --name \S+ (.+)\Z")
_NAME = re.compile(r"[A-Za-z0-9_.+-]+\Z")
_NO_VIRTUAL_PACKAGE = "no virtual package"


class Comments(NamedTuple):
    """What the comments at the top of a file of envsolve say besides its facts.

    ``machines`` describes the machines in words, by platform.
    """

    machines: Mapping[str, str] = {}
    remarks: tuple[str, ...] = ()
    environment: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    exported_from: str | None = None


def header_lines(locks: Sequence[Lock], *, resolved: bool = True) -> Iterator[str]:
    """Yield who made the file, the command, what each of ``locks`` is for, and how to use what it installs.

    ``resolved`` is true if the packages were chosen for a Python and virtual packages, which are then named. Raises
    OutsideError ``unsound-package`` for a lock without a platform.
    """
    made = locks[0].made
    if made is not None:
        yield from made_by(made.envsolve_version, made.command, made.matrix_date, own_matrix=made.own_matrix)
    yield from exported_from_line(locks[0])
    for lock in locks:
        require_platform(lock.platform)
        yield from made_for_lines(lock)
        if made is not None and resolved:
            assumed = ", ".join(map(str, lock.virtual_packages)) or _NO_VIRTUAL_PACKAGE
            yield RESOLVED_FOR.written(python=lock.python, assumed=assumed)
    yield from dict.fromkeys(line for lock in locks for line in lock.remarks)


def variable_remarks(lock: Lock, name: str) -> Iterator[str]:
    """Yield how to set the variables of a lock whose format has no place for them."""
    if lock.variables:
        yield "# Its variables are set once it is there:"
        given = " ".join(quote(f"{variable}={text}") for variable, text in lock.variables)
        yield f"#   {one_line(f'conda env config vars set --name {name} {given}')}"


def name_of(locks: Sequence[Lock]) -> str:
    """Return the name of the environment: its frameworks and their CUDA, if they are the same on all platforms."""
    names = {lock.environment or UNNAMED for lock in locks}
    return names.pop() if len(names) == 1 else UNNAMED


def stack_name(stack: Stack | None) -> str:
    """Return the name of a stack's environment: see :func:`envsolve.lockfile.conda_specs.environment_name`."""
    if stack is None or not stack.frameworks:
        return ""
    major = (stack.cuda or "").partition(".")[0]
    name = f"{'-'.join(it.framework for it in stack.frameworks)}-{f'cuda{major}' if major else 'cpu'}"
    return name if _NAME.match(name) else ""


def comments_of(text: str) -> Comments:
    """Return what the comments at the top of ``text`` say; nothing for a file of another tool."""
    lines = _own_comments(text)
    if not lines:
        return Comments()
    machines: dict[str, str] = {}
    remarks: list[str] = []
    rest = lines[2:] if len(lines) > 1 and COMMAND.read(lines[1]) else lines[1:]
    for line in rest:
        found = FOR.read(line)
        if found is not None:
            machines[found["platform"]] = found.get("machines", "")
        elif line == "#" or line.startswith(_AFTER_REMARKS):
            break
        elif not line.startswith((*_OURS, *_OF_A_PLATFORM)):
            remarks.append(line)
    return Comments(
        machines,
        tuple(remarks),
        next((found[1] for found in map(_NAMED.match, rest) if found is not None), ""),
        tuple(_variables(rest)),
        exported_from_in(text),
    )


def facts_on_top(text: str, platform: str) -> Mapping[str, object] | None:
    """Return the facts in the comments at the top of a file: its table, else what the comments say in words.

    For several platforms it is the part for ``platform``. The result is None if another tool wrote the file. Raises
    FileError if the table is not valid TOML.
    """
    from envsolve.lockfile.facts import in_comments

    return in_comments(text) or _recorded_facts(text, platform)


def _recorded_facts(text: str, platform: str) -> Mapping[str, object] | None:
    lines = _own_comments(text)
    own = MADE_BY_OWN_MATRIX.first_in(lines[:1])
    made = own or MADE_BY.first_in(lines[:1])
    if not made:
        return None
    part = _part_for(lines, platform)
    resolved = RESOLVED_FOR.first_in(part)
    gpus = filter(None, map(GPU.read, FOR.first_in(part).get("machines", "").split(", ")))
    facts: dict[str, object] = {
        "envsolve_version": made["version"],
        "command": COMMAND.first_in(lines[1:2]).get("command"),
        "matrix_date": made.get("date"),
        "own_matrix": True if own else None,
        "python": resolved.get("python"),
        "virtual_packages": [it for it in resolved.get("assumed", "").split(", ") if it.startswith("__")] or None,
        "compute_capabilities": [it["capability"] for it in gpus] or None,
        "minimum_driver": NEEDS.first_in(part).get("floor"),
    }
    return {key: fact for key, fact in facts.items() if fact is not None}


def _own_comments(text: str) -> list[str]:
    """The comments at the top from envsolve's first line on, empty without one. Users may add their own above it."""
    lines = list(comments_on_top(text))
    first = next((number for number, line in enumerate(lines) if line.startswith(_OURS)), len(lines))
    return lines[first:]


def _part_for(lines: Sequence[str], platform: str) -> Sequence[str]:
    """The lines about ``platform``, up to the next platform, or all lines if it is not named."""
    begins = [number for number, line in enumerate(lines) if FOR.read(line)]
    for begin, end in pairwise([*begins, len(lines)]):
        if begin < end and (FOR.read(lines[begin]) or {}).get("platform") == platform:
            return lines[begin:end]
    return lines


def _variables(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The variables that a comment sets in the environment."""
    for found in filter(None, map(_VARIABLES.match, lines)):
        try:
            words = shlex.split(found[1])
        except ValueError:
            continue
        for word in words:
            name, equals, value = word.partition("=")
            if equals:
                yield name, value
