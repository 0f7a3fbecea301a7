"""The results of a loader: which file a name led to, by which rule, and what else was there."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from envsolve.binary.elf import SharedLibrary
from envsolve.binary.unreadable import UnreadableLibraryError


class Rule(StrEnum):
    """How a loader found a file."""

    PATH = "path"
    """It was requested by a path."""
    LOADED = "already loaded"
    RPATH = "DT_RPATH"
    LIBRARY_PATH = "LD_LIBRARY_PATH"
    RUNPATH = "DT_RUNPATH"
    CACHE = "ld.so.cache"
    DEFAULT = "default directories"


class Place(NamedTuple):
    """The files to try by one rule, in order, and the directories that messages name."""

    rule: Rule
    directories: tuple[str, ...]
    files: tuple[str, ...]


class Lookup(NamedTuple):
    """The result of one request for a library by the file ``requester``.

    ``path`` is as the loader writes it, including ``..``. It is None if nothing is found, or if the file cannot be
    loaded: then ``failure`` says why. ``shadowed`` are other files that would have been chosen without the ones before
    them. ``looked_in`` are the directories that may be searched, in order, each with its rule.
    """

    name: str
    requester: str | None
    path: str | None
    rule: Rule | None
    shadowed: tuple[str, ...] = ()
    looked_in: tuple[tuple[Rule, str], ...] = ()
    failure: UnreadableLibraryError | None = None


class Loaded:
    """A library of a process: its file, its dynamic segment, its names, and the library that loaded it."""

    def __init__(self, path: str, library: SharedLibrary, identity: tuple[int, int], loader: Loaded | None) -> None:
        self.path = path
        self.library = library
        self.identity = identity
        """Device and inode: two paths to one file are one library."""
        self.loader = loader
        self.names = {path}

    def goes_by(self, name: str) -> bool:
        """Whether a request for ``name`` refers to this library."""
        return name in self.names or name == self.library.soname
