"""Find and load the matrix: only the files that a request needs, and of a framework only the platform's rows.

``check`` reads everything and reports every mistake of every file at once. Loading reports all mistakes of the rows
that it reads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from copy import copy
from functools import cache, cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import packaging

from envsolve import __version__
from envsolve.boundary.document import WHOLE_DIRECTORY, Document, TomlFile
from envsolve.boundary.user_directories import data_directory
from envsolve.errors import MatrixError
from envsolve.matrix.names import GpuNames, gpu_rows, read_pci_ids
from envsolve.matrix.row import Mistakes
from envsolve.matrix.tables import (
    EXTENSIONS,
    TOO_NEW,
    ComponentTable,
    CudaTable,
    FrameworkTable,
    PackageTable,
    check_gpus,
    check_pci_ids,
    read_components,
    read_cuda,
    read_cudnn,
    read_extension,
    read_framework,
    read_libraries,
    read_packages,
    read_torch_symbols,
    require_schema,
    without_mistakes,
)
from envsolve.matrix.torch_symbols import TABLE, TorchSymbols
from envsolve.model.build_facts import BuildFacts, Place
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.need import Need
from envsolve.model.release import CudnnRelease

if TYPE_CHECKING:
    from envsolve.matrix.overlay import Overlay
    from envsolve.model.note import Note

T = TypeVar("T")

_OVERLAY = "matrix"
"""The directory of the rows that were read on this machine, in the user's data directory."""
_READERS: Mapping[str, Callable[[Document, Mistakes], object]] = {
    "cuda": read_cuda,
    "cuda_components": read_components,
    "cudnn": read_cudnn,
    "gpus": check_gpus,
    "pci_ids": check_pci_ids,
    "libraries": read_libraries,
    "packages": read_packages,
    TABLE: read_torch_symbols,
}
PLATFORM_TABLES = tuple(_READERS)
"""The files that are not about a framework."""
_LATER = ("packages", TABLE)
"""Files that directories from older versions may lack."""


def find_matrix() -> Path:
    """Return the directory of matrix files: inside the installed package, or next to it in a checkout."""
    package = Path(__file__).parent.parent
    installed = package / "_compat_matrix"
    return installed if installed.is_dir() else package.parent / "data" / "compat_matrix"


def overlay_directory() -> Path | None:
    """Return the directory of the rows that were read on this machine, or None for a user without a home."""
    data = data_directory()
    return None if data is None else data / _OVERLAY


def _overlays_here() -> tuple[Overlay, ...]:
    """The rows that were read on this machine. Without any, this is a single file system access."""
    directory = overlay_directory()
    if directory is None or not os.path.isdir(directory):  # noqa: PTH112 - it never raises, and costs half as much
        return ()
    from envsolve.matrix.overlay import Overlay, opened

    return (Overlay(opened(directory)),)


