"""The files of the matrix as values: tables of rows, with the top-level keys of the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from packaging.specifiers import SpecifierSet

from envsolve.boundary.document import Document
from envsolve.errors import Hint, MatrixError
from envsolve.matrix.names import read_gpus, read_pci_ids
from envsolve.matrix.parse import (
    KnownEvidence,
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
from envsolve.matrix.row import Mistakes, Row
from envsolve.matrix.torch_symbols import TorchSymbols, parse_symbols
from envsolve.model.build_facts import BuildFacts, Place
from envsolve.model.capability import ComputeCapability
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

T = TypeVar("T")

SCHEMA_VERSION = 1
TOO_NEW = "matrix-too-new"
EXTENSIONS = "extensions"
"""The directory with a file for each package whose wheels a refresh reads, in addition to packages.toml."""
_KEYS = ("framework", "aliases", "uses_cudnn")
"""The top-level keys of a framework's file."""


class FrameworkTable(NamedTuple):
    """A framework's file: its names, its releases for one platform (or all), and their known failures."""

    name: str
    aliases: tuple[str, ...]
    updated: str
    releases: tuple[Release, ...]
    known_bad: tuple[KnownBad, ...]
    platform_limits: tuple[PlatformLimit, ...]
    disagreements: tuple[Disagreement, ...]


class CudaTable(NamedTuple):
    """cuda.toml: toolkits newest first, driver branches and GPU generations, and their relations."""

    updated: str
    toolkits: tuple[Toolkit, ...]
    branches: tuple[DriverBranch, ...]
    architectures: tuple[Architecture, ...]
    forward: tuple[ForwardCompatibility, ...] = ()

    def life_of(self, gpu: ComputeCapability) -> Architecture | None:
        """Return the generation of ``gpu``, or None."""
        return next((life for life in self.architectures if life.capability == gpu), None)

    def branch_of(self, driver: DriverVersion) -> DriverBranch | None:
        """Return the branch of ``driver``.

        On Windows it includes the numbers up to the next branch: 581 and 582 are R580.
        """
        known = [branch for branch in self.branches if branch.branch <= driver.parts[0]]
        return max(known, key=lambda branch: branch.branch, default=None)

    def after(self, branch: int) -> int:
        """Return the number of the branch after ``branch``."""
        return min((it.branch for it in self.branches if it.branch > branch), default=branch + 1)

    def driver_for(self, cuda: CudaVersion, *, windows: bool) -> DriverVersion | None:
        """Return the oldest driver that supports ``cuda`` in full.

        For an unknown toolkit it is that of the newest one before it.
        """
        full = (toolkit.full(windows=windows) for toolkit in self.toolkits if toolkit.version <= cuda)
        return next((driver for driver in full if driver is not None), None)


class ComponentTable(NamedTuple):
    """cuda_components.toml: the exact releases of each toolkit, newest first, and their parts."""

    updated: str
    releases: tuple[ToolkitRelease, ...]
    patches: tuple[ComponentPatch, ...]

    def toolkits_with(self, package: str, specifier: SpecifierSet) -> tuple[CudaVersion, ...]:
        """Return the toolkits with a ``package`` that ``specifier`` admits, newest first."""
        shipped = [(it.cuda, part.version) for it in self.releases for part in it.components if part.package == package]
        shipped += [(it.cuda, version) for it in self.patches if it.package == package for version in it.versions]
        return tuple(sorted({cuda for cuda, version in shipped if specifier.contains(version)}, reverse=True))


class PackageTable(NamedTuple):
    """packages.toml: what builds of other packages need, and files that several of them have."""

    builds: tuple[BuildFacts, ...]
    places: tuple[Place, ...]


class _File:
    """A file of ``tables`` while it is read. A table of disagreements is only checked, because it is for readers."""

    def __init__(self, document: Document, mistakes: Mistakes, *tables: str) -> None:
        self._document, self._mistakes = document, mistakes
        check_tables(document, tables, mistakes)
        self._evidence = parse_evidence(document.get("evidence", {}), mistakes)
        self.updated = _updated(document, mistakes)
        if "disagreement" in tables:
            self.rows("disagreement", parse_disagreement)

    def rows(self, table: str, parse: Callable[[Row, KnownEvidence], T]) -> tuple[T, ...]:
        """Return the rows of one table."""
        return parse_rows(table, self._document, parse, self._evidence, self._mistakes)


def read_cuda(document: Document, mistakes: Mistakes) -> CudaTable:
    """Return the table in cuda.toml."""
    tables = ("toolkit", "driver_branch", "forward_compatibility", "architecture", "disagreement")
    file = _File(document, mistakes, *tables)
    toolkits = file.rows("toolkit", parse_toolkit)
    return CudaTable(
        updated=file.updated,
        toolkits=tuple(sorted(toolkits, key=lambda toolkit: toolkit.version, reverse=True)),
        branches=file.rows("driver_branch", parse_driver_branch),
        architectures=file.rows("architecture", parse_architecture),
        forward=file.rows("forward_compatibility", parse_forward_compatibility),
    )


