"""Which files a framework's process would load, as the loader of the machine decides it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from envsolve.binary.loader import Libraries, Process
from envsolve.binary.lookup import Lookup
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.frameworks import Preload
from envsolve.matrix.library_names import LibraryNames
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.static.builds import built_cuda, built_cudnn
from envsolve.validation.static.installed import Files, Installed

_DRIVER = "libcuda.so.1"
"""What every program that uses CUDA opens."""
_CUDNN_PARTS = {
    "9": ("graph", "ops", "cnn", "adv", "heuristic", "engines_precompiled", "engines_runtime_compiled"),
    "8": ("ops_infer", "cnn_infer", "adv_infer"),
}
"""What libcudnn.so opens by name, by major version (DT_NEEDED and strings of the wheels of 8.9.7 and 9.10.2)."""


class Shadowed(NamedTuple):
    """Copies of a library that the loader would have taken, had the one before them not been there."""

    soname: str
    path: str
    copies: tuple[str, ...]


class Loading(NamedTuple):
    """What one framework asks for and gets.

    ``optional`` are names that few of its programs need, ``on_import`` those without which its import fails.
    """

    framework: Installed
    lookups: tuple[Lookup, ...]
    optional: frozenset[str]
    on_import: frozenset[str]

    @property
    def title(self) -> str:
        """The framework as sentences name it."""
        return self.framework.title

    def found(self) -> Iterator[tuple[str, str]]:
        """Each CUDA library once: the name it was asked for by, and its file."""
        seen = set()
        for lookup in self.lookups:
            name = Path(lookup.name).name
            if lookup.path is not None and component_of(name) is not None and lookup.path not in seen:
                seen.add(lookup.path)
                yield name, lookup.path

    def shadowed(self) -> Iterator[Shadowed]:
        """The CUDA libraries of which there are further copies on the way."""
        for lookup in self.lookups:
            if lookup.path is not None and lookup.shadowed and component_of(lookup.name) is not None:
                yield Shadowed(lookup.name, lookup.path, lookup.shadowed)


class Loader:
    """Loads the frameworks of one environment, each in a process of its own."""

    def __init__(self, files: Files, libraries: Libraries, names: LibraryNames) -> None:
        self._files = files
        self._libraries = libraries
        self._names = names

    def load(self, framework: Installed, library_path: str | None) -> Loading:
        """What it asks for on the way to its first kernel. ``library_path`` is LD_LIBRARY_PATH.

        Raises UnreadableLibraryError where the interpreter is no program that this machine runs.
        """
        process = Process(self._libraries, library_path=library_path)
        lookups = process.start(Path(os.path.realpath(self._files.inventory.executable)))
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
            asked = [name for it in framework.libraries.opened for name in self._file_names(framework, it.libraries)]
        else:
            asked = self._needs(framework.files(*framework.libraries.roots))
        yield from (self._files.own[name] for name in dict.fromkeys(asked) if name in self._files.own)

    def _needs(self, files: Iterable[Path]) -> list[str]:
        """What ``files`` need of NVIDIA's packages, each after what it needs itself."""
        names: list[str] = []
        for file in files:
            try:
                needed = self._libraries.read(file)[1].needed
            except UnreadableLibraryError:
                continue
            for name in needed:
                if name in self._files.own and name not in names:
                    names += [*self._needs([self._files.own[name]]), name]
        return names

    def _file_names(self, framework: Installed, names: tuple[str, ...]) -> Iterator[str]:
        """What libraries are called that the framework opens; nothing for a build without CUDA."""
        cuda = built_cuda(framework)
        for name in names if cuda is not None else ():
            assert cuda is not None
            file_name = self._cudnn(framework) if name == "cudnn" else self._names.file(name, cuda)
            file_name = "libnccl.so.2" if name == "nccl" else file_name
            if file_name is not None:
                yield file_name

    def _cudnn(self, framework: Installed) -> str:
        """The name of cuDNN: of the major that the build names, else of the one in the environment."""
        major = built_cudnn(framework)
        majors = (major,) if major else tuple(_CUDNN_PARTS)
        known = [f"libcudnn.so.{major}" for major in majors]
        return next((name for name in known if name in self._files.own), known[0])


def _parts(cudnn: str) -> Iterator[str]:
    """The names of the libraries that libcudnn opens."""
    match = re.search(r"\.so\.(\d+)", cudnn)
    for part in _CUDNN_PARTS.get(match[1] if match else "", ()):
        assert match is not None
        yield f"libcudnn_{part}.so.{match[1]}"
