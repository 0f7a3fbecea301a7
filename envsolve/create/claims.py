"""Which directories this user's envsolve makes into environments, kept where nobody else can write it.

A record in a directory proves nothing, as whoever hands the directory over can write one. So each directory is claimed
in the user's own state directory before anything is put into it, by its path and its number in the file system. The
time of the claim is the last sign of life of the command that worked there: what is younger was not put there by it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from envsolve.boundary.files import FileError, read_bytes
from envsolve.model.state_directory import state_directory

_FOLDER = "environments"
_BEAT = 1.0
"""Seconds between two signs of life."""
_GRACE = 10.0
"""Seconds after the last sign in which an installer may still have written: it outlives a command that is killed."""
_LONGEST = 64 * 1024


@contextmanager
def claiming(prefix: Path) -> Iterator[None]:
    """Claim the directory at ``prefix``, which is empty, and show life until this is left.

    Where the claim cannot be written, the directory is made all the same, and is nobody's after a kill.
    """
    file = _file(prefix)
    ended = threading.Event()
    if file is None or not _write(file, prefix):
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
    """Drop the claim: nothing is left in the directory."""
    file = _file(prefix)
    if file is not None:
        with suppress(OSError):
            file.unlink()


def is_claimed(prefix: Path) -> bool:
    """Whether this user's envsolve began to make the directory that is at ``prefix`` now."""
    return _last_sign(prefix) is not None


def younger_file(prefix: Path, ignored: tuple[str, ...]) -> Path | None:
    """A file in the claimed directory that was put there after the command that claimed it had ended; None without one.

    What is ``ignored`` at the top is not looked at.
    """
    last = _last_sign(prefix)
    for folder, folders, files in os.walk(prefix):
        if Path(folder) == prefix:
            folders[:] = [it for it in folders if it not in ignored]
            files = [it for it in files if it not in ignored]  # noqa: PLW2901 - of this folder
        links = [it for it in folders if os.path.islink(os.path.join(folder, it))]  # noqa: PTH114, PTH118 - many files
        for name in (*files, *links):
            path = os.path.join(folder, name)  # noqa: PTH118 - many files
            facts = os.lstat(path)
            if last is None or max(facts.st_mtime, facts.st_ctime) > last + _GRACE:
                return Path(path)
    return None


def _last_sign(prefix: Path) -> float | None:
    """When the command that claimed the directory showed life last; None where it is not claimed."""
    file = _file(prefix)
    try:
        content = None if file is None else read_bytes(file, _LONGEST, follow=False)
        if file is None or content is None or json.loads(content) != _told(prefix):
            return None
        return file.stat().st_mtime
    except (FileError, OSError, ValueError):
        return None


def _file(prefix: Path) -> Path | None:
    directory = state_directory()
    name = blake2b(os.fsencode(prefix), digest_size=16).hexdigest()
    return None if directory is None else directory / _FOLDER / f"{name}.json"


def _told(prefix: Path) -> dict[str, object]:
    return {"prefix": str(prefix), "number": prefix.stat().st_ino}


def _write(file: Path, prefix: Path) -> bool:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = file.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(_told(prefix)), encoding="utf-8")
        temporary.replace(file)
    except OSError:
        return False
    return True


def _beat(file: Path, ended: threading.Event) -> None:
    while not ended.wait(_BEAT):
        _touch(file)


def _touch(file: Path) -> None:
    with suppress(OSError):
        os.utime(file)
