"""The files of one machine by their paths on that machine, also if it is a recorded tree.

Links are followed inside the tree: an absolute link of a recorded machine leads to a file of that machine. What cannot
be read (permissions, a directory too large, no time left) is never skipped silently: it is listed in ``gaps``, and
becomes a finding. On a live machine a system call can still hang on a dead network file system.
"""

from __future__ import annotations

import ntpath
import os
import posixpath
import stat
import time
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

_MOST_LINKS = 40
"""The limit of the Linux kernel: more links are a circle."""
_LOOK_AT_THE_CLOCK = 512
_PIECE = 65536


class Limits(NamedTuple):
    """How much is read: ``entries`` of one directory, ``seconds`` for all directories, ``size`` of one file."""

    entries: int = 20_000
    seconds: float = 10.0
    size: int = 32 * 2**20


class MachineFiles:
    """The files below ``root``. Paths are those of the machine, absolute, as text, in arguments and results."""

    def __init__(
        self, root: Path, *, windows: bool, limits: Limits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._root = root
        self._windows = windows
        self._limits = limits
        self._clock = clock
        self._deadline = clock() + limits.seconds
        self._listed: dict[str, tuple[str, ...]] = {}
        self.gaps: dict[str, str] = {}
        """The reason why a path could not be read."""

    def join(self, *parts: str) -> str:
        """The parts joined with the machine's separator."""
        return ntpath.join(*parts) if self._windows else posixpath.join(*parts)

    def parent(self, path: str) -> str:
        """The directory of ``path``."""
        return ntpath.dirname(path) if self._windows else posixpath.dirname(path)

    def is_absolute(self, path: str) -> bool:
        """Whether ``path`` is independent of the current directory."""
        return bool(ntpath.splitdrive(path)[0]) if self._windows else path.startswith("/")

    def real(self, path: str) -> str | None:
        """``path`` with all links followed; None if it leads to nothing, or in a circle."""
        if self._windows:
            return path if self._status(path) is not None else None
        return self._followed(path)

    def file(self, path: str) -> Path:
        """The file to open for ``path``."""
        return self._at(self.real(path) or path)

    def exists(self, path: str) -> bool:
        """Whether ``path`` exists, following links."""
        return self.real(path) is not None

    def is_directory(self, path: str) -> bool:
        """Whether ``path`` leads to a directory."""
        return self._leads_to(path, stat.S_ISDIR)

    def is_file(self, path: str) -> bool:
        """Whether ``path`` leads to a regular file: reading anything else could block forever."""
        return self._leads_to(path, stat.S_ISREG)

    def size(self, path: str) -> int | None:
        """The size in bytes of the file that ``path`` leads to; None if it is not a regular file."""
        real = self.real(path)
        status = None if real is None else self._status(real)
        return status.st_size if status is not None and stat.S_ISREG(status.st_mode) else None

    def link(self, path: str) -> str | None:
        """The target of the link at ``path`` as written; None if there is no link."""
        try:
            parent = self.real(posixpath.dirname(path))
            return None if parent is None else str(self._at(self.join(parent, posixpath.basename(path))).readlink())
        except (OSError, ValueError):
            return None

    def data(self, path: str) -> bytes | None:
        """The first bytes of a file, as many as the limit allows; None if it cannot be read."""
        if not self.is_file(path):
            return None
        try:
            with self.file(path).open("rb", buffering=0) as file:
                data = b"".join(self._pieces(file))
        except OSError as error:
            self._gap(path, error.strerror or str(error))
            return None
        if len(data) > self._limits.size:
            self._gap(path, f"only its first {self._limits.size} bytes were read")
        return data[: self._limits.size]

    def text(self, path: str) -> str | None:
        """The text of a file without surrounding whitespace and NUL; None if it cannot be read."""
        data = self.data(path)
        return None if data is None else data.decode("utf-8", "replace").strip("\0 \t\r\n")

    def names(self, directory: str) -> tuple[str, ...]:
        """The sorted names in a directory; none if there is no such directory."""
        if directory not in self._listed:
            self._listed[directory] = tuple(sorted(self._names(directory)))
        return self._listed[directory]

    def _pieces(self, file: FileIO) -> Iterator[bytes]:
        """One byte more than the limit, in pieces: the kernel fills no large buffer for a file of /proc/sys."""
        left = self._limits.size + 1
        while left > 0 and (piece := file.read(min(left, _PIECE))):
            left -= len(piece)
            yield piece

    def _names(self, directory: str) -> list[str]:
        if not self.is_directory(directory):
            return []
        found: list[str] = []
        try:
            with os.scandir(self.file(directory)) as entries:
                for number, entry in enumerate(entries):
                    if self._is_enough(directory, number):
                        break
                    found.append(entry.name)
        except OSError as error:
            self._gap(directory, error.strerror or str(error))
        return found

    def _is_enough(self, directory: str, number: int) -> bool:
        if number >= self._limits.entries:
            self._gap(directory, f"it holds more than {self._limits.entries} entries, and only so many were looked at")
            return True
        if number % _LOOK_AT_THE_CLOCK == 0 and self._clock() > self._deadline:
            self._gap(directory, f"no time was left for it after {self._limits.seconds:g} seconds")
            return True
        return False

    def _leads_to(self, path: str, kind: Callable[[int], bool]) -> bool:
        real = self.real(path)
        status = None if real is None else self._status(real)
        return status is not None and kind(status.st_mode)

    def _followed(self, path: str) -> str | None:
        waiting = list(reversed(path.split("/")))
        done, links = "/", 0
        while waiting:
            part = waiting.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = posixpath.dirname(done)
                continue
            place = posixpath.join(done, part)
            status = self._status(place)
            if status is None:
                return None
            if not stat.S_ISLNK(status.st_mode):
                done = place
                continue
            target = self._target(place)
            links += 1
            if target is None or links > _MOST_LINKS:
                return None
            done = "/" if target.startswith("/") else done
            waiting += reversed(target.split("/"))
        return done

    def _target(self, place: str) -> str | None:
        try:
            return str(self._at(place).readlink())
        except OSError as error:
            self._gap(place, error.strerror or str(error))
            return None

    def _status(self, path: str) -> os.stat_result | None:
        """The status of a path whose directory contains no link; on Windows the system follows links."""
        try:
            return self._at(path).stat() if self._windows else self._at(path).lstat()
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        except OSError as error:
            self._gap(path, error.strerror or str(error))
            return None

    def _at(self, path: str) -> Path:
        if not self._windows:
            return self._root / path.lstrip("/")
        if os.name == "nt":
            return Path(path)
        return self._root.joinpath(*_windows_parts(path))

    def _gap(self, path: str, why: str) -> None:
        self.gaps.setdefault(path, why)


def _windows_parts(path: str) -> Iterator[str]:
    r"""``C:\Windows\System32`` as C, Windows, System32: the layout of a recorded Windows machine on another system."""
    parsed = PureWindowsPath(path)
    yield parsed.drive.rstrip(":").upper()
    yield from parsed.parts[1:]