class Matrix:
    """The matrix in ``directory``, by default the one that envsolve comes with, read file by file as needed.

    The default one also has the rows that ``envsolve matrix update`` read on this machine.

    Every method raises MatrixError if a file is missing, is not TOML, or has mistakes.
    """

    def __init__(self, directory: str | PathLike[str] | None = None) -> None:
        self.directory = Path(directory) if directory else find_matrix()
        self.grows = not directory
        """Whether it has, or may get, rows beside those of its files: one that is named stays as it is."""
        self._documents: dict[str, Document] = {}
        self._files: dict[str, TomlFile] = {}
        self._read_extensions: dict[str, tuple[BuildFacts, ...]] = {}
        self._of_wheels: dict[str, tuple[BuildFacts, ...]] = {}
        self._frameworks: dict[tuple[str, Platform | None], FrameworkTable] = {}
        self._overlays: tuple[Overlay, ...] = () if directory else _overlays_here()

    @cached_property
    def is_shipped(self) -> bool:
        """Whether it is the matrix that envsolve comes with."""
        return self.directory.resolve() == find_matrix().resolve()

    @cached_property
    def framework_names(self) -> tuple[str, ...]:
        """The frameworks that have a file, sorted."""
        if not self.directory.is_dir():
            message = f"no compatibility matrix at {self.directory}"
            raise MatrixError("matrix-unreadable", message, hints=(WHOLE_DIRECTORY,))
        names = sorted(path.stem for path in self.directory.glob("*.toml"))
        frameworks = tuple(name for name in names if name not in PLATFORM_TABLES)
        if not frameworks:
            message = f"no compatibility matrix in {self.directory}"
            raise MatrixError("matrix-unreadable", message, hints=(WHOLE_DIRECTORY,))
        return frameworks

    def framework(self, name: str, platform: Platform | None) -> FrameworkTable:
        """Return a framework's table, with the releases of ``platform`` or, for None, of all platforms."""
        key = (name, platform)
        if key not in self._frameworks:
            read = partial(read_framework, name, platform=platform)
            table = self._read(name, read, part="all" if platform is None else platform.value)
            for overlay in self._overlays:
                table = overlay.beside(table, platform, self)
            self._frameworks[key] = table
        return self._frameworks[key]

    @cached_property
    def cuda(self) -> CudaTable:
        """The table of toolkits, driver branches and GPU generations."""
        return self._read("cuda", read_cuda)

    @cached_property
    def cudnn(self) -> tuple[CudnnRelease, ...]:
        """All cuDNN releases, newest first."""
        return self._read("cudnn", read_cudnn)

    @cached_property
    def components(self) -> ComponentTable:
        """The exact toolkit releases and their components on the Python index."""
        return self._read("cuda_components", read_components)

    def build_facts(self, package: str, platform: Platform | None = None) -> tuple[BuildFacts, ...]:
        """Return what is known about the builds of ``package`` (normalized name), beyond their metadata.

        The facts are those for ``platform``, or for any if it is None. Those for newer versions come first.
        """
        return (*self.build_rows(package, platform), *_on(platform, self._of_wheels.get(package, ())))

    def build_rows(self, package: str, platform: Platform | None = None) -> tuple[BuildFacts, ...]:
        """Return the same without what :meth:`with_builds` added."""
        curated = () if self._packages is None else (it for it in self._packages.builds if it.package == package)
        of_wheels = self._extension(package) if package in self._extensions else ()
        facts = (*of_wheels, *curated)
        for overlay in self._overlays:
            facts = overlay.beside_builds(package, facts)
        return _on(platform, facts)

    def torch_for(self, symbols: Collection[str], platform: Platform) -> Need | None:
        """Return the PyTorch that a library with ``symbols`` for ``platform`` was compiled for, or None."""
        if not symbols or platform is not Platform.LINUX_64 or TABLE not in self.tables:
            return None
        return self._torch_symbols.need_of(symbols)

    @cached_property
    def _torch_symbols(self) -> TorchSymbols:
        return self._read(TABLE, read_torch_symbols)

    def with_builds(self, facts: Iterable[BuildFacts]) -> Matrix:
        """Return the matrix with ``facts`` about more builds."""
        more, read = copy(self), dict(self._of_wheels)
        for it in facts:
            read[it.package] = (*read.get(it.package, ()), it)
        more._of_wheels = read  # noqa: SLF001 - a copy of this one
        return more

    def with_overlay(self, overlay: Overlay) -> Matrix:
        """Return the matrix with more rows."""
        more = copy(self)
        more._overlays, more._frameworks = (*self._overlays, overlay), {}  # noqa: SLF001 - a copy of this one
        return more

    @property
    def overlays(self) -> tuple[Overlay, ...]:
        """The rows in addition to those of the files in ``directory``."""
        return self._overlays

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was ignored of the rows read on this machine, as far as they were needed so far."""
        return tuple(dict.fromkeys(note for overlay in self._overlays for note in overlay.notes))

    @property
    def places(self) -> tuple[Place, ...]:
        """The directories and libraries that only one package may have at a time."""
        return () if self._packages is None else self._packages.places

    @cached_property
    def _packages(self) -> PackageTable | None:
        return self._read("packages", read_packages) if "packages" in self.tables else None

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The files that are not about a framework."""
        return tuple(it for it in PLATFORM_TABLES if it not in _LATER or self._path(it).is_file())

    @cached_property
    def _extensions(self) -> frozenset[str]:
        return frozenset(path.stem for path in (self.directory / EXTENSIONS).glob("*.toml"))

    @property
    def extension_tables(self) -> tuple[str, ...]:
        """The names of the files of packages whose wheels were read: ``extensions/warp-lang``."""
        return tuple(f"{EXTENSIONS}/{package}" for package in sorted(self._extensions))

    def _extension(self, package: str) -> tuple[BuildFacts, ...]:
        if package not in self._read_extensions:
            name = f"{EXTENSIONS}/{package}"
            self._read_extensions[package] = self._read(name, partial(read_extension, name))
        return self._read_extensions[package]

    @cached_property
    def gpus(self) -> GpuNames:
        """Product names with their compute capabilities."""
        return GpuNames(gpu_rows(self.document("gpus")))

    @cached_property
    def pci_ids(self) -> dict[str, tuple[str, ComputeCapability]]:
        """NVIDIA's PCI device ids with product name and compute capability."""
        return self._read("pci_ids", read_pci_ids)

    def gpu_of_pci_id(self, device: str) -> tuple[str, ComputeCapability] | None:
        """Return the entry of ``pci_ids`` for a device. The table is read only when a GPU is looked up in it."""
        return self.pci_ids.get(device)

    def check(self) -> list[str]:
        """Return every mistake in every file, as ``file: key: message``; empty if the matrix is valid."""
        readers: dict[str, Callable[[Document, Mistakes], object]] = {
            **{name: partial(read_framework, name) for name in self.framework_names},
            **{name: _READERS[name] for name in self.tables},
            **{name: partial(read_extension, name) for name in self.extension_tables},
        }
        return [mistake for name, read in readers.items() for mistake in self._mistakes_in(name, read)]

    def _mistakes_in(self, name: str, read: Callable[[Document, Mistakes], object]) -> list[str]:
        mistakes = Mistakes(f"{name}.toml")
        try:
            read(self.document(name), mistakes)
        except MatrixError as error:
            if error.code == TOO_NEW:
                raise
            return [*(error.cause or (error.message,)), *mistakes.found]
        return mistakes.found

    def _read(self, name: str, read: Callable[[Document, Mistakes], T], part: str = "table") -> T:
        """The result of ``read`` for a file, cached as its ``part``. Raises MatrixError if the file has mistakes."""

        def checked() -> T:
            return without_mistakes(f"{name}.toml", lambda mistakes: read(self.document(name), mistakes))

        return self._file(name).made(part, _code_state(), checked)

    def _path(self, name: str) -> Path:
        return self.directory / f"{name}.toml"

    def _file(self, name: str) -> TomlFile:
        """A file as it was before it was first read: a later change must not be cached as its content."""
        if name not in self._files:
            self._files[name] = TomlFile(self._path(name), cached=self.is_shipped)
        return self._files[name]

    def document(self, name: str) -> Document:
        """Return a file as parsed. Raises MatrixError if it cannot be read, is not TOML or needs a newer envsolve."""
        if name not in self._documents:
            document = self._file(name).content()
            require_schema(name, document)
            self._documents[name] = document
        return self._documents[name]


@cache
def _code_state() -> tuple[object, ...]:
    """What the form of cached rows depends on: the versions and the files of the code that makes them."""
    package = Path(__file__).parent.parent
    files: list[tuple[str, int, int]] = []
    for folder in ("matrix", "model"):
        with suppress(OSError), os.scandir(package / folder) as entries:  # without files the versions are enough
            sources = ((it.name, it.stat()) for it in entries if it.name.endswith(".py"))
            files += [(name, facts.st_mtime_ns, facts.st_size) for name, facts in sources]
    return (__version__, packaging.__version__, sorted(files))


def _on(platform: Platform | None, facts: Iterable[BuildFacts]) -> tuple[BuildFacts, ...]:
    return tuple(it for it in facts if platform is None or not it.platforms or platform in it.platforms)
