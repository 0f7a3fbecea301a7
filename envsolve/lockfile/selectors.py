"""Selectors: the platforms of lines in an environment.yml, as in ``- pywin32 # [win]``.

conda-build invented them, conda-lock reads them in environment files, and CEP 24 specifies them, together with those of
mamba: ``- sel(win): pywin32``. For conda itself a selector is an ordinary comment. So a selector that cannot be
evaluated (``# [py<38]``) is one here, too: its line counts, and a note says so.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from envsolve.model.host import Platform

_OF_PLATFORM = {
    Platform.LINUX_64: {"linux", "unix", "linux64", "x86_64", "x64", "x86"},
    Platform.LINUX_AARCH64: {"linux", "unix", "aarch64"},
    Platform.WIN_64: {"win", "win64", "x86_64", "x64", "x86"},
    Platform.OSX_64: {"osx", "unix", "osx64", "x86_64", "x64", "x86"},
    Platform.OSX_ARM64: {"osx", "unix", "arm64"},
}
_OF_OTHERS = {
    *("arm", "armv6l", "armv7l", "emscripten", "freebsd", "linux32", "ppc64", "ppc64le", "riscv32", "riscv64"),
    *("s390x", "wasi", "wasm32", "win32", "z", "zos"),
}
_KNOWN = {*_OF_OTHERS, *Platform, *(word for words in _OF_PLATFORM.values() for word in words)}
_LONGEST = 100
_LONGEST_LINE = 500
_WORD = re.compile(r"""\s*([()]|[\w.-]+(?:\s*(?:[<>]=?|[=!]=)\s*[\w.'"-]+)?)\s*""")
_COMMENT = re.compile(r"""(?<!\w)"(?:[^"\\]|\\.)*"|(?<!\w)'[^']*'|(?:(?<=\s)|\A)(#.*)""")
"""Quoted text, in which ``#`` starts no comment, or a comment."""
_BRACKET = re.compile(r"\[([^\[\]]+)\][^()\[\]]*\Z")
"""The last bracket of a comment. Parentheses after it make it a link (conda_build/metadata.py, sel_pat)."""
_LINE = re.compile(r"\r\n|\r|\n")


class Selected(NamedTuple):
    """The text of a file with blank lines instead of those for other platforms, so that line numbers stay the same.

    ``unread`` are selectors that cannot be evaluated, each with its line number.
    """

    text: str
    unread: tuple[tuple[int, str], ...]


class _Opened(NamedTuple):
    """A line that starts a collection: its indentation, and whether it is an item of a list."""

    indentation: int
    is_item: bool

    def holds(self, line: str) -> bool:
        """Whether ``line``, which comes after it, is part of the collection."""
        content = line.lstrip()
        indentation = len(line) - len(content)
        deeper = indentation > self.indentation or not content or content.startswith("#")
        return deeper or (indentation == self.indentation and not self.is_item and content.startswith("- "))


def select(text: str, platform: Platform) -> Selected:
    """Return ``text`` for ``platform``. A line that starts a collection is removed together with its content."""
    lines: list[str] = []
    unread: list[tuple[int, str]] = []
    dropped: _Opened | None = None
    for number, line in enumerate(_LINE.split(text), start=1):
        if dropped is not None and dropped.holds(line):
            lines.append("")
            continue
        content, selector, is_plain = _parts(line)
        answer = True if selector is None else holds(selector, platform)
        if selector is not None and answer is None and is_plain:
            unread.append((number, selector))
        dropped = _opened(content) if answer is False else None
        lines.append("" if answer is False else line)
    return Selected("\n".join(lines), tuple(unread))


def holds(expression: str, platform: Platform) -> bool | None:
    """Whether a selector such as ``linux and not aarch64`` matches ``platform``, or None if unknown.

    A part that cannot be evaluated does not matter if the rest decides: ``win and py<38`` does not match Linux.
    """
    words = _words(expression)
    try:
        answer = _either(words, platform)
    except IndexError:
        return None
    return None if words else answer


def _parts(line: str) -> tuple[str, str | None, bool]:
    """The text before the comment, the selector in it, and whether the comment starts with the selector."""
    if len(line) > _LONGEST_LINE or "#" not in line or line.lstrip().startswith("#"):
        return line, None, False
    comment = next((found for found in _COMMENT.finditer(line) if found[1]), None)
    if comment is None:
        return line, None, False
    bracket = _BRACKET.search(comment[1])
    is_plain = comment[1].removeprefix("#").lstrip().startswith("[")
    return line[: comment.start()], None if bracket is None else bracket[1], is_plain


def _opened(content: str) -> _Opened | None:
    written = content.strip()
    if not written.endswith((":", "|", ">")):
        return None
    return _Opened(len(content) - len(content.lstrip()), written.startswith("- "))


def _words(expression: str) -> list[str]:
    """The words of a selector, the last one first; none if it is invalid."""
    words: list[str] = []
    position = 0
    while position < len(expression) <= _LONGEST:
        found = _WORD.match(expression, position)
        if found is None:
            return []
        words.append(found[1])
        position = found.end()
    return words[::-1]


def _either(words: list[str], platform: Platform) -> bool | None:
    answers = [_both(words, platform)]
    while words and words[-1] == "or":
        words.pop()
        answers.append(_both(words, platform))
    return True if True in answers else None if None in answers else False


def _both(words: list[str], platform: Platform) -> bool | None:
    answers = [_one(words, platform)]
    while words and words[-1] == "and":
        words.pop()
        answers.append(_one(words, platform))
    return False if False in answers else None if None in answers else True


def _one(words: list[str], platform: Platform) -> bool | None:
    """The value of one operand. Raises IndexError if there is none."""
    word = words.pop()
    if word == "not":
        answer = _one(words, platform)
        return None if answer is None else not answer
    if word == "(":
        answer = _either(words, platform)
        if words.pop() != ")":
            raise IndexError(word)
        return answer
    if word in (")", "and", "or"):
        raise IndexError(word)
    return word in _OF_PLATFORM[platform] or word == platform if word in _KNOWN else None
