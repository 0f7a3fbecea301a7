"""What is kept of package indexes between two runs: one file for each answer, found again by its key.

The cache is a convenience: whatever is wrong with it, a command does its work without it. Every file has a checksum and
the key it is for, and what does not hold together is removed and counts as absent. A file is replaced in one step, so
processes and threads may share a directory; nothing is forced to the disk, since the checksum finds out what a power
failure tears. Pages of private indexes are kept as well, so only this user may read the files, and a folder that
belongs to somebody else is not used.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec

from envsolve.boundary.files import open_regular
from envsolve.boundary.user_directories import cache_directory
from envsolve.errors import UsageError

DEFAULT_LIMIT = 1_000_000_000
"""Bytes that the cache may have; ENVSOLVE_CACHE_SIZE sets another bound."""
DEFAULT_AGE = 90 * 86400.0
"""Seconds after which what nobody used is removed, even where there is room."""

_FORMAT = b"envsolve-kept-2\n"
_CHECKSUM_SIZE = 16
_FOLDER = "kept"
"""Below the directory of the cache. All that is removed is in it: the directory itself may hold other things."""
_OURS = {"matrix", "matrix-refresh"}
"""What else envsolve and the scripts of its matrix keep in the directory of the cache."""
_SUFFIX = ".kept"
_UNFINISHED = ".part"
_STAMP = "pruned"
_PRUNE_INTERVAL = 86400.0
_USE_INTERVAL = 86400.0
"""Seconds between two notes that an entry is in use: a day is exact enough to tell the oldest, and saves writing."""
_UNFINISHED_AGE = 3600.0
"""Seconds after which whoever wrote an unfinished file is taken for dead."""
_READABLE = 40
_NOT_READABLE = re.compile(r"[^A-Za-z0-9]+")
_TAG = """Signature: 8a477f597d28d172789f06886806bc55
# This directory holds a cache of envsolve: backups may leave it out (bford.info/cachedir).
"""
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE | re.ASCII)


class Amount(NamedTuple):
    """How much of the cache is meant: a number of files, and their bytes."""

    files: int
    bytes: int


class _Entry(NamedTuple):
    """A file of the cache; ``used`` is when, in seconds since the epoch."""

    used: float
    size: int
    path: str


class Store:
    """The cache in one directory. Safe for several threads and processes at once.

    ``limit`` bounds its bytes, by a look at most once a day. ``failure`` is a sentence for one note where the
    directory cannot be used or written to, else None; nothing is raised for it.
    """

    def __init__(self, directory: Path | None, *, limit: int = DEFAULT_LIMIT) -> None:
        self.directory = directory
        self.limit = limit
        self.failure: str | None = None
        self._root = Path() if directory is None else directory / _FOLDER
        self._prefix = f"{self._root}{os.sep}"
        self._safe: bool | None = None
        self._writable = True
        self._looked_for_age = False

    def read(self, bucket: str, key: str) -> bytes | None:
        """What was written under ``key``; None where there is nothing, or nothing that is whole."""
        if not (self._safe or self._is_safe()):
            return None
        path = self._path(bucket, key)
        try:
            content, facts = _read(path, key)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._fail("read", error)
            return None
        if content is None:
            _discard(path, facts)
        elif time.time() - facts.st_mtime > _USE_INTERVAL:
            with suppress(OSError):
                os.utime(path)
        return content

    def write(self, bucket: str, key: str, content: bytes) -> None:
        """Keep ``content`` under ``key``, in place of what is there. Where that fails, ``failure`` says so."""
        if not self._writable or not (self._safe or self._is_safe()):
            return
        path, whole = self._path(bucket, key), _whole(key, content)
        try:
            try:
                _replace(path, whole)
            except FileNotFoundError:
                if self._make_folders(bucket):
                    _replace(path, whole)
            if not self._looked_for_age:
                self._looked_for_age = True
                self._prune_sometimes()
        except OSError as error:
            self._writable = False
            self._fail("written to", error)

    def remove(self, bucket: str, key: str) -> None:
        """Forget what is kept under ``key``, if anything is."""
        if self._safe or self._is_safe():
            _unlink(self._path(bucket, key))

    def size(self) -> Amount:
        """What is kept, with the rests of writers that died."""
        entries = list(self._entries())
        return Amount(len(entries), sum(entry.size for entry in entries))

    def prune(self, limit_bytes: int | None = None, max_age_seconds: float = DEFAULT_AGE) -> Amount:
        """Remove what was not used for ``max_age_seconds``, then the longest unused until ``limit_bytes`` are left.

        Returns what was removed. Rests of writers that died go as well.
        """
        limit = self.limit if limit_bytes is None else limit_bytes
        now = time.time()
        entries = sorted(self._entries())
        left = sum(entry.size for entry in entries)
        gone = []
        for entry in entries:
            dead = entry.path.endswith(_UNFINISHED) and now - entry.used > _UNFINISHED_AGE
            if (dead or left > limit or now - entry.used > max_age_seconds) and _unlink(entry.path):
                left -= entry.size
                gone.append(entry.size)
        return Amount(len(gone), sum(gone))

    def clear(self) -> Amount:
        """Remove everything that is kept, and return how much that was. Nothing else in the directory is touched."""
        gone = [entry.size for entry in self._entries() if _unlink(entry.path)]
        return Amount(len(gone), sum(gone))

    def _path(self, bucket: str, key: str) -> str:
        """A name that every system takes: the end of the key to be read, and the digest that tells keys apart."""
        assert bucket.isidentifier(), bucket
        readable = _NOT_READABLE.sub("-", key[-_READABLE:])
        return f"{self._prefix}{bucket}{os.sep}{readable}-{blake2b(_bytes(key), digest_size=16).hexdigest()}{_SUFFIX}"

    def _is_safe(self) -> bool:
        """Whether nobody else can put files where this user's are kept; asked once. What is not there yet is safe."""
        if self._safe is None:
            nowhere = "this user has no home directory, and no cache directory is set"
            problem = nowhere if self.directory is None else _problem(self.directory, self._root)
            if problem is not None:
                self.failure = f"the cache is not used: {problem}"
            self._safe = problem is None
        return self._safe

    def _make_folders(self, bucket: str) -> bool:
        """Make what is missing; whether it is safe then, as somebody else may have been faster."""
        assert self.directory is not None
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = {path.name for path in self.directory.iterdir()} <= _OURS
        for folder in (self._root, self._root / bucket):
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
        if fresh:
            (self.directory / "CACHEDIR.TAG").write_text(_TAG, encoding="ascii")
            (self.directory / ".gitignore").write_text("*\n", encoding="ascii")
        self._safe = None
        return self._is_safe()

    def _prune_sometimes(self) -> None:
        """Keep the bound, at the first write of a process and where nobody has looked for a day."""
        stamp = self._root / _STAMP
        try:
            due = time.time() - stamp.stat().st_mtime > _PRUNE_INTERVAL
        except FileNotFoundError:
            due = False
            stamp.touch(mode=0o600)
        if due:
            stamp.touch()
            self.prune()

    def _entries(self) -> Iterator[_Entry]:
        """Every file of the cache; those that go away meanwhile are left out."""
        if not self._is_safe():
            return
        try:
            for folder in list(os.scandir(self._root)):
                if folder.is_dir(follow_symlinks=False):
                    yield from _entries_of(folder.path)
        except FileNotFoundError:
            return
        except OSError as error:
            self._fail("read", error)

    def _fail(self, deed: str, error: OSError) -> None:
        if self.failure is None:
            self.failure = f"the cache in {self.directory} cannot be {deed}: {error.strerror or error}"


