"""rattler's cache of conda channels: a separate directory in the cache of envsolve.

rattler writes and checks its files itself; here they are counted and removed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

FOLDER = "conda-channels"
"""The directory in the cache."""
_AGE = 90 * 86400.0
"""Seconds after which unused files are removed, as for package indexes."""


class RepodataCache:
    """The directory in a cache directory; all amounts are a number of files and their bytes."""

    def __init__(self, cache_directory: Path) -> None:
        self.directory = cache_directory / FOLDER

    def size(self) -> tuple[int, int]:
        """The current amount."""
        sizes = [size for _, size, _ in self._files()]
        return len(sizes), sum(sizes)

    def prune(self) -> tuple[int, int]:
        """Remove files unused for 90 days."""
        old = [(path, size) for path, size, used in self._files() if used < time.time() - _AGE]
        removed = [size for path, size in old if _unlinked(path)]
        return len(removed), sum(removed)

    def clear(self) -> tuple[int, int]:
        """Remove everything."""
        before = self.size()
        rmtree(self.directory, ignore_errors=True)
        left = self.size()
        return before[0] - left[0], before[1] - left[1]

    def _files(self) -> Iterator[tuple[Path, int, float]]:
        """Each file with its bytes and the time of its last use, in seconds since the epoch."""
        for path in self.directory.rglob("*"):
            with suppress(OSError):
                found = path.lstat()
                if not path.is_dir():
                    yield path, found.st_size, max(found.st_atime, found.st_mtime)


def _unlinked(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
