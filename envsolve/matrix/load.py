"""Finding and loading the matrix: only the files a request needs, and of a framework only the platform's rows.

``check`` reads everything and reports every mistake of every file at once; loading reports all mistakes of the rows it
touches.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from packaging.specifiers import SpecifierSet

from envsolve.boundary.document import WHOLE_DIRECTORY, Document, Kept, read_document
from envsolve.boundary.user_directories import data_directory
from envsolve.errors import Hint, MatrixError
from envsolve.matrix.names import GpuNames, gpu_rows, read_gpus, read_pci_ids
from envsolve.matrix.parse import (
    Library,
    check_tables,
    parse_architecture,
    parse_build_facts,
    parse_component_patch,
    parse_cudnn,
    parse_dates,
    parse_disagreement,
    parse_driver_branch,
    parse_evidence,
    parse_forward_compatibility,
    parse_known_bad,
    parse_library,
    parse_place,
    parse_platform_limit,
    parse_release,
    parse_rows,
    parse_toolkit,
    parse_toolkit_release,
)
from envsolve.matrix.row import Mistakes
from envsolve.matrix.sound import evidence_of, part_of, releases_of
from envsolve.model.build_facts import BuildFacts, Place
from envsolve.model.capability import ComputeCapability
from envsolve.model.fact import Evidence
from envsolve.model.host import Platform
from envsolve.model.release import (
    Architecture,
    ComponentPatch,
    CudnnRelease,
    Disagreement,
    DriverBranch,
    ForwardCompatibility,
    KnownBad,
    PlatformLimit,
    Release,
    Toolkit,
    ToolkitRelease,
)
from envsolve.model.versions import CudaVersion, DriverVersion

if TYPE_CHECKING:
    from envsolve.matrix.overlay import Overlay
    from envsolve.model.note import Note

T = TypeVar("T")

SCHEMA_VERSION = 1
TOO_NEW = "matrix-too-new"
_KEYS = ("framework", "aliases", "uses_cudnn")
"""What a framework's file says on top."""
EXTENSIONS = "extensions"
"""The folder with a file for each package whose wheels a refresh reads, besides packages.toml."""
_OVERLAY = "matrix"
"""The folder of the rows that were read on this machine, in the user's data directory."""
PLATFORM_TABLES = ("cuda", "cuda_components", "cudnn", "gpus", "pci_ids", "libraries", "packages")


class FrameworkTable(NamedTuple):
    """One framework's file: its names, its releases for one platform (or all), and what is known against them."""

    name: str
    aliases: tuple[str, ...]
    updated: str
    releases: tuple[Release, ...]
    known_bad: tuple[KnownBad, ...]
    platform_limits: tuple[PlatformLimit, ...]
    disagreements: tuple[Disagreement, ...]


class CudaTable(NamedTuple):
    """cuda.toml: toolkits newest first, driver branches and GPU generations, and how they belong together."""

    updated: str
    toolkits: tuple[Toolkit, ...]
    branches: tuple[DriverBranch, ...]
    architectures: tuple[Architecture, ...]
    forward: tuple[ForwardCompatibility, ...] = ()

    def life_of(self, gpu: ComputeCapability) -> Architecture | None:
        """The generation of ``gpu``."""
        return next((life for life in self.architectures if life.capability == gpu), None)

    def branch_of(self, driver: DriverVersion) -> DriverBranch | None:
        """The branch of ``driver``; on Windows it goes on under the numbers up to the next: 581 and 582 are R580."""
        known = [branch for branch in self.branches if branch.branch <= driver.parts[0]]
        return max(known, key=lambda branch: branch.branch, default=None)

    def after(self, branch: int) -> int:
        """The number at which the branch after ``branch`` begins."""
        return min((it.branch for it in self.branches if it.branch > branch), default=branch + 1)

    def driver_for(self, cuda: CudaVersion, *, windows: bool) -> DriverVersion | None:
        """The oldest driver that supports ``cuda`` in full; where that is no toolkit, the newest toolkit before it."""
        full = (toolkit.full(windows=windows) for toolkit in self.toolkits if toolkit.version <= cuda)
        return next((driver for driver in full if driver is not None), None)


