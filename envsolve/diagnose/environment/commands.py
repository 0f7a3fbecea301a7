"""Commands of findings for the examined environment and the user's shell, so that they can be pasted.

Checks use the usual form of a command, ``pip install NAME``. Here it gets the environment's own Python, or its
directory for conda, and is quoted for the shell: there are three ways to quote words.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from envsolve.model.finding import Finding

if TYPE_CHECKING:
    from envsolve.diagnose.environment.scene import Scene

_SAFE = re.compile(r"[\w\\/:.,+=@~-]+")
_PROMPT = "PROMPT"
"""A variable that cmd.exe sets for the programs it starts, and PowerShell does not."""
_OF_CONDA = ("install", "update", "remove", "list")
_NAMES_ONE = {"-p", "-n", "--prefix", "--name"}
_OPERATOR = re.compile(r"[|&;<>]+")
_ASSIGNED = re.compile(r"(\w+)=(.*)", re.DOTALL)


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


def bound(finding: Finding, scene: Scene) -> Finding:
    """The finding with commands for this environment, without duplicates."""
    commands = (here for command in finding.commands for here in _bound(command, scene))
    return finding._replace(commands=tuple(dict.fromkeys(commands)))


def _bound(command: str, scene: Scene) -> Iterator[str]:
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words or any(map(_OPERATOR.fullmatch, words)) or "$" in command:
        yield command
        return
    shell = scene.shell_kind
    match words:
        case ["pip", verb, *rest]:
            yield shell.joined(pip_command(verb, rest, scene))
        case ["python", "-m", *rest]:
            yield shell.joined([str(scene.inventory.executable), "-m", *rest])
        case ["conda", verb, *rest] if verb in _OF_CONDA and not _NAMES_ONE.intersection(rest):
            yield shell.joined(["conda", verb, "-p", str(scene.inventory.prefix), *rest])
        case ["envsolve", "--framework", *_]:
            yield from filter(None, [scene.fix_plan])
        case ["unset", *names]:
            yield from shell.unset(names)
        case ["export", assigned] if (match := _ASSIGNED.fullmatch(assigned)) is not None:
            yield shell.set(match[1], match[2])
        case ["rm", "-r", *paths]:
            yield shell.removal(paths)
        case _:
            yield from (command,) if shell is Shell.POSIX else _elsewhere(words, shell)


def pip_command(verb: str, rest: Sequence[str], scene: Scene) -> list[str]:
    """The environment's own pip; if it has none, uv, which needs no pip and never asks for confirmation."""
    python = str(scene.inventory.executable)
    if scene.packages.get("pip") is not None:
        return [python, "-m", "pip", verb, *rest]
    return ["uv", "pip", verb, "--python", python, *(it for it in rest if it != "-y")]


def _elsewhere(words: Sequence[str], shell: Shell) -> Iterator[str]:
    """A command of another kind on Windows, where a variable is set by a separate command before it."""
    assigned = _ASSIGNED.fullmatch(words[0])
    if assigned is not None and len(words) > 1:
        yield shell.set(assigned[1], assigned[2])
        yield shell.joined(words[1:])
    else:
        yield shell.joined(words)
