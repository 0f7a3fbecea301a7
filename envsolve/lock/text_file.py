"""Text files that people and other tools wrote: how much of one is read, in which encoding, and how it is shown."""

from __future__ import annotations

import re
from pathlib import Path

from envsolve.lock.sound_pins import without_credentials_in

_LONGEST_SHOWN = 80
_LONGEST_CLEAN = 2000
_TOKEN = re.compile(r"/t/[^/\s'\"]+")


class FileError(Exception):
    """Why a file cannot be read as what it should be: a sentence, and the line where that is known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason, line)
        self.reason = reason
        self.line = line

    def at(self, path: Path) -> str:
        """The place in the file at ``path``, as a person or an editor finds it."""
        return str(path) if self.line is None else f"{path}:{self.line}"


def read_text(path: Path, limit: int) -> str | None:
    """The text of the file at ``path``; None where there is none.

    UTF-8, or the UTF-16 that ``>`` writes in Windows PowerShell, which conda reads as well. Raises FileError for what
    is no text, cannot be read, or is longer than ``limit`` bytes, of which no more are read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FileError(getattr(error, "strerror", None) or "it has no name that a file can have") from None
    if len(content) > limit:
        raise FileError(f"it is longer than {limit // 1024} KiB")
    try:
        return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise FileError("it is not UTF-8") from None


def shown(text: str) -> str:
    """``text`` of a file as a message may quote it: in quotes, on one line, short, and without credentials."""
    safe = clean(text)
    return repr(safe if len(safe) <= _LONGEST_SHOWN else f"{safe[:_LONGEST_SHOWN]}...")


def clean(text: str) -> str:
    """``text`` of a file, or what was said about one, without credentials; of a long one the beginning."""
    return _TOKEN.sub("", without_credentials_in(text[:_LONGEST_CLEAN]))
