"""The directories that this user's envsolve makes into environments, recorded where no one else can write.

A record in a directory proves nothing, since whoever provides the directory can write one. So each directory is claimed
in the user's own state directory before anything is written to it, by its path and its inode number. The time of the
claim is the last sign of life of the command that worked there: younger files are not from that command.

Once an environment is finished, its files are listed in it with their sizes and times, and the claim has the digest of
that list: files that are not listed, or were changed since, belong to the user. Files that Python compiles are ignored.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b, sha256
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError, json_value, read_bytes, replace_file
from envsolve.boundary.user_directories import state_directory
from envsolve.create.record import LOCKS

_FOLDER = "environments"
_BEAT = 1.0
"""Seconds between two signs of life."""
_GRACE = 10.0
"""Seconds after the last sign in which an installer may still have written: it outlives a command that is killed."""
_LONGEST = 64 * 1024
_LONGEST_LIST = 64 * 1024 * 1024
"""Bytes of a list of files. One with 100,000 files has 13 MB."""
_COMPILED = "__pycache__"
LIST = "files.list"
"""The list of files, in the directory with the lock."""


class _Claim(NamedTuple):
    """The last sign of life of the command that claimed the directory, and the digest of the list ("" without one)."""

    last_sign: float
    files: str


@contextmanager
def claiming(prefix: Path) -> Iterator[None]:
    """Claim the empty directory at ``prefix``, and give signs of life until the block is left.

    If the claim cannot be written, the directory is still made; after a kill it then belongs to no one.
    """
    file, before = _file(prefix), _claim(prefix)
    ended = threading.Event()
    files = "" if before is None else before.files  # of an environment that was set aside, and may come back
    if file is None or not _write(file, prefix, files):
        yield
        return
    thread = threading.Thread(target=_beat, args=(file, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _touch(file)


def release(prefix: Path) -> None:
    """Drop the claim: the directory is empty."""
    file = _file(prefix)
    if file is not None:
        with suppress(OSError):
            file.unlink()


def is_claimed(prefix: Path) -> bool:
    """Whether this user's envsolve began to make the directory that is at ``prefix`` now."""
    return _claim(prefix) is not None


def list_files(prefix: Path, ignored: tuple[str, ...], foreign: Collection[Path]) -> None:
    """List the files of the claimed and finished directory, except those that are ``foreign``. Raises OSError.

    Top-level entries in ``ignored`` are skipped.
    """
    file = _file(prefix)
    if file is None or not is_claimed(prefix):
        return
    own = sorted(it for it in _files(prefix, ignored) if Path(it) not in foreign)
    content = b"\0".join(os.fsencode(f"{_state(os.lstat(prefix / it))} {it}") for it in own)
    (prefix / LOCKS / LIST).write_bytes(content)
    _write(file, prefix, _digest(content))


def foreign_files(prefix: Path, ignored: tuple[str, ...]) -> Iterator[Path]:
    """The files in the finished directory that are not on its list, or that were changed since.

    Empty files are excluded, since nothing is lost with them.
    """
    claim = _claim(prefix)
    listed = {} if claim is None else _listed(prefix, claim)
    for name in _files(prefix, ignored):
        facts = os.lstat(prefix / name)
        if listed.get(name) != _state(facts) and facts.st_size:
            yield Path(name)


def altered_files(prefix: Path) -> Iterator[Path]:
    """The files on the list of the finished directory that are gone, or that were changed since."""
    claim = _claim(prefix)
    for name, state in ({} if claim is None else _listed(prefix, claim)).items():
        path = prefix / name
        if not os.path.lexists(path) or _state(os.lstat(path)) != state:
            yield Path(name)


def _state(facts: os.stat_result) -> str:
    """A text that changes when a file is written or replaced by a link."""
    return f"{facts.st_size}:{facts.st_mtime_ns}"


def younger_files(prefix: Path, ignored: tuple[str, ...]) -> Iterator[Path]:
    """The files in the claimed directory that were put there after the command that claimed it had ended.

    Top-level entries in ``ignored`` are skipped.
    """
    claim = _claim(prefix)
    for name in _files(prefix, ignored):
        facts = os.lstat(prefix / name)
        if claim is None or max(facts.st_mtime, facts.st_ctime) > claim.last_sign + _GRACE:
            yield Path(name)


def _files(prefix: Path, ignored: tuple[str, ...]) -> Iterator[str]:
    """The files and links in a directory, by their paths in it, without what Python compiled."""
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(prefix / folder) as entries:
            for entry in entries:
                name = f"{folder}{entry.name}"
                if entry.name == _COMPILED or name in ignored:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{name}/")
                else:
                    yield name


def _listed(prefix: Path, claim: _Claim) -> dict[str, str]:
    """The files on the list with their states; none if it is not the list that was made."""
    try:
        content = read_bytes(prefix / LOCKS / LIST, _LONGEST_LIST, follow=False) or b""
    except FileError:
        return {}
    if not content or _digest(content) != claim.files:
        return {}
    entries = (os.fsdecode(it).partition(" ") for it in content.split(b"\0"))
    return {name: state for state, _, name in entries}


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _claim(prefix: Path) -> _Claim | None:
    """The claim on the directory that is at ``prefix`` now."""
    file = _file(prefix)
    try:
        content = None if file is None else read_bytes(file, _LONGEST, follow=False)
        claim = None if content is None else json_value(content)
        if file is None or not isinstance(claim, dict) or not claim.items() >= _identity(prefix).items():
            return None
        return _Claim(file.stat().st_mtime, str(claim.get("files", "")))
    except (FileError, OSError, TypeError):
        return None


def _file(prefix: Path) -> Path | None:
    directory = state_directory()
    name = blake2b(os.fsencode(prefix), digest_size=16).hexdigest()
    return None if directory is None else directory / _FOLDER / f"{name}.json"


def _identity(prefix: Path) -> dict[str, object]:
    return {"prefix": str(prefix), "number": prefix.stat().st_ino}


def _write(file: Path, prefix: Path, files: str = "") -> bool:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(file, json.dumps({**_identity(prefix), "files": files}).encode())
    except OSError:
        return False
    return True


def _beat(file: Path, ended: threading.Event) -> None:
    while not ended.wait(_BEAT):
        _touch(file)


def _touch(file: Path) -> None:
    with suppress(OSError):
        os.utime(file)
