"""What is looked at when the loader's answers are judged, and how files are spoken of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from envsolve.matrix.library_names import LibraryNames
from envsolve.validation.static.installed import Files
from envsolve.validation.static.loading import Loading


class Scene(NamedTuple):
    """What the findings are about: the environment, what its frameworks load, and LD_LIBRARY_PATH."""

    files: Files
    names: LibraryNames
    loadings: tuple[Loading, ...]
    without_path: tuple[Loading, ...]
    """The same without LD_LIBRARY_PATH."""
    library_path: str | None
    has_gpu: bool


def plain(path: str | None) -> str:
    """A path as people write it, without the ``..`` that the loader leaves in it."""
    return os.path.normpath(path or "")


def same(one: str, other: str) -> bool:
    """Whether two paths lead to one file."""
    return Path(os.path.realpath(one)) == Path(os.path.realpath(other))
