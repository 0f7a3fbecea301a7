"""A simulation of glibc's dynamic loader: which file each library of a process comes from, without running anything.

A name without a slash is searched, in order (glibc ``elf/dl-load.c``, _dl_map_object; ld.so(8)):

1. among the loaded libraries: by a file name that was requested, or by soname
2. in DT_RPATH of the requester, of the library that loaded it, and so on to the program; not if the requester has
DT_RUNPATH
3. in LD_LIBRARY_PATH, as it was when the process started
4. in DT_RUNPATH of the requester
5. in /etc/ld.so.cache
6. in the default directories; neither here nor in a cached file there for a library linked with ``-z nodefaultlib``

A file of another processor or word size is skipped, and so is one that may not be read; one that is no library ends the
search with a failure. Dependencies are loaded breadth first. Not simulated: DT_AUXILIARY and DT_FILTER, LD_PRELOAD, and
the legacy subdirectories ``tls`` and ``haswell``, which glibc 2.37 removed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from envsolve.binary.elf import SharedLibrary, read_library
from envsolve.binary.loader_system import LoaderSystem
from envsolve.binary.lookup import Loaded, Lookup, Place, Rule
from envsolve.binary.search_path import candidates, entries, expand, origin_of
from envsolve.binary.unreadable import Damage, UnreadableLibraryError, unreadable

Identity = tuple[int, int]


class Libraries:
    """The files of one ABI, each read once for all processes."""

    def __init__(self, system: LoaderSystem) -> None:
        self.system = system
        self._read: dict[Identity, SharedLibrary] = {}

    def read(self, path: Path) -> tuple[Identity, SharedLibrary]:
        """The library at ``path`` and its identity. Raises UnreadableLibraryError."""
        try:
            facts = path.stat()
        except OSError as error:
            raise unreadable(path, error) from error
        identity = (facts.st_dev, facts.st_ino)
        if identity not in self._read:
            self._read[identity] = read_library(path, abi=self.system.abi, truncated=True)
        return identity, self._read[identity]


class Process:
    """The loader of a process that loads libraries one after the other.

    ``library_path`` is LD_LIBRARY_PATH, ``directory`` the current directory. Each call returns a lookup for the
    requested library and for everything that it loads. As with dlopen, the libraries of a call that fails are unloaded.
    """

    def __init__(self, libraries: Libraries, *, library_path: str | None = None, directory: Path | None = None) -> None:
        self._libraries = libraries
        self._system = libraries.system
        self._directory = str(directory or Path.cwd())
        self._library_path = library_path or ""
        self._library_directories: tuple[str, ...] = ()
        self.loaded: list[Loaded] = []

    def start(self, program: Path) -> list[Lookup]:
        """Load a program, or a library like ``ld.so --list`` does. Missing libraries are no error.

        A running program knows its own path with all links followed, so ``program`` must be that path. Raises
        UnreadableLibraryError.
        """
        self._library_directories = entries(self._library_path, ":;", self._origin(str(program)), self._system)
        main = self._mapped(str(program), None)
        loader = self._mapped(str(self._system.interpreter), None)
        loader.names.add(self._system.interpreter.name)
        self.loaded = [main, loader]
        return self._needed_by(main)

    def open(self, name: str, caller: str | None = None) -> list[Lookup]:
        """The lookups of ``dlopen(name)``, called from the loaded file ``caller``, or from the program."""
        before = list(self.loaded)
        requester = next((it for it in before if it.path == caller), before[0])
        first, found = self._lookup(name, requester)
        answers = [first, *(self._needed_by(found) if found is not None and found not in before else ())]
        if any(it.path is None for it in answers):
            self.loaded = before
        return answers

    def _needed_by(self, root: Loaded) -> list[Lookup]:
        """Everything that ``root`` loads, breadth first."""
        answers = []
        waiting = [root]
        for requester in waiting:
            for name in requester.library.needed:
                before = len(self.loaded)
                answer, found = self._lookup(name, requester)
                answers.append(answer)
                if found is not None and len(self.loaded) > before:
                    waiting.append(found)
        return answers

    def _lookup(self, name: str, requester: Loaded) -> tuple[Lookup, Loaded | None]:
        name = expand(name, self._origin(requester.path), self._system)
        known = next((it for it in self.loaded if it.goes_by(name)), None)
        if known is not None:
            return Lookup(name, requester.path, known.path, Rule.LOADED), known
        places = [Place(Rule.PATH, (), (name,))] if "/" in name else list(self._places(name, requester))
        looked_in = tuple((place.rule, directory) for place in places for directory in place.directories)
        tries = [(place.rule, file) for place in places for file in self._openable(place, name)]
        for number, (rule, file) in enumerate(tries):
            try:
                taken = self._taken(file, requester)
            except UnreadableLibraryError as error:
                if error.damage is Damage.OTHER_MACHINE:
                    continue
                return Lookup(name, requester.path, None, rule, (), looked_in, error), None
            taken.names.add(name)
            shadowed = self._others(taken, (other for _, other in tries[number + 1 :]))
            return Lookup(name, requester.path, taken.path, rule, shadowed, looked_in), taken
        return Lookup(name, requester.path, None, None, (), looked_in), None

    def _places(self, name: str, requester: Loaded) -> Iterator[Place]:
        """The places where ``name`` is searched, in the order of the module's docstring."""
        if requester.library.runpath is None:
            for holder in self._chain(requester):
                if holder.library.runpath is None:
                    yield self._place(Rule.RPATH, self._own(holder, holder.library.rpath), name)
        yield self._place(Rule.LIBRARY_PATH, self._library_directories, name)
        yield self._place(Rule.RUNPATH, self._own(requester, requester.library.runpath), name)
        bare = requester.library.no_default_directories
        cached = str(self._system.cached.get(name, ""))
        usable = cached and not (bare and self._lies_in_default(cached))
        yield Place(Rule.CACHE, (str(self._system.cache),), (cached,) if usable else ())
        if not bare:
            yield self._place(Rule.DEFAULT, self._system.directories, name)

    def _chain(self, requester: Loaded) -> Iterator[Loaded]:
        """The requester, the library that loaded it, and so on; last the program, whatever the requester is."""
        main = self.loaded[0]
        holder: Loaded | None = requester
        seen = False
        while holder is not None:
            yield holder
            seen = seen or holder is main
            holder = holder.loader
        if not seen:
            yield main

    def _taken(self, file: str, requester: Loaded) -> Loaded:
        """The library in ``file``: newly loaded, or a loaded one that is the same file."""
        found = self._mapped(file, requester)
        same = next((it for it in self.loaded if it.identity == found.identity), None)
        if same is None:
            self.loaded.append(found)
        return same or found

    def _mapped(self, file: str, requester: Loaded | None) -> Loaded:
        identity, library = self._libraries.read(Path(self._directory, file))
        return Loaded(file, library, identity, requester)

    def _others(self, taken: Loaded, files: Iterable[str]) -> tuple[str, ...]:
        """Those of ``files`` that are other libraries than ``taken``, each once."""
        found: dict[Identity, str] = {}
        for file in files:
            try:
                identity, _ = self._libraries.read(Path(self._directory, file))
            except UnreadableLibraryError:
                continue
            if identity != taken.identity:
                found.setdefault(identity, file)
        return tuple(found.values())

    def _openable(self, place: Place, name: str) -> Iterator[str]:
        """The files of ``place`` that can be opened, up to a directory with circular links, where glibc gives up."""
        for file in place.files:
            full = os.path.join(self._directory, file)  # noqa: PTH118 - some thousand times for an environment
            if os.access(full, os.R_OK):
                yield file
            elif file.removesuffix(name) in place.directories and _leads_in_a_circle(full):
                return

    def _origin(self, path: str) -> str:
        return origin_of(path, self._directory)

    def _own(self, holder: Loaded, path: str | None) -> tuple[str, ...]:
        return entries(path or "", ":", self._origin(holder.path), self._system)

    def _place(self, rule: Rule, directories: tuple[str, ...], name: str) -> Place:
        return Place(rule, directories, tuple(candidates(directories, name, self._system)))

    def _lies_in_default(self, file: str) -> bool:
        return file.startswith(self._system.directories)


def _leads_in_a_circle(file: str) -> bool:
    try:
        Path(file).stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False
