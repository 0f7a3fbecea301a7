"""What differs between the command that a file says it was made with and the one that a project comes to now.

Both are texts of :func:`envsolve.app.command.recorded_command`. The driver does not count, as in
:mod:`envsolve.lockfile.maker`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from envsolve.model.names import normalized

_OF_PROJECT = "envsolve lock  # "
_FLAGS = ("--exact", "--allow-builds")
_DRIVER = "--driver"
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_NAMED = ("", "--framework", "machine")
"""Options whose values begin with a name, which may stay while the rest changes; "" is a requirement."""


class Word(NamedTuple):
    """A value that a command gives; ``option`` is "" for a requirement, ``machine`` for one that a project names."""

    option: str
    value: str

    @property
    def text(self) -> str:
        """As a person would type it."""
        if self.option in ("", "machine"):
            return self.value
        return f"{self.option} {shlex.quote(self.value)}".strip() if self.value else self.option

    @property
    def key(self) -> tuple[str, str]:
        """What it is about: two words with one key are one thing that changed."""
        name = _NAME.match(self.value) if self.option in _NAMED else None
        return self.option, "" if name is None else normalized(name[0])


def command_changes(made: str, wanted: str) -> str:
    """The words that differ, as a sentence; "" where none does."""
    try:
        before, now = _words(made), _words(wanted)
    except ValueError:  # an odd quote, in a file that somebody edited
        return f"it was made with `{made}`, and now that is `{wanted}`"
    gone = [word for word in before if word not in now]
    new = [word for word in now if word not in before]
    changed = [(old, word) for old in gone for word in new if old.key == word.key]
    once = [pair for pair in changed if all(_is_one(word, (gone, new)) for word in pair)]
    told = [f"it was made for {old.text}, and the project asks for {word.text}" for old, word in once]
    told += [f"{word.text} is new" for word in new if word not in [pair[1] for pair in once]]
    told += [f"{word.text} is not asked for any more" for word in gone if word not in [pair[0] for pair in once]]
    return "; ".join(told) or "; ".join(_reordered(before, now))


def _is_one(word: Word, sides: tuple[list[Word], list[Word]]) -> bool:
    return all([it.key for it in side].count(word.key) == 1 for side in sides)


def _reordered(before: list[Word], now: list[Word]) -> Iterator[str]:
    for option in dict.fromkeys(word.option for word in now):
        values = [word for word in now if word.option == option]
        if values != [word for word in before if word.option == option]:
            yield f"{' '.join(word.text for word in values)} comes in this order now"


def _words(command: str) -> list[Word]:
    """Raises ValueError for a quote that does not end."""
    if not command.startswith(_OF_PROJECT):
        return list(_typed(command))
    asked, _, machines = command.removeprefix(_OF_PROJECT).rpartition(" for ")
    return [*_typed(asked), *(Word("machine", _without_driver(it)) for it in machines.split("; "))]


def _typed(command: str) -> Iterator[Word]:
    words = iter(shlex.split(command))
    for word in words:
        if word == "envsolve":
            continue
        option = word if word.startswith("-") else ""
        value = word if not option else "" if option in _FLAGS else next(words, "")
        if option != _DRIVER:
            yield Word(option, value)


def _without_driver(machine: str) -> str:
    return ", ".join(part for part in machine.split(", ") if not part.startswith("driver "))
