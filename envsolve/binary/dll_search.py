"""Where Windows finds the DLLs that a DLL needs, when Python 3.8 or newer loads it.

Python loads extension modules and ctypes.CDLL libraries with LOAD_LIBRARY_SEARCH_DEFAULT_DIRS and
LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR (bpo-36085, docs of ``os.add_dll_directory``). Then Windows looks, for what is needed
too, in order (Microsoft, Dynamic-link library search order, "search order using LOAD_LIBRARY_SEARCH flags"):

1. among what is loaded, by base name
2. in the directory of the DLL that is loaded by its path
3. in the directory of the program, python.exe
4. in the directories of os.add_dll_directory, in no order that is promised
5. in System32

Not in PATH, and not in the current directory. File names are compared without case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from envsolve.binary.dll import Dll, read_dll
from envsolve.binary.unreadable import UnreadableLibraryError

_OF_THE_SYSTEM = ("api-ms-win-", "ext-ms-win-")
"""API sets: names that Windows maps to its own libraries, without a file of that name."""


class DllRule(StrEnum):
    """How Windows found a file."""

    LOADED = "already loaded"
    DLL_DIRECTORY = "directory of the DLL"
    PROGRAM_DIRECTORY = "directory of python.exe"
    ADDED = "os.add_dll_directory"
    SYSTEM = "System32"


class DllLookup(NamedTuple):
    """The result for one DLL that ``requester`` needs.

    ``path`` is None if it is not found; ``on_path`` are then the files on PATH, where Python does not look.
    """

    name: str
    requester: Path
    path: Path | None
    rule: DllRule | None
    shadowed: tuple[Path, ...] = ()
    looked_in: tuple[tuple[DllRule, Path], ...] = ()
    on_path: tuple[Path, ...] = ()
    failure: UnreadableLibraryError | None = None


class DllSearch:
    """The DLL search of one process that loads DLLs; ``path`` are the directories in PATH."""

    def __init__(self, *, program: Path, system: Path, added: Sequence[Path] = (), path: Sequence[Path] = ()) -> None:
        self._program = program
        self._system = system
        self._added = tuple(added)
        self._path = tuple(path)
        self._directories: dict[Path, Mapping[str, Path]] = {}
        self._loaded: dict[str, Path] = {}

    def open(self, path: Path, *, delayed: bool = False) -> list[DllLookup]:
        """Everything that the DLL at ``path`` loads, breadth first; with ``delayed`` also what it loads later.

        DLLs that belong to Windows are not followed. Raises UnreadableLibraryError if ``path`` is no DLL.
        """
        places = self._places(path.parent)
        waiting = [read_dll(path)]
        self._loaded.setdefault(path.name.lower(), path)
        answers = []
        for requester in waiting:
            for name in (*requester.imports, *(requester.delayed if delayed else ())):
                if name.lower().startswith(_OF_THE_SYSTEM):
                    continue
                answer, found = self._lookup(name, requester, places)
                answers.append(answer)
                if found is not None:
                    waiting.append(found)
        return answers

    def _lookup(
        self, name: str, requester: Dll, places: tuple[tuple[DllRule, Path], ...]
    ) -> tuple[DllLookup, Dll | None]:
        known = self._loaded.get(name.lower())
        if known is not None:
            return DllLookup(name, requester.path, known, DllRule.LOADED), None
        files = [(rule, file) for rule, directory in places if (file := self._file(directory, name)) is not None]
        if not files:
            on_path = [file for it in self._path if (file := self._file(it, name)) is not None]
            return DllLookup(name, requester.path, None, None, (), places, tuple(on_path)), None
        rule, taken = files[0]
        shadowed = tuple(dict.fromkeys(file for _, file in files[1:] if file != taken))
        self._loaded[name.lower()] = taken
        if rule is DllRule.SYSTEM:
            return DllLookup(name, requester.path, taken, rule, shadowed, places), None
        try:
            return DllLookup(name, requester.path, taken, rule, shadowed, places), read_dll(taken)
        except UnreadableLibraryError as error:
            return DllLookup(name, requester.path, None, rule, shadowed, places, failure=error), None

    def _places(self, directory: Path) -> tuple[tuple[DllRule, Path], ...]:
        return (
            (DllRule.DLL_DIRECTORY, directory),
            (DllRule.PROGRAM_DIRECTORY, self._program),
            *((DllRule.ADDED, added) for added in self._added),
            (DllRule.SYSTEM, self._system),
        )

    def _file(self, directory: Path, name: str) -> Path | None:
        if directory not in self._directories:
            try:
                files = {file.name.lower(): file for file in directory.iterdir()}
            except OSError:
                files = {}
            self._directories[directory] = files
        return self._directories[directory].get(name.lower())