class ComponentTable(NamedTuple):
    """cuda_components.toml: the exact releases of each toolkit, newest first, and the parts they are made of."""

    updated: str
    releases: tuple[ToolkitRelease, ...]
    patches: tuple[ComponentPatch, ...]

    def toolkits_with(self, package: str, specifier: SpecifierSet) -> tuple[CudaVersion, ...]:
        """The toolkits that hold a ``package`` that ``specifier`` admits, newest first."""
        held = [(it.cuda, part.version) for it in self.releases for part in it.components if part.package == package]
        held += [(it.cuda, version) for it in self.patches if it.package == package for version in it.versions]
        return tuple(sorted({cuda for cuda, version in held if specifier.contains(version)}, reverse=True))


class PackageTable(NamedTuple):
    """packages.toml: what builds of further packages need, and what they have under one name."""

    builds: tuple[BuildFacts, ...]
    places: tuple[Place, ...]


def find_matrix() -> Path:
    """The directory of matrix files: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parent.parent
    installed = package / "_compat_matrix"
    return installed if installed.is_dir() else package.parent / "data" / "compat_matrix"


def overlay_directory() -> Path | None:
    """Where the rows that were read on this machine are; None for a user without a home."""
    data = data_directory()
    return None if data is None else data / _OVERLAY


def _overlays_here() -> tuple[Overlay, ...]:
    """The rows that were read on this machine. Where there are none, this is one look at the disk."""
    directory = overlay_directory()
    if directory is None or not os.path.isdir(directory):  # noqa: PTH112 - it never raises, and costs half as much
        return ()
    from envsolve.matrix.overlay import Overlay, opened

    return (Overlay(opened(directory)),)


class Matrix:
    """The matrix in ``directory``, by default the one that envsolve comes with, read file by file as needed.

    The default one has the rows that ``envsolve matrix update`` read on this machine beside those that were shipped.

    Every method raises MatrixError when a file is missing, is not TOML, or holds mistakes.
    """

    def __init__(self, directory: str | PathLike[str] | None = None) -> None:
        self.directory = Path(directory) if directory else find_matrix()
        self.grows = not directory
        """Whether it has, or may get, rows beside those of its files: one that is named stays as it is."""
        self._files: dict[str, Document] = {}
        self._kept: dict[str, Kept] = {}
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
        """One framework's table, with the releases of ``platform`` or, for None, of all platforms."""
        key = (name, platform)
        if key not in self._frameworks:
            table = None if platform is None else self._sound_framework(name, platform)
            table = table or self._checked_framework(name, platform)
            for overlay in self._overlays:
                table = overlay.beside(table, platform, self)
            self._frameworks[key] = table
        return self._frameworks[key]

    def _checked_framework(self, name: str, platform: Platform | None) -> FrameworkTable:
        """Read strictly; what holds no mistake is kept, to be read quickly from then on."""
        table = without_mistakes(f"{name}.toml", partial(self._read_framework, name, platform))
        if platform is not None:
            self._forms_of(name).keep(platform.value, part_of(self._document(name), platform))
        return table

    def _sound_framework(self, name: str, platform: Platform) -> FrameworkTable | None:
        """The table from what was kept, or None where nothing is."""
        part = self._forms_of(name).form(platform.value)
        if part is None:
            return None
        known = evidence_of(part)
        releases = releases_of(name, part, platform, known)
        return _framework_table(name, part, releases, known, Mistakes(f"{name}.toml"))

    @cached_property
    def cuda(self) -> CudaTable:
        """The table of toolkits, driver branches and GPU generations."""
        return without_mistakes("cuda.toml", self._read_cuda)

    @cached_property
    def cudnn(self) -> tuple[CudnnRelease, ...]:
        """All cuDNN releases, newest first."""
        return without_mistakes("cudnn.toml", self._read_cudnn)

    @cached_property
    def components(self) -> ComponentTable:
        """The exact toolkit releases and their components on the Python index."""
        return without_mistakes("cuda_components.toml", self._read_components)

    def build_facts(self, package: str, platform: Platform | None = None) -> tuple[BuildFacts, ...]:
        """What is known of the builds of ``package``, by its normalized name, beyond their metadata.

        Those for ``platform``, or for any where it is None; those of newer versions come first.
        """
        return (*self.build_rows(package, platform), *_on(platform, self._of_wheels.get(package, ())))

    def build_rows(self, package: str, platform: Platform | None = None) -> tuple[BuildFacts, ...]:
        """The same without what :meth:`with_builds` added."""
        known = (facts for facts in self._packages.builds if facts.package == package)
        curated = tuple(known) if package in self._package_names else ()
        of_wheels = self._extension(package) if package in self._extensions else ()
        facts = (*of_wheels, *curated)
        for overlay in self._overlays:
            facts = overlay.beside_builds(package, facts)
        return _on(platform, facts)

    def with_builds(self, facts: Iterable[BuildFacts]) -> Matrix:
        """The same matrix with ``facts`` of further builds."""
        more, read = copy(self), dict(self._of_wheels)
        for it in facts:
            read[it.package] = (*read.get(it.package, ()), it)
        more._of_wheels = read  # noqa: SLF001 - a copy of this one
        return more

    def with_overlay(self, overlay: Overlay) -> Matrix:
        """The same matrix with further rows."""
        more = copy(self)
        more._overlays, more._frameworks = (*self._overlays, overlay), {}  # noqa: SLF001 - a copy of this one
        return more

    @property
    def overlays(self) -> tuple[Overlay, ...]:
        """The rows beside those of the files in ``directory``."""
        return self._overlays

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was ignored of the rows that were read on this machine, as far as they were needed yet."""
        return tuple(dict.fromkeys(note for overlay in self._overlays for note in overlay.notes))

    @property
    def places(self) -> tuple[Place, ...]:
        """The folders and libraries that one package at a time may have."""
        return self._packages.places if "packages" in self.tables else ()

    @cached_property
    def _packages(self) -> PackageTable:
        return without_mistakes("packages.toml", self._read_packages)

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The files that are about no framework; a directory from before packages.toml does without it."""
        return tuple(it for it in PLATFORM_TABLES if it != "packages" or self._path(it).is_file())

    @cached_property
    def _package_names(self) -> frozenset[object]:
        """What packages.toml is about."""
        if "packages" not in self.tables:
            return frozenset()
        rows = self._document("packages").get("build", [])
        return frozenset(row.get("package") for row in rows) if isinstance(rows, list) else frozenset()

    @cached_property
    def _extensions(self) -> frozenset[str]:
        return frozenset(path.stem for path in (self.directory / EXTENSIONS).glob("*.toml"))

    @property
    def extension_tables(self) -> tuple[str, ...]:
        """The files of packages whose wheels were read, by name: ``extensions/warp-lang``."""
        return tuple(f"{EXTENSIONS}/{package}" for package in sorted(self._extensions))

    def _extension(self, package: str) -> tuple[BuildFacts, ...]:
        if package not in self._read_extensions:
            name = f"{EXTENSIONS}/{package}"
            facts = without_mistakes(f"{name}.toml", partial(self._read_extension, name))
            self._read_extensions[package] = facts
        return self._read_extensions[package]

    @cached_property
    def gpus(self) -> GpuNames:
        """Product names with their compute capabilities."""
        return GpuNames(gpu_rows(self._document("gpus")))

    @cached_property
    def pci_ids(self) -> dict[str, tuple[str, ComputeCapability]]:
        """NVIDIA's PCI device ids with product name and compute capability."""
        return without_mistakes("pci_ids.toml", partial(read_pci_ids, self._document("pci_ids")))

    def gpu_of_pci_id(self, device: str) -> tuple[str, ComputeCapability] | None:
        """What ``pci_ids`` holds on a device; the table is read only when a GPU is looked up in it."""
        return self.pci_ids.get(device)

    def check(self) -> list[str]:
        """Every mistake in every file, as ``file: key: message``; empty when the matrix is sound."""
        found: list[str] = []
        for name in self.framework_names:
            found += _mistakes_of(f"{name}.toml", partial(self._read_framework, name, None))
        found += _mistakes_of("cuda.toml", self._read_cuda)
        found += _mistakes_of("cuda_components.toml", self._read_components)
        found += _mistakes_of("cudnn.toml", self._read_cudnn)
        found += _mistakes_of("gpus.toml", self._check_gpus)
        found += _mistakes_of("pci_ids.toml", self._check_pci_ids)
        found += _mistakes_of("libraries.toml", self._read_libraries)
        if "packages" in self.tables:
            found += _mistakes_of("packages.toml", self._read_packages)
        for name in self.extension_tables:
            found += _mistakes_of(f"{name}.toml", partial(self._read_extension, name))
        return found

    def _check_gpus(self, mistakes: Mistakes) -> None:
        document = self._document("gpus")
        check_tables(document, ("gpu", "disagreement"), mistakes)
        evidence = parse_evidence(document.get("evidence", {}), mistakes)
        parse_rows("disagreement", document, parse_disagreement, evidence, mistakes)
        read_gpus(document, mistakes)

    def _check_pci_ids(self, mistakes: Mistakes) -> None:
        document = self._document("pci_ids")
        check_tables(document, ("device",), mistakes)
        parse_evidence(document.get("evidence", {}), mistakes)
        read_pci_ids(document, mistakes)

    def _read_framework(self, name: str, platform: Platform | None, mistakes: Mistakes) -> FrameworkTable:
        return read_framework(name, self._document(name), platform, mistakes)

    def _read_cuda(self, mistakes: Mistakes) -> CudaTable:
        document = self._document("cuda")
        check_tables(
            document, ("toolkit", "driver_branch", "forward_compatibility", "architecture", "disagreement"), mistakes
        )
        evidence = parse_evidence(document.get("evidence", {}), mistakes)
        toolkits = parse_rows("toolkit", document, parse_toolkit, evidence, mistakes)
        parse_rows("disagreement", document, parse_disagreement, evidence, mistakes)
        return CudaTable(
            updated=_updated(document, mistakes),
            toolkits=tuple(sorted(toolkits, key=lambda toolkit: toolkit.version, reverse=True)),
            branches=parse_rows("driver_branch", document, parse_driver_branch, evidence, mistakes),
            architectures=parse_rows("architecture", document, parse_architecture, evidence, mistakes),
            forward=parse_rows("forward_compatibility", document, parse_forward_compatibility, evidence, mistakes),
        )

    def _read_components(self, mistakes: Mistakes) -> ComponentTable:
        document = self._document("cuda_components")
        check_tables(document, ("toolkit", "patch", "disagreement"), mistakes)
        evidence = parse_evidence(document.get("evidence", {}), mistakes)
        releases = parse_rows("toolkit", document, parse_toolkit_release, evidence, mistakes)
        parse_rows("disagreement", document, parse_disagreement, evidence, mistakes)
        return ComponentTable(
            updated=_updated(document, mistakes),
            releases=tuple(sorted(releases, key=lambda release: release.version, reverse=True)),
            patches=parse_rows("patch", document, parse_component_patch, evidence, mistakes),
        )

    def _read_cudnn(self, mistakes: Mistakes) -> tuple[CudnnRelease, ...]:
        document = self._document("cudnn")
        check_tables(document, ("release", "disagreement"), mistakes)
        evidence = parse_evidence(document.get("evidence", {}), mistakes)
        _updated(document, mistakes)
        parse_rows("disagreement", document, parse_disagreement, evidence, mistakes)
        releases = parse_rows("release", document, parse_cudnn, evidence, mistakes)
        return tuple(sorted(releases, key=lambda release: release.version, reverse=True))

    def _read_libraries(self, mistakes: Mistakes) -> tuple[Library, ...]:
        document = self._document("libraries")
        check_tables(document, ("library", "disagreement"), mistakes)
        evidence = parse_evidence(document.get("evidence", {}), mistakes)
        _updated(document, mistakes)
        parse_rows("disagreement", document, parse_disagreement, evidence, mistakes)
        return parse_rows("library", document, parse_library, evidence, mistakes)

    def _read_packages(self, mistakes: Mistakes) -> PackageTable:
        document = self._document("packages")
        check_tables(document, ("build", "place"), mistakes)
        evidence = parse_evidence(document.get("evidence", {}), mistakes)
        _updated(document, mistakes)
        return PackageTable(
            parse_rows("build", document, parse_build_facts, evidence, mistakes),
            parse_rows("place", document, parse_place, evidence, mistakes),
        )

    def _read_extension(self, name: str, mistakes: Mistakes) -> tuple[BuildFacts, ...]:
        return read_extension(name, self._document(name), mistakes)

    def document(self, name: str) -> Document:
        """One file as it stands. Raises MatrixError where it cannot be read, is not TOML or needs a newer envsolve."""
        return self._document(name)

    def _path(self, name: str) -> Path:
        return self.directory / f"{name}.toml"

    def _forms_of(self, name: str) -> Kept:
        """What is kept of a file, as it was before it was read first: a later change is not taken for what was read."""
        if name not in self._kept:
            self._kept[name] = Kept(self._path(name), wanted=self.is_shipped)
        return self._kept[name]

    def _document(self, name: str) -> Document:
        if name not in self._files:
            document = read_document(self._path(name), self._forms_of(name))
            require_schema(name, document)
            self._files[name] = document
        return self._files[name]


