"""Transcripts in Markdown: a page shows the current output of a command, which is run again.

A block is indented (README) or fenced as ``console`` (docs). What follows a line with a prompt is its output. An HTML
comment above a block of docs says what it needs:

    <!-- file: pyproject.toml -->        the block below is this file, which is written before what follows is run
    <!-- machine: GPU, 8.6, driver 580.65.06, CUDA 13.0 -->    from here on; also ``machine: no GPU``
    <!-- not run: REASON -->             the block below cannot be run here; its output was real where it was
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

PROMPT = "$ "
INDENT = "    "
_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<language>[^`]*)$")
_COMMENT = re.compile(r"^<!-- (?P<word>file|machine|not run): (?P<value>.+) -->$")
Answer = Callable[[str], list[str]]


class Block(NamedTuple):
    """A fenced block: its language, its lines, the comments above it, and where its lines begin and end."""

    language: str
    lines: tuple[str, ...]
    comments: tuple[tuple[str, str], ...]
    begin: int
    end: int

    def says(self, word: str) -> str | None:
        """The value of that word in a comment above it."""
        return dict(self.comments).get(word)

    @property
    def commands(self) -> list[str]:
        """The commands of a transcript; one continued with a backslash is one."""
        return [command for command, _ in transcript(self.lines)]


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in their order."""
    comments: list[tuple[str, str]] = []
    inside: tuple[str, str, int] | None = None
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if inside is not None:
            fence, language, begin = inside
            if line == fence:
                yield Block(language, tuple(lines[begin:number]), tuple(comments), begin, number)
                inside, comments = None, []
        elif (opened := _FENCE.match(line)) is not None:
            inside = (opened["fence"], opened["language"], number + 1)
        elif (comment := _COMMENT.match(line)) is not None:
            comments.append((comment["word"], comment["value"]))
        elif line:
            comments = [it for it in comments if it[0] == "machine"]


def transcript(lines: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """Each command of a block with the lines that show it."""
    found: list[tuple[str, tuple[str, ...]]] = []
    goes_on = False
    for line in lines:
        if goes_on:
            command, shown = found[-1]
            found[-1] = (f"{command}\n{line}", (*shown, line))
        elif line.startswith(PROMPT):
            found.append((line.removeprefix(PROMPT), (line,)))
        else:
            continue
        goes_on = line.endswith("\\")
    return found


def fenced_again(lines: tuple[str, ...], answer: Answer) -> list[str]:
    """The lines of a fenced transcript with the current output."""
    return [it for command, shown in transcript(lines) for it in (*shown, *answer(command))]


def indented_again(text: str, answer: Answer) -> str:
    """``text`` with every indented transcript updated."""
    lines: list[str] = []
    answered = False
    for line in text.splitlines():
        if line.startswith(INDENT + PROMPT):
            lines += [line, *(INDENT + printed for printed in answer(line.removeprefix(INDENT + PROMPT)))]
            answered = True
        elif not (answered and line.startswith(INDENT)):
            lines.append(line)
            answered = False
    return "\n".join(lines) + "\n"
