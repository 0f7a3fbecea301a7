"""One line on a terminal that says what is going on; nothing where nobody watches."""

from __future__ import annotations

import sys

import click

from envsolve.boundary.display import one_line

_WIDTH = 78


class Progress:
    """The line; ``wanted`` says whether the user wants any, ``doing`` what it is about."""

    def __init__(self, *, wanted: bool, doing: str = "resolving") -> None:
        self._doing = doing
        self._shown = False
        self._wanted = wanted and sys.stderr is not None and sys.stderr.isatty()

    def packages(self, count: int, name: str) -> None:
        """Say that ``name`` is the last of ``count`` packages."""
        self.show(f"{count} packages, {name}")

    def show(self, text: str) -> None:
        """Say what is being done to ``text``."""
        if self._wanted:
            self._shown = True
            click.echo(f"\r{f'{self._doing}: {one_line(text)}'[:_WIDTH]:<{_WIDTH}}", err=True, nl=False)

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            click.echo(f"\r{'':<{_WIDTH}}\r", err=True, nl=False)
