"""The command that a file says it was made with, as words, and whether two of them ask for the same.

A text is one of :func:`envsolve.app.command.recorded_command`. The driver is none of its words: what a lock rests on is
the lowest driver that it needs, so that a newer one alone makes it no other lock.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple

from envsolve.model.names import normalized

Capability = Callable[[str], str]
"""The compute capability of a GPU as typed; the word itself where it is none."""

_OF_PROJECT = "envsolve lock  # "
_FLAGS = ("--exact", "--allow-builds")
_DRIVER, _GPU = "--driver", "--gpu"
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


def words_of(command: str) -> tuple[Word, ...]:
    """The words of ``command`` in their order. Raises ValueError for a quote that does not end."""
    if not command.startswith(_OF_PROJECT):
        return tuple(_typed(command))
    asked, _, machines = command.removeprefix(_OF_PROJECT).rpartition(" for ")
    return (*_typed(asked), *(Word("machine", _without_driver(it)) for it in machines.split("; ")))


def words_asked_by(command: str, capability: Capability = str) -> tuple[Word, ...]:
    """What ``command`` asks for: its words, with the capabilities of its GPUs in place of their names, each once.

    A command with a quote that does not end is one word.
    """
    try:
        words = words_of(command)
    except ValueError:  # in a file that somebody edited
        return (Word("", command),)
    gpus = sorted({capability(it.value) for it in words if it.option == _GPU})
    return (*(it for it in words if it.option != _GPU), *(Word(_GPU, it) for it in gpus))


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