def _on(platform: Platform | None, facts: Iterable[BuildFacts]) -> tuple[BuildFacts, ...]:
    return tuple(it for it in facts if platform is None or not it.platforms or platform in it.platforms)


def read_framework(name: str, document: Document, platform: Platform | None, mistakes: Mistakes) -> FrameworkTable:
    """The table in the file of a framework, with the releases of ``platform`` or, for None, of all platforms."""
    evidence = parse_evidence(document.get("evidence", {}), mistakes)
    check_tables(document, (*_KEYS, "dates", "release", "known_bad", "platform_limit", "disagreement"), mistakes)
    if document.get("framework") != name:
        mistakes.add("framework", f"must be {name!r}, as the file is called")
    dates = parse_rows("dates", document, parse_dates, evidence, mistakes)
    released = {version: day for of_row in dates for version, day in of_row.items()}
    parse = parse_release(name, released, uses_cudnn=_uses_cudnn(document, mistakes))
    releases = parse_rows("release", document, parse, evidence, mistakes, platform=platform)
    if platform is None and not releases:
        mistakes.add("release", "is missing: a framework needs releases")
    return _framework_table(name, document, releases, evidence, mistakes)


def _framework_table(
    name: str,
    document: Document,
    releases: tuple[Release, ...],
    evidence: Mapping[str, Evidence],
    mistakes: Mistakes,
) -> FrameworkTable:
    return FrameworkTable(
        name=name,
        aliases=_aliases(document, mistakes),
        updated=_updated(document, mistakes),
        releases=releases,
        known_bad=parse_rows("known_bad", document, parse_known_bad, evidence, mistakes),
        platform_limits=parse_rows("platform_limit", document, parse_platform_limit, evidence, mistakes),
        disagreements=parse_rows("disagreement", document, parse_disagreement, evidence, mistakes),
    )