def store_at(given: str | None, environ: Mapping[str, str]) -> Store:
    """The cache in the directory ``given`` (by --cache-dir), else ENVSOLVE_CACHE_DIR, else this user's.

    Raises UsageError where ENVSOLVE_CACHE_SIZE is no number of bytes.
    """
    named = given or environ.get("ENVSOLVE_CACHE_DIR")
    directory = Path(named).absolute() if named else cache_directory()
    size = environ.get("ENVSOLVE_CACHE_SIZE")
    try:
        return Store(directory, limit=parse_size(size) if size else DEFAULT_LIMIT)
    except ValueError as error:
        raise UsageError("invalid-cache-size", f"ENVSOLVE_CACHE_SIZE: {error}") from error


def parse_size(text: str) -> int:
    """Bytes as in ``500000000``, ``500MB`` or ``2GB``, where a kB has 1000. Raises ValueError with a sentence."""
    found = _SIZE.fullmatch(text.strip())
    unit = None if found is None else _UNITS.get(found[2].lower())
    if found is None or unit is None:
        raise ValueError(f"{text!r} is not a size; write bytes, 500MB or 2GB")
    return int(min(float(found[1]) * unit, sys.maxsize))


def _problem(directory: Path, root: Path) -> str | None:
    """Why nothing may be kept in ``root``, which lies in ``directory``; None where it may, or is not there yet."""
    if sys.platform == "win32":
        return None
    try:
        if directory.stat().st_uid != os.geteuid():
            return f"{directory} belongs to another user"
        facts = root.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{directory}: {error.strerror}"
    shared = facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if facts.st_uid != os.geteuid() or shared or not stat.S_ISDIR(facts.st_mode):
        return f"{root} is not a directory that only this user can write to"
    return None


