"""What a lock that was read says of its making, to be said again where it is written in another format.

The comments of envsolve's own files are in :mod:`envsolve.lockfile.header` and :mod:`envsolve.lockfile.conda_header`,
whose words are looked for here. The file of another tool says nothing that is taken over.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from envsolve.boundary.display import one_line
from envsolve.lockfile.toml import Value

_MADE = "# Made by envsolve "
_COMMAND = "#   "
_EXPORTED = "# Exported from "
_FOR = re.compile(r"# For: ([a-z0-9-]+)(?:,|\Z)")
_OF_A_PLATFORM = ("# For: ", "# Needs: ", "# Resolved for: ")
_AFTER_REMARKS = ("# To ", "# Its variables ", "# platform:", "# From several indexes")
_NAMED = re.compile(r"#.* --name ([\w.+-]+)(?: |\Z)")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")
"""What TOML takes without quotes."""
_VARIABLES = re.compile(r"#   conda env config vars set --name \S+ (.+)\Z")
UNNAMED = "envsolve"
"""What an environment is called that has no framework."""


class RecordedLock(NamedTuple):
    """What is said of a whole lock: the comments on who made it, and the facts that are written beside its packages.

    The keys of ``facts`` are those of :func:`envsolve.lockfile.facts.facts_of`.
    """

    made: tuple[str, ...]
    facts: Mapping[str, Value]


class RecordedPart(NamedTuple):
    """What is said of a lock for one platform.

    ``made_for`` are the comments on the machine, ``remarks`` those on how to use what is installed. ``name`` is what
    the environment is called.
    """

    made_for: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    facts: Mapping[str, Value] = {}
    name: str = UNNAMED

    @property
    def conda_cuda(self) -> str | None:
        """The CUDA of a stack that is conda-forge's throughout; None for any other."""
        frameworks, cuda = self.facts.get("frameworks"), self.facts.get("cuda")
        if not isinstance(frameworks, list) or not isinstance(cuda, str):
            return None
        sources = {it.get("source") for it in frameworks if isinstance(it, dict)}
        return cuda if sources == {"conda-forge"} else None


class Comments(NamedTuple):
    """The comments on top of a file of envsolve: who made it, by platform what it is for, and how to use it."""

    made: tuple[str, ...] = ()
    made_for: Mapping[str, tuple[str, ...]] = {}
    remarks: tuple[str, ...] = ()
    name: str | None = None
    variables: tuple[tuple[str, str], ...] = ()


def comments_of(text: str) -> Comments:
    """The comments on top of ``text``; none of a file that another tool wrote."""
    lines = list(_on_top(text))
    if not lines or not lines[0].startswith(_MADE):
        return Comments()
    made = tuple(lines[:2]) if lines[1:] and lines[1].startswith(_COMMAND) else tuple(lines[:1])
    rest = [line for line in lines[len(made) :] if not line.startswith(_EXPORTED)]
    made_for: dict[str, list[str]] = {}
    remarks: list[str] = []
    platform = ""
    for line in rest:
        found = _FOR.match(line)
        platform = platform if found is None else found[1]
        if line.startswith(_OF_A_PLATFORM):
            made_for.setdefault(platform, []).append(line)
        elif line == "#" or line.startswith(_AFTER_REMARKS):
            break
        else:
            remarks.append(line)
    return Comments(
        made,
        {name: tuple(held) for name, held in made_for.items()},
        tuple(remarks),
        next((found[1] for found in map(_NAMED.match, rest) if found is not None), None),
        tuple(_variables(rest)),
    )


def exported(made: tuple[str, ...], name: str) -> tuple[str, ...]:
    """``made``, and that the same packages were written once more, out of the file called ``name``.

    By which envsolve is not said: a newer one writes the same.
    """
    return (*made, one_line(f"{_EXPORTED}{name} by envsolve"))


def sound_facts(facts: Mapping[str, object]) -> dict[str, Value]:
    """``facts`` as far as they are what a lock records: people may have put anything into the file."""
    return {key: _sound(value) for key, value in facts.items() if _BARE_KEY.match(key) and value is not None}


def _sound(value: object) -> Value:
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return sound_facts({str(key): held for key, held in value.items()})
    return [_sound(it) for it in value] if isinstance(value, list | tuple) else str(value)


def _on_top(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.startswith("#"):
            return
        yield line


def _variables(lines: list[str]) -> Iterator[tuple[str, str]]:
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
