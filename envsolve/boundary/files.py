"""Read files that others wrote: regular files only, up to a limit, and without waiting forever. Replace own ones.

A checkout or an environment may contain a FIFO that no program writes to, a link to ``/dev/zero``, or a file of many
gigabytes. A pipe is read only if the user named it on the command line (``-r <(...)``, ``-``).
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from envsolve.boundary.display import short_line

SILENCE = 30.0
"""Seconds to wait for the next bytes of a pipe."""
OPENING = 3.0
"""Seconds to wait for a program that writes to a pipe."""
_CHUNK = 1 << 16
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""Without this, opening a FIFO waits for a writer, and opening a terminal may make it the controlling one."""
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_CAN_POLL = hasattr(select, "poll")
"""Windows has no poll, and cannot open a FIFO by a path."""


class FileError(Exception):
    """The reason why a file cannot be read in the expected form: a sentence, and the line if it is known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason, line)
        self.reason = reason
        self.line = line

    def at(self, path: Path | str) -> str:
        """The place in the file at ``path``, in the form that people and editors use."""
        return str(path) if self.line is None else f"{path}:{self.line}"


def read_bytes(path: Path | str, limit: int, *, follow: bool = True) -> bytes | None:
    """The content of the regular file at ``path``; None if there is no such file.

    Raises FileError if it is not a regular file, is longer than ``limit`` bytes or cannot be read; without ``follow``
    also if ``path`` is a link.
    """
    if not follow and os.path.islink(path):  # noqa: PTH114 - it never raises
        raise FileError("it is a link")
    with _open(path, _require_regular, 0 if follow else _NO_LINK) as descriptor:
        return None if descriptor is None else _limited(_pieces(descriptor), limit)


def read_head(path: Path | str, limit: int) -> bytes | None:
    """The first ``limit`` bytes of the regular file at ``path``; None if there is no such file.

    Raises FileError if it is not a regular file or cannot be read.
    """
    with _open(path, _require_regular) as descriptor:
        if descriptor is None:
            return None
        content = bytearray()
        for piece in _pieces(descriptor):
            content += piece
            if len(content) >= limit:
                break
        return bytes(content[:limit])


def open_regular(path: Path | str) -> BinaryIO:
    """The regular file at ``path``, open for reading in parts. Raises OSError, also for anything but a regular file."""
    descriptor = os.open(path, _READ | _NO_WAIT)
    try:
        _require_regular(descriptor)
        return open(descriptor, "rb")  # noqa: PTH123 - a descriptor
    except FileError as error:
        os.close(descriptor)
        raise OSError(errno.EINVAL, error.reason, os.fspath(path)) from None


def read_text(path: Path | str, limit: int) -> str | None:
    """The text of the regular file at ``path``; None if there is no such file. Errors as in :func:`read_bytes`."""
    content = read_bytes(path, limit)
    return None if content is None else decoded(content)


def read_argument(name: str, limit: int) -> bytes | None:
    """The content of a file or a pipe that the user named on the command line, or of standard input for ``-``.

    None if there is no such file. Raises FileError like :func:`read_bytes`, for a pipe that no program writes to, and
    for a pipe that is silent for :data:`SILENCE` seconds.
    """
    if name == "-":
        return _limited(_stdin_pieces(), limit)
    with _open(name, _require_readable) as descriptor:
        return None if descriptor is None else _limited(_pieces(descriptor), limit)


def open_argument(name: str) -> BinaryIO:
    """The file or pipe that the user named on the command line, for reading in pieces, of any length.

    ``-`` is standard input, which is read for as long as the program behind it runs. Raises FileError like
    :func:`read_argument`, and if there is no such file. Reading a pipe that is silent for too long raises OSError.
    """
    if name == "-":
        _require_stdin()
        return sys.stdin.buffer
    descriptor = _opened(name, 0)
    if descriptor is None:
        raise FileError("there is no such file")
    try:
        _require_readable(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    if _CAN_POLL and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return io.BufferedReader(_Pipe(descriptor))
    return os.fdopen(descriptor, "rb")


class _Pipe(io.RawIOBase):
    """A pipe whose silence is limited to :data:`SILENCE`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            piece = _of_pipe(self._descriptor, len(buffer))
        except FileError as error:
            raise TimeoutError(errno.ETIMEDOUT, error.reason) from None
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


