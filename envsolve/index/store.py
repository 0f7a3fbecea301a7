"""The cache of package indexes: one file for each entry, found by its key.

The cache is optional: if anything is wrong with it, commands work without it. Every file has a checksum and its key. A
file that does not match them is removed and counts as absent. Files are replaced atomically, so processes and threads
can share a directory. Nothing is synced to the disk, because the checksum detects files that a power failure damaged.
The cache also has pages of private indexes, so only this user can read the files, and a folder that belongs to another
user is not used.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from envsolve.boundary.files import open_regular
from envsolve.boundary.user_directories import cache_directory, sharing_problem
from envsolve.errors import UsageError

T = TypeVar("T")

DEFAULT_LIMIT = 1_000_000_000
"""The size limit of the cache in bytes; ENVSOLVE_CACHE_SIZE sets another one."""
_MAX_AGE = 90 * 86400.0
"""Seconds after which an unused entry is removed, even if the cache is below its limit."""

_FORMAT = b"envsolve-kept-2\n"
_CHECKSUM_SIZE = 16
_FOLDER = "kept"
"""Below the directory of the cache. Only files in it are removed: the directory itself can contain other files."""
_OURS = {"matrix", "matrix-refresh"}
"""Other folders of envsolve and of the matrix scripts in the directory of the cache."""
_SUFFIX = ".kept"
_UNFINISHED = ".part"
_STAMP = "pruned"
_PRUNE_INTERVAL = 86400.0
_USE_INTERVAL = 86400.0
"""Seconds between two updates of the time of use of an entry. A day is exact enough to find the oldest entries."""
_UNFINISHED_AGE = 3600.0
"""Seconds after which an unfinished file counts as abandoned."""
_READABLE = 40
_NOT_READABLE = re.compile(r"[^A-Za-z0-9]+")
_TAG = """Signature: 8a477f597d28d172789f06886806bc55
# This directory holds a cache of envsolve: backups may leave it out (bford.info/cachedir).
"""
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE | re.ASCII)


class Amount(NamedTuple):
    """A number of files of the cache, and their size in bytes."""

    files: int
    bytes: int


class _Entry(NamedTuple):
    """A file of the cache; ``used`` is the time of its last use, in seconds since the epoch."""

    used: float
    size: int
    path: str


class Store:
    """The cache in one directory. Safe for several threads and processes at once.

    ``limit`` is its size limit in bytes, checked at most once a day. ``failure`` is a sentence for a note if the
    directory cannot be used or written to, else None; no exception is raised for it.
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
        """The content stored under ``key``; None if there is none, or it is damaged."""
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
        """Store ``content`` under ``key``, replacing an existing entry. ``failure`` says if that is not possible."""
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

    def size(self) -> Amount:
        """The size of all entries, with abandoned unfinished files."""
        entries = list(self._entries())
        return Amount(len(entries), sum(entry.size for entry in entries))

    def prune(self) -> Amount:
        """Remove entries unused for 90 days, then the least recently used ones down to ``limit``.

        Abandoned unfinished files are removed too. Returns the amount that was removed.
        """
        now = time.time()
        entries = sorted(self._entries())
        left = sum(entry.size for entry in entries)
        gone = []
        for entry in entries:
            dead = entry.path.endswith(_UNFINISHED) and now - entry.used > _UNFINISHED_AGE
            if (dead or left > self.limit or now - entry.used > _MAX_AGE) and _unlink(entry.path):
                left -= entry.size
                gone.append(entry.size)
        return Amount(len(gone), sum(gone))

    def clear(self) -> Amount:
        """Remove all entries, but nothing else in the directory. Returns the amount that was removed."""
        gone = [entry.size for entry in self._entries() if _unlink(entry.path)]
        return Amount(len(gone), sum(gone))

    def _path(self, bucket: str, key: str) -> str:
        """A file name that every system accepts: the end of the key, for people, and the digest of the key."""
        assert bucket.isidentifier(), bucket
        readable = _NOT_READABLE.sub("-", key[-_READABLE:])
        return f"{self._prefix}{bucket}{os.sep}{readable}-{blake2b(_bytes(key), digest_size=16).hexdigest()}{_SUFFIX}"

    def _is_safe(self) -> bool:
        """Whether no other user can write to the folder of the entries; checked once. A missing folder is safe."""
        if self._safe is None:
            nowhere = "this user has no home directory, and no cache directory is set"
            problem = nowhere if self.directory is None else sharing_problem(self.directory, self._root)
            if problem is not None:
                self.failure = f"the cache is not used: {problem}"
            self._safe = problem is None
        return self._safe

    def _make_folders(self, bucket: str) -> bool:
        """Make missing folders. Returns whether they are safe then, because another user could have made them first."""
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
        """Prune at the first write of a process, at most once a day."""
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
        """Every file of the cache. Files that disappear meanwhile are skipped."""
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
    """The cache in the directory ``given`` (--cache-dir), else in ENVSOLVE_CACHE_DIR, else in this user's directory.

    Raises UsageError if ENVSOLVE_CACHE_SIZE is not a size.
    """
    named = given or environ.get("ENVSOLVE_CACHE_DIR")
    directory = Path(named).absolute() if named else cache_directory()
    size = environ.get("ENVSOLVE_CACHE_SIZE")
    try:
        return Store(directory, limit=parse_size(size) if size else DEFAULT_LIMIT)
    except ValueError as error:
        raise UsageError("invalid-cache-size", f"ENVSOLVE_CACHE_SIZE: {error}") from error


