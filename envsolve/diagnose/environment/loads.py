"""What the frameworks of an environment would load, by simulating the loader of the machine.

On Linux this is computed with and without the variable LD_LIBRARY_PATH; on Windows no variable matters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from envsolve.binary.dll_search import DllLookup, DllSearch
from envsolve.binary.elf import Abi, SharedLibrary, read_library
from envsolve.binary.loader import Libraries, Process
from envsolve.binary.loader_system import LoaderSystem, loader_system
from envsolve.binary.lookup import Lookup
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.boundary.reading import real
from envsolve.diagnose.machine.libraries import facts_without
from envsolve.frameworks import Preload
from envsolve.host.loader import library_entries
from envsolve.matrix.library_names import LibraryNames
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.installed import Files, Installed
from envsolve.validation.report import Shadowed

_DRIVER = "libcuda.so.1"
"""The library that every CUDA program opens."""
_CUDNN_PARTS = {
    "9": ("graph", "ops", "cnn", "adv", "heuristic", "engines_precompiled", "engines_runtime_compiled"),
    "8": ("ops_infer", "cnn_infer", "adv_infer"),
}
"""The libraries that libcudnn.so opens by name, by major version (DT_NEEDED and strings of the wheels of 8.9.7 and
9.10.2).
"""


class Loading(NamedTuple):
    """The libraries that one framework requests, and those that it finds.

    ``optional`` are names that only few programs need, ``on_import`` those without which the import fails.
    """

    framework: Installed
    lookups: tuple[Lookup, ...]
    optional: frozenset[str]
    on_import: frozenset[str]

    @property
    def title(self) -> str:
        """The framework's name in sentences."""
        return self.framework.title

    def found(self) -> Iterator[tuple[str, str]]:
        """Each CUDA library once: the name it was requested by, and its file."""
        seen = set()
        for lookup in self.lookups:
            name = Path(lookup.name).name
            if lookup.path is not None and component_of(name) is not None and lookup.path not in seen:
                seen.add(lookup.path)
                yield name, lookup.path