def replace_file(path: Path, content: bytes) -> None:
    """Replace the file at ``path`` atomically. Raises OSError; the previous file is unchanged then."""
    temporary = path.with_name(f"{path.name}.{os.urandom(6).hex()}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def link_in(directory: Path, name: str) -> str | None:
    """The first part of the path ``name`` in ``directory`` that is a link, as a path in it; None if there is none.

    Raises OSError or ValueError for a name that the system does not accept.
    """
    parts = Path(name).parts
    for count in range(1, len(parts) + 1):
        part = Path(*parts[:count])
        if (directory / part).is_symlink():
            return part.as_posix()
    return None


def decoded(content: bytes) -> str:
    """``content`` as text: UTF-8, or the UTF-16 that ``>`` writes in Windows PowerShell. Raises FileError."""
    try:
        return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise FileError("it is not UTF-8") from None


def json_value(content: bytes | str) -> object:
    """The JSON value in ``content``. Raises FileError, also for one that is nested too deeply."""
    import json

    try:
        return json.loads(content if isinstance(content, str) else decoded(content))
    except ValueError as error:
        raise FileError(f"it is not JSON: {error}") from None
    except RecursionError:
        raise FileError(_TOO_DEEP) from None


def toml_document(text: str) -> dict[str, Any]:
    """The TOML tables in ``text``. Raises FileError, also for a document that is nested too deeply."""
    import tomli

    try:
        return tomli.loads(text)
    except ValueError as error:  # also a number of thousands of digits, which raises no TOMLDecodeError
        raise FileError(f"it is not TOML: {short_line(str(error))}", getattr(error, "lineno", None)) from None
    except RecursionError:
        raise FileError(_TOO_DEEP) from None


_TOO_DEEP = "it is nested too deep"


@contextlib.contextmanager
def _open(path: Path | str, require: Callable[[int], None], flags: int = 0) -> Iterator[int | None]:
    """The descriptor of the file at ``path`` after the check ``require``, None if there is no such file.

    An OSError in the block becomes a FileError.
    """
    descriptor = _opened(path, flags)
    if descriptor is None:
        yield None
        return
    try:
        require(descriptor)
        yield descriptor
    except OSError as error:
        raise _unreadable(error) from None
    finally:
        os.close(descriptor)


def _opened(path: Path | str, flags: int) -> int | None:
    try:
        return os.open(path, _READ | _NO_WAIT | flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise _unreadable(error) from None


def _unreadable(error: OSError | ValueError) -> FileError:
    return FileError(getattr(error, "strerror", None) or "its name is not a valid file name")


def _require_regular(descriptor: int) -> None:
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        raise FileError("it is a directory")
    if not stat.S_ISREG(mode):
        raise FileError("it is a pipe or a device, not a regular file")


def _require_readable(descriptor: int) -> None:
    """Raise FileError for a directory, and for a device without an end, such as ``/dev/zero``."""
    facts = os.fstat(descriptor)
    if stat.S_ISDIR(facts.st_mode):
        raise FileError("it is a directory")
    if stat.S_ISBLK(facts.st_mode) or (stat.S_ISCHR(facts.st_mode) and not _has_end(descriptor, facts)):
        raise FileError("it is a device, not a file")


def _has_end(device: int, facts: os.stat_result) -> bool:
    """Whether a device is a terminal, where a person ends the text, or the null device."""
    return os.isatty(device) or facts.st_rdev == os.stat(os.devnull).st_rdev  # noqa: PTH116 - a constant


def _limited(pieces: Iterable[bytes], limit: int) -> bytes:
    content = bytearray()
    for piece in pieces:
        content += piece
        if len(content) > limit:
            raise FileError(f"it is longer than {limit // 1024} KiB")
    return bytes(content)


def _stdin_pieces() -> Iterator[bytes]:
    descriptor = _require_stdin()
    if descriptor is None:
        yield sys.stdin.read().encode("utf-8", "surrogateescape")
    else:
        yield from _pieces(descriptor)


def _require_stdin() -> int | None:
    """The descriptor of standard input; None if a notebook or a test runner replaced it by an object.

    Raises FileError if it is closed, a directory or a device without an end.
    """
    if sys.stdin is None:
        raise FileError("standard input is closed")
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):
        return None
    _require_readable(descriptor)
    return descriptor


def _pieces(descriptor: int) -> Iterator[bytes]:
    """The bytes of a file up to its end. A terminal has no time limit, since a person types there; a pipe has one."""
    is_pipe = _CAN_POLL and stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    while piece := _of_pipe(descriptor, _CHUNK) if is_pipe else os.read(descriptor, _CHUNK):
        yield piece


def _of_pipe(descriptor: int, size: int) -> bytes:
    """The next bytes of a pipe; b"" at its end.

    Raises FileError if none arrive: a pipe that no one opens never ends.
    """
    if not _is_ready(descriptor, OPENING):
        if not os.get_blocking(descriptor):
            with contextlib.suppress(BlockingIOError):  # raised if a program has it open
                if piece := os.read(descriptor, size):
                    return piece
                raise FileError("no program writes to this pipe")
        if not _is_ready(descriptor, SILENCE):
            raise FileError(f"nothing was written to this pipe for {SILENCE:g} seconds")
    return os.read(descriptor, size)


def _is_ready(descriptor: int, seconds: float) -> bool:
    """Whether the pipe has data or has ended, after waiting for up to ``seconds``."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(seconds * 1000))