def read_components(document: Document, mistakes: Mistakes) -> ComponentTable:
    """Return the table in cuda_components.toml."""
    file = _File(document, mistakes, "toolkit", "patch", "disagreement")
    releases = file.rows("toolkit", parse_toolkit_release)
    return ComponentTable(
        updated=file.updated,
        releases=tuple(sorted(releases, key=lambda release: release.version, reverse=True)),
        patches=file.rows("patch", parse_component_patch),
    )


def read_cudnn(document: Document, mistakes: Mistakes) -> tuple[CudnnRelease, ...]:
    """Return the releases in cudnn.toml, newest first."""
    releases = _File(document, mistakes, "release", "disagreement").rows("release", parse_cudnn)
    return tuple(sorted(releases, key=lambda release: release.version, reverse=True))


def read_libraries(document: Document, mistakes: Mistakes) -> tuple[Library, ...]:
    """Return the rows of libraries.toml."""
    return _File(document, mistakes, "library", "disagreement").rows("library", parse_library)


def read_packages(document: Document, mistakes: Mistakes) -> PackageTable:
    """Return the tables in packages.toml."""
    file = _File(document, mistakes, "build", "place")
    return PackageTable(file.rows("build", parse_build_facts), file.rows("place", parse_place))


def read_extension(name: str, document: Document, mistakes: Mistakes) -> tuple[BuildFacts, ...]:
    """Return the rows of the file ``name`` of a package whose wheels were read."""
    rows = _File(document, mistakes, "build").rows("build", parse_build_facts)
    if any(f"{EXTENSIONS}/{row.package}" != name for row in rows):
        mistakes.add("build", "must be about the package that the file is called by")
    return rows


def check_gpus(document: Document, mistakes: Mistakes) -> None:
    """Check gpus.toml, which is otherwise read only row by row."""
    check_tables(document, ("gpu", "disagreement"), mistakes)
    evidence = parse_evidence(document.get("evidence", {}), mistakes)
    parse_rows("disagreement", document, parse_disagreement, evidence, mistakes)
    read_gpus(document, mistakes)


def check_pci_ids(document: Document, mistakes: Mistakes) -> None:
    """Check pci_ids.toml."""
    check_tables(document, ("device",), mistakes)
    parse_evidence(document.get("evidence", {}), mistakes)
    read_pci_ids(document, mistakes)


def read_framework(
    name: str, document: Document, mistakes: Mistakes, platform: Platform | None = None
) -> FrameworkTable:
    """Return the table of a framework's file, with the releases of ``platform`` or, for None, of all platforms."""
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
    return FrameworkTable(
        name=name,
        aliases=_aliases(document, mistakes),
        updated=_updated(document, mistakes),
        releases=releases,
        known_bad=parse_rows("known_bad", document, parse_known_bad, evidence, mistakes),
        platform_limits=parse_rows("platform_limit", document, parse_platform_limit, evidence, mistakes),
        disagreements=parse_rows("disagreement", document, parse_disagreement, evidence, mistakes),
    )


def require_schema(name: str, document: Document) -> None:
    """Raise MatrixError for a file in a newer format than this envsolve supports, because rows could be misread."""
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
    """Whether the framework's GPU builds need cuDNN. Only ``false`` means no."""
    value = document.get("uses_cudnn", True)
    if not isinstance(value, bool):
        mistakes.add("uses_cudnn", "must be true or false")
    return value is not False


def _aliases(document: Document, mistakes: Mistakes) -> tuple[str, ...]:
    """Other names of the framework."""
    aliases = document.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) and alias for alias in aliases):
        mistakes.add("aliases", "must be a list of names")
        return ()
    return tuple(aliases)


def without_mistakes(file: str, read: Callable[[Mistakes], T]) -> T:
    """Return the result of ``read``. Raises MatrixError with every mistake that it found in ``file``."""
    mistakes = Mistakes(file)
    table = read(mistakes)
    if mistakes.found:
        count = f"{len(mistakes.found)} mistakes" if len(mistakes.found) > 1 else "a mistake"
        raise MatrixError("matrix-invalid", f"the compatibility matrix has {count}", tuple(mistakes.found))
    return table


def read_torch_symbols(document: Document, mistakes: Mistakes) -> TorchSymbols:
    """Return the table in torch_symbols.toml."""
    return TorchSymbols(_File(document, mistakes, "symbols").rows("symbols", parse_symbols))