def parse_size(text: str) -> int:
    """The bytes in ``500000000``, ``500MB`` or ``2GB``; a kB has 1000. Raises ValueError with a sentence."""
    found = _SIZE.fullmatch(text.strip())
    unit = None if found is None else _UNITS.get(found[2].lower())
    if found is None or unit is None:
        raise ValueError(f"{text!r} is not a size; write bytes, 500MB or 2GB")
    return int(min(float(found[1]) * unit, sys.maxsize))


def encoded(value: object) -> bytes:
    """``value`` as the cache stores it."""
    return msgspec.msgpack.encode(value)


def decoded(content: bytes | None, kind: type[T]) -> T | None:
    """The value of type ``kind`` in ``content``; None if there is none, or another version of envsolve stored it."""
    try:
        return None if content is None else msgspec.msgpack.decode(content, type=kind)
    except (ValueError, RecursionError):
        return None


def _bytes(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


def _whole(key: str, content: bytes) -> bytes:
    """The bytes of a file: format, checksum of the rest, key and content."""
    record = msgspec.msgpack.encode((_bytes(key), content))
    return _FORMAT + blake2b(record, digest_size=_CHECKSUM_SIZE).digest() + record


def _read(path: str, key: str) -> tuple[bytes | None, os.stat_result]:
    """The content of a file if it is intact and stored under ``key``, else None; and the status of the file."""
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
    """Remove the file that was ``read``, unless another thread or process has replaced it."""
    with suppress(OSError):
        there = os.stat(path)  # noqa: PTH116 - a string
        if (there.st_ino, there.st_mtime_ns) == (read.st_ino, read.st_mtime_ns):
            os.unlink(path)  # noqa: PTH108


def _replace(path: str, whole: bytes) -> None:
    """Replace the file at ``path`` atomically. Raises OSError; the previous file is unchanged then."""
    temporary = f"{path}.{os.urandom(6).hex()}{_UNFINISHED}"
    try:
        with open(temporary, "xb", opener=_for_this_user) as file:
            file.write(whole)
        os.replace(temporary, path)  # noqa: PTH105 - two strings
    except OSError as error:
        _unlink(temporary)
        if sys.platform == "win32" and isinstance(error, PermissionError):
            return  # another process has the file of this key open, so the entry exists already
        raise


def _for_this_user(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _unlink(path: str) -> bool:
    """Remove a file. Returns whether this call removed it."""
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
