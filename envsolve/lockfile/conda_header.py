"""The comments for people that stand on top of every file of conda packages, and reading them back.

The first lines are those of every lock (:mod:`envsolve.lockfile.header`). An environment.yml of a stack has no other
place for what it rests on.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from shlex import quote
from typing import NamedTuple

from envsolve.boundary.display import one_line
from envsolve.lockfile.facts import in_comments
from envsolve.lockfile.header import comments_on_top, exported_from_in, exported_from_line, made_by, made_for_lines
from envsolve.lockfile.lock import Lock, Stack
from envsolve.lockfile.sound_packages import require_platform

UNNAMED = "envsolve"
"""What an environment is called that has no framework."""
_MADE_BY = re.compile(
    r"""\#\ Made\ by\ envsolve\ (?P<version>\S+?)
        (?:\ from\ the\ compatibility\ matrix\ of\ (?P<date>\S+?))?(?P<own>\ that\ --matrix\ gave)?:\s*\Z
    """,
    re.VERBOSE,
)
_COMMAND = re.compile(r"#   (.*\S)\s*\Z")
_FOR = re.compile(r"# For: ([a-z0-9-]+)(?:, (.+))?\Z")
_NEEDS = re.compile(r"# Needs: NVIDIA driver ([0-9.]+) or newer")
_RESOLVED_FOR = re.compile(r"# Resolved for: (?:Python (?P<python>[0-9.]+)(?:, |\s*\Z))?(?P<virtual>.*)\Z")
_CAPABILITY = re.compile(r"(?:\(|\ba GPU of )(\d+\.\d)\b")
_OURS = ("# Made by envsolve ", "# Exported from ")
_OF_A_PLATFORM = ("# For: ", "# Needs: ", "# Resolved for: ")
_AFTER_REMARKS = ("# To ", "# Its variables ", "# platform:", "# From several indexes")
_NAMED = re.compile(r"#.* --name ([\w.+-]+)(?: |\Z)")
_VARIABLES = re.compile(r"#   conda env config vars set --name \S+ (.+)\Z")
_NAME = re.compile(r"[A-Za-z0-9_.+-]+\Z")
_NO_VIRTUAL_PACKAGE = "no virtual package"


class Comments(NamedTuple):
    """What the comments on top of a file of envsolve say beside its facts.

    ``machines`` are in words, by the platform.
    """

    machines: Mapping[str, str] = {}
    remarks: tuple[str, ...] = ()
    environment: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    exported_from: str | None = None


def header_lines(locks: Sequence[Lock], *, resolved: bool = True) -> Iterator[str]:
    """Who made the file and with which command; for each of ``locks`` what it is for; how to use what it installs.

    ``resolved`` says that the packages in it were chosen for a Python and virtual packages, which are named. Raises
    OutsideError ``unsound-package`` for a lock that is for no platform.
    """
    made = locks[0].made
    if made is not None:
        yield from made_by(made.envsolve_version, made.command, made.matrix_date, own_matrix=made.own_matrix)
    yield from exported_from_line(locks[0])
    for lock in locks:
        require_platform(lock.platform)
        yield from made_for_lines(lock)
        if made is not None and resolved:
            python = f"Python {lock.python}, " if lock.python else ""
            assumed = ", ".join(map(str, lock.virtual_packages)) or _NO_VIRTUAL_PACKAGE
            yield one_line(f"# Resolved for: {python}{assumed}")
    yield from dict.fromkeys(line for lock in locks for line in lock.remarks)


def variable_remarks(lock: Lock, name: str) -> Iterator[str]:
    """How to set the variables of a lock whose format has no place for them."""
    if lock.variables:
        yield "# Its variables are set once it is there:"
        given = " ".join(quote(f"{variable}={text}") for variable, text in lock.variables)
        yield f"#   {one_line(f'conda env config vars set --name {name} {given}')}"


def name_of(locks: Sequence[Lock]) -> str:
    """What the environment is called: by its frameworks and their CUDA, where they are the same everywhere."""
    names = {lock.environment or UNNAMED for lock in locks}
    return names.pop() if len(names) == 1 else UNNAMED


def stack_name(stack: Stack | None) -> str:
    """What the environment of a stack is called: see :func:`envsolve.lockfile.conda_specs.environment_name`."""
    if stack is None or not stack.frameworks:
        return ""
    major = (stack.cuda or "").partition(".")[0]
    name = f"{'-'.join(it.framework for it in stack.frameworks)}-{f'cuda{major}' if major else 'cpu'}"
    return name if _NAME.match(name) else ""


def comments_of(text: str) -> Comments:
    """The comments on top of ``text``; none of a file that another tool wrote."""
    lines = _own_comments(text)
    if not lines:
        return Comments()
    machines: dict[str, str] = {}
    remarks: list[str] = []
    told = lines[2:] if len(lines) > 1 and _COMMAND.match(lines[1]) else lines[1:]
    for line in told:
        found = _FOR.match(line)
        if found is not None:
            machines[found[1]] = found[2] or ""
        elif line == "#" or line.startswith(_AFTER_REMARKS):
            break
        elif not line.startswith((*_OURS, *_OF_A_PLATFORM)):
            remarks.append(line)
    return Comments(
        machines,
        tuple(remarks),
        next((found[1] for found in map(_NAMED.match, told) if found is not None), ""),
        tuple(_variables(told)),
        exported_from_in(text),
    )


def facts_on_top(text: str, platform: str = "") -> Mapping[str, object] | None:
    """The table of facts in the comments on top of a file, or what these say to people where it has none.

    Of what they say for several platforms it is the part for ``platform``. None where another tool wrote the file.
    Raises FileError where the table is no TOML.
    """
    return in_comments(text) or _told(text, platform)


def _told(text: str, platform: str) -> Mapping[str, object] | None:
    lines = _own_comments(text)
    made = _MADE_BY.match(lines[0]) if lines else None
    if made is None:
        return None
    command = _COMMAND.match(lines[1]) if len(lines) > 1 else None
    told = _part_for(lines, platform)
    resolved = next(filter(None, map(_RESOLVED_FOR.match, told)), None)
    machines = next((found[2] or "" for found in map(_FOR.match, told) if found is not None), "")
    floor = next(filter(None, map(_NEEDS.match, told)), None)
    virtual = [] if resolved is None else [it.strip() for it in resolved["virtual"].split(", ") if it.startswith("__")]
    facts: dict[str, object] = {
        "envsolve_version": made["version"],
        "command": None if command is None else command[1],
        "matrix_date": made["date"],
        "own_matrix": True if made["own"] else None,
        "python": None if resolved is None else resolved["python"],
        "virtual_packages": virtual or None,
        "compute_capabilities": _CAPABILITY.findall(machines) or None,
        "minimum_driver": None if floor is None else floor[1],
    }
    return {key: fact for key, fact in facts.items() if fact is not None}


def _own_comments(text: str) -> list[str]:
    """The comments on top from envsolve's first on, above which people may write their own; none without it."""
    lines = list(comments_on_top(text))
    first = next((number for number, line in enumerate(lines) if line.startswith(_OURS)), len(lines))
    return lines[first:]


def _part_for(lines: Sequence[str], platform: str) -> Sequence[str]:
    """What is said of ``platform``, up to the next one; all of it where that is not named."""
    begins = [number for number, line in enumerate(lines) if _FOR.match(line)]
    for begin, end in pairwise([*begins, len(lines)]):
        found = _FOR.match(lines[begin])
        if found is not None and found[1] == platform:
            return lines[begin:end]
    return lines


def _variables(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What a comment sets in the environment."""
    for found in filter(None, map(_VARIABLES.match, lines)):
        try:
            words = shlex.split(found[1])
        except ValueError:
            continue
        for word in words:
            name, equals, value = word.partition("=")
            if equals:
                yield name, value
