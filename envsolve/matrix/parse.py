"""From TOML rows to values: one function per table, with keys in the order of the matrix README."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple, TypeVar

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from envsolve.boundary.document import Document
from envsolve.matrix.row import Mistakes, Row, RowError
from envsolve.model.build_facts import BuildFacts, Place
from envsolve.model.capability import CodeTarget, ComputeCapability, DeviceCode
from envsolve.model.fact import Evidence, EvidenceKind
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.model.release import (
    Architecture,
    Component,
    ComponentPatch,
    CudaLibraries,
    CudnnRelease,
    Disagreement,
    DriverBranch,
    ForwardCompatibility,
    KnownBad,
    PlatformLimit,
    Release,
    Source,
    Toolkit,
    ToolkitRelease,
)
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion

T = TypeVar("T")
KnownEvidence = Mapping[str, Evidence]

_ISO_DATE_LENGTH = 10
_MINORS = 20
_SHA256_DIGITS = 64
_WHEEL = re.compile(r"\w+-[\w.+]+-\{python\}-[\w.]+\.whl")


def parse_rows(
    table: str,
    document: Document,
    parse: Callable[[Row, KnownEvidence], T],
    known: KnownEvidence,
    mistakes: Mistakes,
    *,
    platform: Platform | None = None,
) -> tuple[T, ...]:
    """Return every valid row of an array of tables, and record the mistakes of the others.

    With ``platform`` only its rows are read. Rows are numbered as in the file.
    """
    rows = document.get(table, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        mistakes.add(table, "must be an array of tables")
        return ()
    parsed = []
    for number, values in enumerate(rows, 1):
        if platform is not None and values.get("platform") != platform.value:
            continue
        row = Row(f"{table}[{number}]", values, mistakes)
        try:
            parsed.append(parse(row, known))
        except RowError:
            continue
        row.done()
    return tuple(parsed)


def check_tables(document: Document, tables: tuple[str, ...], mistakes: Mistakes) -> None:
    """Report top-level keys that a file of this kind does not have. Else a misspelt table would be ignored."""
    for key in document:
        if key not in ("schema_version", "updated", "evidence", *tables):
            mistakes.add(key, "is not a table or key of this file")


def parse_evidence(tables: object, mistakes: Mistakes) -> dict[str, Evidence]:
    """Return the ``[evidence.<id>]`` tables of a file."""
    if not isinstance(tables, dict):
        mistakes.add("evidence", "must be a table of tables")
        return {}
    evidence = {}
    for name, values in tables.items():
        if not isinstance(values, dict):
            mistakes.add(f"evidence.{name}", "must be a table")
            continue
        row = Row(f"evidence.{name}", values, mistakes)
        try:
            evidence[name] = Evidence(
                row.parsed("kind", EvidenceKind),
                row.text("reference"),
                row.parsed("seen", _date),
                row.optional("sha256", _sha256),
            )
        except RowError:
            continue
        row.done()
    return evidence


def parse_dates(row: Row, known: KnownEvidence) -> dict[str, str]:
    """Read a ``[[dates]]`` row: the day on which each version was released."""
    days = {}
    for version, day in row.table("released"):
        try:
            _public_version(version)
            days[version] = _date(day)
        except ValueError as error:
            row.wrong("released", f"{version}: {error}")
    row.evidence(known)
    return days


def parse_release(
    framework: str, released: Mapping[str, str], *, uses_cudnn: bool
) -> Callable[[Row, KnownEvidence], Release]:
    """Return a parser for ``[[release]]`` rows of ``framework``. Without ``uses_cudnn`` none may require cuDNN.

    ``released`` is the day of each version, if known.
    """

    def parse(row: Row, known: KnownEvidence) -> Release:
        cuda = row.optional("cuda", CudaVersion.parse)
        release = Release(
            framework=framework,
            version=row.parsed("version", _public_version),
            source=row.parsed("source", Source),
            platform=row.parsed("platform", Platform),
            build=row.text("build"),
            build_string=row.text("build_string", "") or f"{row.text('build')}*",
            package=row.text("package"),
            pythons=row.each("pythons", _python, required=True),
            glibc=row.optional("glibc", LibcVersion.parse),
            cuda=cuda,
            cuda_requires=row.optional("cuda_requires", read_specifiers),
            cuda_libraries=row.optional("cuda_libraries", CudaLibraries),
            cudnn=row.optional("cudnn", read_version),
            cudnn_requires=row.optional("cudnn_requires", read_specifiers),
            cudnn_package=row.optional("cudnn_package", str),
            extras=row.texts("extras"),
            code=_code(row.each("sass", read_target), row.each("ptx", read_target)),
            companions=row.table("companions"),
            constraints=row.texts("constraints"),
            evidence=row.evidence(known),
            inferred=row.texts("inferred"),
            note=row.text("note", ""),
            wheel=row.optional("wheel", _wheel) or "",
            jit=_jit(row),
            released=released.get(row.text("version")),
        )
        row.texts("by_hand")  # only for readers of the file and the refresh script
        _check_release(row, release, uses_cudnn=uses_cudnn)
        return release

    return parse


def parse_known_bad(row: Row, known: KnownEvidence) -> KnownBad:
    """A ``[[known_bad]]`` row."""
    return KnownBad(
        versions=row.parsed("versions", read_specifiers),
        sources=row.each("sources", Source),
        builds=row.texts("builds"),
        platforms=row.each("platforms", Platform),
        capabilities=row.each("capabilities", ComputeCapability.parse),
        reason=row.text("reason"),
        evidence=row.evidence(known),
    )


def parse_disagreement(row: Row, known: KnownEvidence) -> Disagreement:
    """A ``[[disagreement]]`` row of any file."""
    return Disagreement(
        about=row.text("about"),
        versions=row.optional("versions", read_specifiers),
        used=row.text("used"),
        rejected=row.text("rejected"),
        because=row.text("because"),
        evidence=row.evidence(known),
    )


def parse_platform_limit(row: Row, known: KnownEvidence) -> PlatformLimit:
    """A ``[[platform_limit]]`` row."""
    return PlatformLimit(
        platform=row.parsed("platform", Platform),
        versions=row.parsed("versions", read_specifiers),
        reason=row.text("reason"),
        instead=row.text("instead"),
        evidence=row.evidence(known),
    )


def parse_toolkit(row: Row, known: KnownEvidence) -> Toolkit:
    """A ``[[toolkit]]`` row of cuda.toml."""
    toolkit = Toolkit(
        version=row.parsed("version", CudaVersion.parse),
        linux_floor=row.parsed("linux_floor", DriverVersion.parse),
        linux_full=row.optional("linux_full", DriverVersion.parse),
        windows_floor=row.parsed("windows_floor", DriverVersion.parse),
        windows_full=row.optional("windows_full", DriverVersion.parse),
        compiles_for=row.each("compiles_for", _capability, required=True),
        feature_targets=row.each("feature_targets", read_target),
        evidence=row.evidence(known),
    )
    _ignore(row, "note", "inferred")
    for name, floor, full in (
        ("linux", toolkit.linux_floor, toolkit.linux_full),
        ("windows", toolkit.windows_floor, toolkit.windows_full),
    ):
        if full is not None and not full.meets(floor):
            row.wrong(f"{name}_full", f"{full} is older than the floor {floor}")
    return toolkit


def parse_driver_branch(row: Row, known: KnownEvidence) -> DriverBranch:
    """A ``[[driver_branch]]`` row of cuda.toml."""
    branch = DriverBranch(
        branch=row.integer("branch"),
        cuda=row.parsed("cuda", CudaVersion.parse),
        first_linux=row.optional("first_linux", DriverVersion.parse),
        first_windows=row.optional("first_windows", DriverVersion.parse),
        evidence=row.evidence(known),
    )
    _ignore(row, "oldest_capability", "support", "note", "inferred")
    return branch


def parse_forward_compatibility(row: Row, known: KnownEvidence) -> ForwardCompatibility:
    """The ``[[forward_compatibility]]`` row of cuda.toml."""
    found: list[tuple[CudaVersion, frozenset[int]]] = []
    for cuda, branches in row.table("packages"):
        try:
            found.append((CudaVersion.parse(cuda), frozenset(map(int, branches.split()))))
        except ValueError as error:
            row.wrong("packages", f"{cuda}: {error}")
    return ForwardCompatibility(
        frozenset(row.texts("gpus", required=True)), tuple(sorted(found, key=lambda it: it[0])), row.evidence(known)
    )


def parse_architecture(row: Row, known: KnownEvidence) -> Architecture:
    """An ``[[architecture]]`` row of cuda.toml."""
    architecture = Architecture(
        capability=row.parsed("capability", ComputeCapability.parse),
        name=row.text("name"),
        first_branch=row.integer("first_branch") if row.has("first_branch") else None,
        last_branch=row.integer("last_branch") if row.has("last_branch") else None,
        evidence=row.evidence(known),
    )
    _ignore(row, "first_cuda", "last_cuda", "note", "inferred")
    return architecture


def parse_cudnn(row: Row, known: KnownEvidence) -> CudnnRelease:
    """A ``[[release]]`` row of cudnn.toml."""
    ptx = row.each("ptx", read_target)
    release = CudnnRelease(
        version=row.parsed("version", read_version),
        cuda_major=row.integer("cuda_major"),
        cuda=row.each("cuda", _cuda),
        code=DeviceCode(row.each("sass", read_target), ptx) if row.has("sass") else None,
        code_aarch64=DeviceCode(row.each("sass_aarch64", read_target), ptx) if row.has("sass_aarch64") else None,
        oldest=row.parsed("min_capability", _capability),
        newest=row.parsed("max_capability", _capability),
        on_pypi=row.has("pypi"),
        conda_platforms=row.each("conda_forge", Platform),
        conda_glibc=row.optional("glibc_conda_forge", LibcVersion.parse),
        evidence=row.evidence(known),
    )
    _ignore(row, "pypi", "archive", "note", "inferred")
    for cuda in release.cuda:
        if cuda.major != release.cuda_major:
            row.wrong("cuda", f"CUDA {cuda} is not of major {release.cuda_major}")
    return release


def parse_toolkit_release(row: Row, known: KnownEvidence) -> ToolkitRelease:
    """A ``[[toolkit]]`` row of cuda_components.toml."""
    release = ToolkitRelease(
        version=row.parsed("version", read_version),
        cuda=row.parsed("cuda", CudaVersion.parse),
        linux_full=row.optional("linux_full", DriverVersion.parse),
        windows_full=row.optional("windows_full", DriverVersion.parse),
        components=tuple(_components(row)),
        evidence=row.evidence(known),
    )
    _ignore(row, "released", "note", "inferred")
    if release.version.release[:2] != release.cuda:
        row.wrong("cuda", f"{release.version} is not a release of CUDA {release.cuda}")
    return release


def parse_component_patch(row: Row, known: KnownEvidence) -> ComponentPatch:
    """A ``[[patch]]`` row of cuda_components.toml."""
    patch = ComponentPatch(
        package=row.text("package"),
        versions=row.each("versions", read_version, required=True),
        cuda=row.parsed("cuda", CudaVersion.parse),
        evidence=row.evidence(known),
    )
    _ignore(row, "note", "inferred")
    return patch


class Library(NamedTuple):
    """A CUDA or driver library and its file names for one CUDA minor, or for one version outside the toolkit."""

    name: str
    version: str
    linux: str | None
    windows: str | None
    evidence: tuple[Evidence, ...]


def parse_library(row: Row, known: KnownEvidence) -> Library:
    """A ``[[library]]`` row of libraries.toml."""
    library = Library(
        name=row.text("name"),
        version=row.text("cuda") if row.has("cuda") else row.text("version"),
        linux=row.optional("linux", str),
        windows=row.optional("windows", str),
        evidence=row.evidence(known),
    )
    _ignore(row, "version", "pypi", "conda", "note", "inferred")
    if library.linux is None and library.windows is None:
        row.wrong("", "names no file")
    return library


_SEEN = "the matrix says; its metadata do not"


def parse_build_facts(row: Row, known: KnownEvidence) -> BuildFacts:
    """A ``[[build]]`` row of packages.toml."""
    from envsolve.model.need import parse_need

    facts = BuildFacts(
        package=row.text("package"),
        versions=row.parsed("versions", read_specifiers),
        cuda=row.optional("cuda", read_specifiers),
        requires=tuple(it._replace(because=_SEEN) for it in row.each("requires", parse_need)),
        constraints=row.each("constraints", parse_need),
        loss=row.text("loss", ""),
        evidence=row.evidence(known),
        beside=row.text("beside", ""),
        code=DeviceCode(row.each("sass", read_target), row.each("ptx", read_target)) if row.has("sass") else None,
        linked_cuda=row.optional("linked_cuda", int),
        with_cuda=row.optional("with_cuda", read_specifiers),
        platforms=row.each("platforms", Platform),
        ptx_cuda=row.optional("ptx_cuda", CudaVersion.parse),
    )
    if facts.package != normalized(facts.package):
        row.wrong("package", f"must be the normalized name, {normalized(facts.package)}")
    if not facts.are_about_cuda and not facts.requires and not facts.constraints:
        row.wrong("", "says nothing: cuda, linked_cuda, sass, loss, requires or constraints must be there")
    if facts.with_cuda is not None and facts.code is None:
        row.wrong("with_cuda", "is about code: sass must be there")
    return facts


def parse_place(row: Row, known: KnownEvidence) -> Place:
    """A ``[[place]]`` row of packages.toml."""
    place = Place(row.text("name"), row.texts("packages", required=True), row.evidence(known))
    for package in place.packages:
        if package != normalized(package):
            row.wrong("packages", f"{package} must be the normalized name, {normalized(package)}")
    if " " not in place.name:
        row.wrong("name", "must say what it is, as in 'the folder nvidia/nccl'")
    return place


def _components(row: Row) -> Iterator[Component]:
    """Each component with the version at the start of its pin: ``==12.6.4.1.*`` and ``<13,>=12.8.93`` each have one."""
    for package, text in row.table("components"):
        try:
            pin = read_specifiers(text)
            begins = [part.version.removesuffix(".*") for part in pin if part.operator in ("==", ">=")]
            yield Component(package, read_version("".join(begins)))
        except ValueError as error:
            row.wrong("components", f"{package}: {error}")


def _jit(row: Row) -> tuple[tuple[CodeTarget, CudaVersion], ...]:
    """The targets for which some kernels of a release have only PTX, each with the toolkit that made it."""
    try:
        found = tuple((read_target(target), CudaVersion.parse(cuda)) for target, cuda in row.table("jit"))
    except ValueError as error:
        row.wrong("jit", str(error))
        return ()
    sass = row.each("sass", read_target)
    for target, _ in found:
        if target not in sass:
            row.wrong("jit", f"{target} is not in sass: list only targets with machine code")
    return found


def _check_release(row: Row, release: Release, *, uses_cudnn: bool) -> None:
    if release.wheel and release.wheel.split("-")[1] != str(release.version):
        row.wrong("wheel", f"{release.wheel} is not named {release.version} alone")
    if release.cuda is None:
        if release.code.sass or release.cudnn is not None or release.build != "cpu":
            row.wrong("cuda", "is missing: a build without it must be 'cpu' and have no device code or cuDNN")
        return
    if not release.code.sass:
        row.wrong("sass", "is missing: a GPU build must list its machine code")
    if release.cuda_requires is None:
        row.wrong("cuda_requires", "is missing: a GPU build must list the toolkits it runs with")
    elif not any(release.cuda_requires.contains(f"{release.cuda.major}.{minor}") for minor in range(_MINORS)):
        row.wrong("cuda_requires", f"{release.cuda_requires} admits no CUDA {release.cuda.major}")
    if release.cuda_libraries is None:
        row.wrong("cuda_libraries", "is missing: a GPU build must say where its CUDA libraries come from")
    if not release.platform.has_cuda:
        row.wrong("platform", f"{release.platform} has no CUDA")
    _check_cudnn(row, release, uses_cudnn=uses_cudnn)


def _check_cudnn(row: Row, release: Release, *, uses_cudnn: bool) -> None:
    if not uses_cudnn:
        if release.cudnn_requires is not None or release.cudnn_package is not None:
            row.wrong("cudnn_requires", "requires cuDNN, but uses_cudnn is false for the framework")
    elif release.cudnn_requires is None and not release.brings_cudnn:
        row.wrong("cudnn_requires", "is missing: a GPU build must list the cuDNN it runs with")


def _ignore(row: Row, *keys: str) -> None:
    """Accept keys that are only for readers of the file."""
    for key in keys:
        row.seen(key)


_code = cache(DeviceCode)
"""One object for all builds with the same code, which is smaller in a cache, too."""


@cache
def read_version(text: str) -> Version:
    """Read a PEP 440 version. Raises ValueError for anything else."""
    try:
        return Version(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a version") from error


def _public_version(text: str) -> Version:
    """The version of a release. A local version would be its build."""
    version = read_version(text)
    if version.local is not None:
        raise ValueError(f"{text!r} has a local label: {version.local} belongs to build")
    return version


@cache
def read_specifiers(text: str) -> SpecifierSet:
    """Read a PEP 440 specifier. Raises ValueError for anything else."""
    try:
        return SpecifierSet(text)
    except InvalidSpecifier as error:
        raise ValueError(f"{text!r} is not a version specifier") from error


@cache
def _cuda(text: str) -> CudaVersion:
    return CudaVersion.parse(text)


@cache
def _capability(text: str) -> ComputeCapability:
    return ComputeCapability.parse(text)


@cache
def read_target(text: str) -> CodeTarget:
    """Read a code target such as ``9.0a``. Raises ValueError for anything else."""
    return CodeTarget.parse(text)


def _python(text: str) -> str:
    major, _, minor = text.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        raise ValueError(f"{text!r} is not a Python minor version such as 3.12")
    return text


def _wheel(text: str) -> str:
    if not _WHEEL.fullmatch(text):
        raise ValueError(f"{text!r} is not a wheel such as torch-1.8.0-{{python}}-linux_x86_64.whl")
    return text


def _sha256(text: str) -> str:
    if len(text) != _SHA256_DIGITS or not set(text) <= set("0123456789abcdef"):
        raise ValueError(f"{text!r} is not a SHA-256 in hexadecimal digits")
    return text


def _date(text: str) -> str:
    if len(text) != _ISO_DATE_LENGTH or [len(part) for part in text.split("-")] != [4, 2, 2]:
        raise ValueError(f"{text!r} is not a date such as 2026-11-20")
    return text
