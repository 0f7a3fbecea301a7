"""One line on a terminal that shows the current step; nothing if there is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from shutil import get_terminal_size
from threading import Event, Thread
from time import monotonic
from typing import Any, Self

import click

from envsolve.boundary.display import one_line

_WIDTH = 78
_SOON = 3
"""Seconds after which a step shows its duration: a shorter one does not look hung."""


class Progress:
    """The line; ``wanted`` says whether the user wants it, ``doing`` what the command does.

    Leaving a ``with`` block removes it.
    A long step counts its seconds, so that a large download does not look like a program that hangs.
    """

    def __init__(self, *, wanted: bool, doing: str = "resolving") -> None:
        self._doing = doing
        self._wanted = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._text = ""
        self._since = 0.0
        self._ended = Event()
        self._clock: Thread | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any], doing: str = "resolving") -> Self:
        """The line for a command with these options: -q and --no-progress, if it has that, turn it off."""
        return cls(wanted=not (options["quiet"] or options.get("no_progress")), doing=doing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def packages(self, count: int, name: str) -> None:
        """Show that ``name`` is the last of ``count`` packages."""
        self.show(f"{count} package{'' if count == 1 else 's'}, {name}")

    def show(self, text: str) -> None:
        """Show that the current step is about ``text``."""
        if not self._wanted:
            return
        self._text, self._since = one_line(text), monotonic()
        self._draw()
        if self._clock is None:
            self._ended.clear()
            self._clock = Thread(target=self._count, daemon=True)
            self._clock.start()

    def clear(self) -> None:
        """Remove the line."""
        if self._clock is not None:
            self._ended.set()
            self._clock.join()
            self._clock = None
            click.echo(f"\r{'':<{min(_WIDTH, get_terminal_size().columns - 1)}}\r", err=True, nl=False)

    def _count(self) -> None:
        while not self._ended.wait(1):
            self._draw()

    def _draw(self) -> None:
        seconds = int(monotonic() - self._since)
        after = f", {seconds} s" if seconds >= _SOON else ""
        width = min(_WIDTH, get_terminal_size().columns - 1)
        line = f"{self._doing}: {self._text}"[: width - len(after)] + after
        click.echo(f"\r{line:<{width}}", err=True, nl=False)