def _bytes(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


def _whole(key: str, content: bytes) -> bytes:
    """What a file holds: format, checksum of all that follows it, the key and the content."""
    record = msgspec.msgpack.encode((_bytes(key), content))
    return _FORMAT + blake2b(record, digest_size=_CHECKSUM_SIZE).digest() + record


def _read(path: str, key: str) -> tuple[bytes | None, os.stat_result]:
    """The content of a file that is whole and was written under ``key``, else None; and which file it was."""
    with open_regular(path) as file:
        facts = os.fstat(file.fileno())
        whole = file.read()
    start = len(_FORMAT) + _CHECKSUM_SIZE
    record = whole[start:]
    if whole[:start] != _FORMAT + blake2b(record, digest_size=_CHECKSUM_SIZE).digest():
        return None, facts
    written_under, content = msgspec.msgpack.decode(record, type=tuple[bytes, bytes])
    return (content if written_under == _bytes(key) else None), facts


def _discard(path: str, read: os.stat_result) -> None:
    """Remove the file that was ``read``, unless another thread or process has put a new one in its place."""
    with suppress(OSError):
        there = os.stat(path)  # noqa: PTH116 - a string
        if (there.st_ino, there.st_mtime_ns) == (read.st_ino, read.st_mtime_ns):
            os.unlink(path)  # noqa: PTH108


def _replace(path: str, whole: bytes) -> None:
    """Put a file at ``path`` in one step. Raises OSError; what was there before is then untouched."""
    temporary = f"{path}.{os.urandom(6).hex()}{_UNFINISHED}"
    try:
        with open(temporary, "xb", opener=_for_this_user) as file:
            file.write(whole)
        os.replace(temporary, path)  # noqa: PTH105 - two strings
    except OSError as error:
        _unlink(temporary)
        if sys.platform == "win32" and isinstance(error, PermissionError):
            return  # another process has the file of this key open: it is kept there already
        raise


def _for_this_user(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _unlink(path: str) -> bool:
    """Whether the file is gone by this."""
    try:
        os.unlink(path)  # noqa: PTH108 - a string
    except OSError:
        return False
    return True


def _entries_of(folder: str) -> Iterator[_Entry]:
    for file in list(os.scandir(folder)):
        with suppress(FileNotFoundError):
            if file.name.endswith((_SUFFIX, _UNFINISHED)) and file.is_file(follow_symlinks=False):
                facts = file.stat(follow_symlinks=False)
                yield _Entry(facts.st_mtime, facts.st_size, file.path)