def read_extension(name: str, document: Document, mistakes: Mistakes) -> tuple[BuildFacts, ...]:
    """The rows of the file ``name`` of a package whose wheels were read."""
    check_tables(document, ("build",), mistakes)
    evidence = parse_evidence(document.get("evidence", {}), mistakes)
    _updated(document, mistakes)
    rows = parse_rows("build", document, parse_build_facts, evidence, mistakes)
    if any(f"{EXTENSIONS}/{row.package}" != name for row in rows):
        mistakes.add("build", "must be about the package that the file is called by")
    return rows


def require_schema(name: str, document: Document) -> None:
    """Raise MatrixError for a file in a form that came after this envsolve: its rows could be misread."""
    version = document.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise MatrixError(
            TOO_NEW,
            f"the compatibility matrix has schema {version}, and this envsolve reads schema {SCHEMA_VERSION}",
            (f"{name}.toml: schema_version: is {version}",),
            (Hint("upgrade envsolve, or use --matrix with files in its schema"),),
        )


def _updated(document: Document, mistakes: Mistakes) -> str:
    version = document.get("schema_version")
    if version != SCHEMA_VERSION:
        mistakes.add("schema_version", f"must be {SCHEMA_VERSION}, not {version!r}")
    updated = document.get("updated")
    if not isinstance(updated, str):
        mistakes.add("updated", "must be a date such as '2026-11-20'")
        return ""
    return updated


