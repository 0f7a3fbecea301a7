"""Commands for the user's shell: there are three ways to quote words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from enum import Enum

_SAFE = re.compile(r"[\w\\/:.,+=@~-]+")
_PROMPT = "PROMPT"
"""A variable that cmd.exe sets for the programs it starts, and PowerShell does not."""


class Shell(Enum):
    """A kind of shell."""

    POSIX = "sh"
    POWERSHELL = "PowerShell"
    CMD = "cmd"

    def quoted(self, word: str) -> str:
        """``word``, quoted so that the shell passes it on unchanged. A name on Windows contains no ``"``."""
        if self is Shell.POSIX:
            return shlex.quote(word)
        if _SAFE.fullmatch(word):
            return word
        return f'"{word}"' if self is Shell.CMD else "'" + word.replace("'", "''") + "'"

    def joined(self, words: Iterable[str]) -> str:
        """A command.

        PowerShell takes a quoted word at the beginning for a string, unless ``&`` marks it as a command.
        """
        first, *others = words
        called = "& " if self is Shell.POWERSHELL and self.quoted(first) != first else ""
        return called + " ".join(map(self.quoted, (first, *others)))

    def unset(self, names: Iterable[str]) -> tuple[str, ...]:
        """The commands that remove variables."""
        if self is Shell.POSIX:
            return (f"unset {' '.join(names)}",)
        if self is Shell.CMD:
            return tuple(f"set {name}=" for name in names)
        return (f"Remove-Item {', '.join(f'Env:{name}' for name in names)}",)

    def set(self, name: str, value: str) -> str:
        """The command that sets a variable for later commands."""
        if self is Shell.POSIX:
            return f"export {name}={shlex.quote(value)}"
        return f'set "{name}={value}"' if self is Shell.CMD else f"$Env:{name} = '" + value.replace("'", "''") + "'"

    def removal(self, paths: Iterable[str]) -> str:
        """The command that removes directories with their content."""
        words = {Shell.POSIX: "rm -r", Shell.POWERSHELL: "Remove-Item -Recurse", Shell.CMD: "rmdir /s"}[self]
        separator = ", " if self is Shell.POWERSHELL else " "
        return f"{words} {separator.join(map(self.quoted, paths))}"


def shell_of(environ: Mapping[str, str], *, windows: bool) -> Shell:
    """The user's shell, as far as variables show it: on Windows cmd is recognised by its prompt."""
    if not windows:
        return Shell.POSIX
    return Shell.CMD if environ.get(_PROMPT) else Shell.POWERSHELL
