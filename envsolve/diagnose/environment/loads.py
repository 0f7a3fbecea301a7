"""What the frameworks of an environment would load on Linux, with the variable LD_LIBRARY_PATH and without it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from envsolve.binary.elf import Abi, SharedLibrary
from envsolve.binary.loader import Libraries
from envsolve.binary.loader_system import LoaderSystem, loader_system
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.diagnose.environment.reading import real
from envsolve.diagnose.machine.library_variable import facts_without
from envsolve.matrix.library_names import LibraryNames
from envsolve.validation.static.installed import Files
from envsolve.validation.static.loading import Loader, Loading

_DRIVER = "libcuda.so.1"
_SEPARATORS = re.compile("[:;]")


class Loads:
    """The simulated loader's answers for every framework; none where the machine's loader is not known."""

    def __init__(self, files: Files, names: LibraryNames, abi: Abi | None, environ: Mapping[str, str]) -> None:
        self._files = files
        self._names = names
        self._abi = abi
        self.library_path = environ.get("LD_LIBRARY_PATH") or None

    @cached_property
    def with_path(self) -> tuple[Loading, ...]:
        """What is loaded with the variables as they are."""
        return self._loadings(self.library_path)

    @cached_property
    def without_path(self) -> tuple[Loading, ...]:
        """What would be loaded without LD_LIBRARY_PATH."""
        return self.with_path if self.library_path is None else self._loadings(None)

    @cached_property
    def driver_directory(self) -> str | None:
        """The directory of LD_LIBRARY_PATH by which alone the driver's CUDA library is found; no stub counts as it."""
        found = next(_drivers(self.with_path), None)
        entries = {os.path.realpath(it) for it in _SEPARATORS.split(self.library_path or "") if it}
        if found is None or os.path.realpath(os.path.dirname(found)) not in entries:  # noqa: PTH120 - the loader's text
            return None
        return None if next(_drivers(self.without_path), None) is not None else os.path.dirname(found)  # noqa: PTH120

    def facts_without(self, directories: Iterable[str]) -> dict[str, object]:
        """Facts on how to keep ``directories`` of LD_LIBRARY_PATH from programs, for the step ``own-libraries``."""
        return facts_without(directories, self.library_path or "", self.driver_directory, real)

    def read(self, path: Path | str) -> SharedLibrary | None:
        """What a library says of itself; None where it cannot be read or is for another machine. Each is read once."""
        if self._libraries is None:
            return None
        try:
            return self._libraries.read(Path(path))[1]
        except UnreadableLibraryError:
            return None

    @cached_property
    def system(self) -> LoaderSystem | None:
        """The loader of this machine for the environment's programs."""
        return None if self._abi is None else loader_system(self._abi)

    @cached_property
    def _libraries(self) -> Libraries | None:
        return None if self.system is None else Libraries(self.system)

    def _loadings(self, library_path: str | None) -> tuple[Loading, ...]:
        if self._libraries is None:
            return ()
        loader = Loader(self._files, self._libraries, self._names)
        return tuple(loader.load(framework, library_path) for framework in self._files.frameworks)


def _drivers(loadings: Iterable[Loading]) -> Iterator[str]:
    """The driver's libraries that programs come to, the first in front; the toolkit's stubs are none."""
    for loading in loadings:
        for lookup in loading.lookups:
            if lookup.name == _DRIVER and lookup.path is not None:
                files = (lookup.path, *lookup.shadowed)
                yield from (it for it in files if "stubs" not in os.path.realpath(it).split("/"))