class Loads:
    """The results of the simulated loader for every framework; empty if the machine's loader is unknown.

    On Windows the results are in :attr:`dlls`, and the others are empty.
    """

    def __init__(self, files: Files, names: LibraryNames, environ: Mapping[str, str], *, windows: bool) -> None:
        self._files = files
        self._names = names
        self._environ = environ
        self._windows = windows
        self.library_path = environ.get("LD_LIBRARY_PATH") or None

    @property
    def directories(self) -> tuple[str, ...]:
        """The directories of LD_LIBRARY_PATH."""
        return tuple(dict.fromkeys(filter(None, library_entries(self.library_path))))

    @cached_property
    def with_path(self) -> tuple[Loading, ...]:
        """What is loaded with the current variables."""
        return self._loadings(self.library_path)

    @cached_property
    def without_path(self) -> tuple[Loading, ...]:
        """What would be loaded without LD_LIBRARY_PATH."""
        return self.with_path if self.library_path is None else self._loadings(None)

    @cached_property
    def dlls(self) -> tuple[tuple[Installed, tuple[DllLookup, ...]], ...]:
        """The DLLs that each framework needs on Windows, now and later, each framework in a process of its own."""
        return tuple((it, tuple(self._dlls(it))) for it in self._files.frameworks) if self._windows else ()

    @cached_property
    def found(self) -> Mapping[str, Mapping[str, str]]:
        """The file of each CUDA library that a framework loads, by framework."""
        return {it.framework.name: dict(it.found()) for it in self.with_path} | {
            framework.name: {
                it.name: str(it.path) for it in lookups if it.path is not None and component_of(it.name) is not None
            }
            for framework, lookups in self.dlls
        }

    @cached_property
    def shadowed(self) -> tuple[Shadowed, ...]:
        """The CUDA libraries with further copies on the search path."""
        found = (it for it in self._lookups if it.path is not None and it.shadowed and component_of(it.name))
        return tuple(dict.fromkeys(Shadowed(it.name, str(it.path), tuple(map(str, it.shadowed))) for it in found))

    @cached_property
    def failed(self) -> tuple[Path, ...]:
        """The files at which the loader stops."""
        return tuple(it.failure.path for it in self._lookups if it.failure is not None)

    @property
    def _lookups(self) -> Iterator[Lookup | DllLookup]:
        for loading in self.with_path:
            yield from loading.lookups
        for _, lookups in self.dlls:
            yield from lookups

    @cached_property
    def driver_directory(self) -> str | None:
        """The directory of LD_LIBRARY_PATH through which alone the driver's CUDA library is found; no stub counts."""
        found = next(_drivers(self.with_path), None)
        if found is None or real(os.path.dirname(found)) not in map(real, self.directories):  # noqa: PTH120 - text
            return None
        return None if next(_drivers(self.without_path), None) is not None else os.path.dirname(found)  # noqa: PTH120

    def facts_without(self, directories: Iterable[str]) -> dict[str, object]:
        """Facts on keeping ``directories`` of LD_LIBRARY_PATH away from programs, for the step ``own-libraries``."""
        return facts_without(directories, self.library_path or "", self.driver_directory, real)

    def facts_where_driver_stays(self, directories: Iterable[str]) -> dict[str, object]:
        """The same facts if the variable is needed for the driver's library; empty if it can simply be unset."""
        return {} if self.driver_directory is None else self.facts_without(directories)

    def read(self, path: Path | str) -> SharedLibrary | None:
        """The dynamic segment of a library; None if it is unreadable or for another machine. Each is read once."""
        if self._libraries is None:
            return None
        try:
            return self._libraries.read(Path(path))[1]
        except UnreadableLibraryError:
            return None

    @cached_property
    def abi(self) -> Abi | None:
        """The ABI of the interpreter; None if it is not a Linux program."""
        try:
            return None if self._windows else read_library(self._executable, truncated=True).abi
        except UnreadableLibraryError:
            return None

    @cached_property
    def system(self) -> LoaderSystem | None:
        """The loader of this machine for the environment's programs."""
        return None if self.abi is None else loader_system(self.abi)

    @property
    def _executable(self) -> Path:
        return Path(real(self._files.inventory.executable))

    @cached_property
    def _libraries(self) -> Libraries | None:
        return None if self.system is None else Libraries(self.system)

    def _loadings(self, library_path: str | None) -> tuple[Loading, ...]:
        libraries = self._libraries
        if libraries is None:
            return ()
        return tuple(self._loading(framework, libraries, library_path) for framework in self._files.frameworks)

    def _loading(self, framework: Installed, libraries: Libraries, library_path: str | None) -> Loading:
        """The libraries that a framework requests up to its first kernel."""
        process = Process(libraries, library_path=library_path)
        lookups = process.start(self._executable)
        known = framework.libraries
        if known.preload in (Preload.LISTED, Preload.WITH_DEPENDENCIES):
            for file in self._preloaded(framework):
                lookups += process.open(str(file))
        for root in framework.files(*known.roots):
            lookups += process.open(str(root))
        on_import = {it.name for it in lookups} if known.on_import else set()
        optional = set()
        for opened in known.opened:
            for caller in framework.files(opened.caller)[:1]:
                for name in self._file_names(framework, opened.libraries):
                    lookups += process.open(name, str(caller))
                    optional |= set() if opened.required else {name}
        for cudnn in [it for it in process.loaded if component_of(Path(it.path).name) == "cudnn"]:
            for part in _parts(Path(cudnn.path).name):
                lookups += process.open(part, cudnn.path)
        lookups += process.open(_DRIVER)
        return Loading(framework, tuple(lookups), frozenset(optional), frozenset(on_import))

    def _preloaded(self, framework: Installed) -> Iterator[Path]:
        """The files of NVIDIA's packages that are loaded by their paths, in order."""
        if framework.libraries.preload is Preload.LISTED:
            needed = [name for it in framework.libraries.opened for name in self._file_names(framework, it.libraries)]
        else:
            needed = self._needs(framework.files(*framework.libraries.roots))
        yield from (self._files.own[name] for name in dict.fromkeys(needed) if name in self._files.own)

    def _needs(self, files: Iterable[Path]) -> list[str]:
        """The libraries of NVIDIA's packages that ``files`` need, each after its own dependencies."""
        names: list[str] = []
        for file in files:
            library = self.read(file)
            for name in library.needed if library is not None else ():
                if name in self._files.own and name not in names:
                    names += [*self._needs([self._files.own[name]]), name]
        return names

    def _file_names(self, framework: Installed, names: tuple[str, ...]) -> Iterator[str]:
        """The names of the libraries that the framework opens; none for a build without CUDA."""
        cuda = framework.built_cuda
        for name in names if cuda is not None else ():
            assert cuda is not None
            file_name = self._cudnn(framework) if name == "cudnn" else self._names.file(name, cuda)
            file_name = "libnccl.so.2" if name == "nccl" else file_name
            if file_name is not None:
                yield file_name

    def _cudnn(self, framework: Installed) -> str:
        """The name of cuDNN: with the major that the build names, or else that of the one in the environment."""
        major = framework.built_cudnn
        known = [f"libcudnn.so.{major}" for major in ((major,) if major else _CUDNN_PARTS)]
        return next((name for name in known if name in self._files.own), known[0])

    def _dlls(self, framework: Installed) -> Iterator[DllLookup]:
        known = framework.libraries
        windows = Path(self._environ.get("SystemRoot") or self._environ.get("WINDIR") or r"C:\Windows")
        search = DllSearch(
            program=self._files.inventory.executable.parent,
            system=windows / "System32",
            added=[it for pattern in known.dll_directories for it in sorted(framework.directory.glob(pattern))],
            path=[Path(it) for it in self._environ.get("PATH", "").split(";") if it],
        )
        for root in framework.files(*known.dll_roots):
            try:
                yield from search.open(root, delayed=True)
            except UnreadableLibraryError as error:
                yield DllLookup(root.name, root, None, None, failure=error)


def _parts(cudnn: str) -> Iterator[str]:
    """The names of the libraries that libcudnn opens."""
    match = re.search(r"\.so\.(\d+)", cudnn)
    for part in _CUDNN_PARTS.get(match[1] if match else "", ()):
        assert match is not None
        yield f"libcudnn_{part}.so.{match[1]}"


def _drivers(loadings: Iterable[Loading]) -> Iterator[str]:
    """The driver libraries that programs find, the first one first; stubs of the toolkit do not count."""
    for loading in loadings:
        for lookup in loading.lookups:
            if lookup.name == _DRIVER and lookup.path is not None:
                files = (lookup.path, *lookup.shadowed)
                yield from (it for it in files if "stubs" not in real(it).split("/"))