def _uses_cudnn(document: Document, mistakes: Mistakes) -> bool:
    """Whether the framework's GPU builds need cuDNN; only a plain ``false`` says that they do not."""
    said = document.get("uses_cudnn", True)
    if not isinstance(said, bool):
        mistakes.add("uses_cudnn", "must be true or false")
    return said is not False


def _aliases(document: Document, mistakes: Mistakes) -> tuple[str, ...]:
    """Further names of the framework."""
    aliases = document.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) and alias for alias in aliases):
        mistakes.add("aliases", "must be a list of names")
        return ()
    return tuple(aliases)


def _mistakes_of(file: str, read: Callable[[Mistakes], object]) -> list[str]:
    mistakes = Mistakes(file)
    try:
        read(mistakes)
    except MatrixError as error:
        if error.code == TOO_NEW:
            raise
        return [*(error.cause or (error.message,)), *mistakes.found]
    return mistakes.found


def without_mistakes(file: str, read: Callable[[Mistakes], T]) -> T:
    """What ``read`` gives. Raises MatrixError with every mistake it found in ``file``."""
    mistakes = Mistakes(file)
    table = read(mistakes)
    _raise_for(mistakes.found)
    return table


def _raise_for(mistakes: list[str]) -> None:
    if mistakes:
        count = f"{len(mistakes)} mistakes" if len(mistakes) > 1 else "a mistake"
        raise MatrixError("matrix-invalid", f"the compatibility matrix has {count}", tuple(mistakes))
