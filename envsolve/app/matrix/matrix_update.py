"""New releases without a new envsolve: those that only indexes have become rows on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.matrix.new_releases import (
    NewReleases,
    Published,
    Row,
    breaches,
    evidence_row,
    framework_document,
    row_of,
    today_in_utc,
)
from envsolve.app.matrix.overlay_files import Making
from envsolve.app.packages.audit import ALL, BUDGET, evidence_of
from envsolve.app.packages.lock_indexes import Connection, start
from envsolve.app.packages.wheel_facts import Reading
from envsolve.app.request.network import Network
from envsolve.binary.package_facts import PackageFacts
from envsolve.boundary.document import Document
from envsolve.errors import Hint, OutsideError, UnsolvableError, UsageError
from envsolve.frameworks import FRAMEWORK_OF_WHEEL
from envsolve.index.client import Indexes, package_file
from envsolve.index.page import Project, RawFile
from envsolve.matrix.laws.facts import raw_evidence, raw_rows
from envsolve.matrix.load import Matrix
from envsolve.matrix.tables import EXTENSIONS, SCHEMA_VERSION
from envsolve.model.build_facts import BuildFacts
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.model.note import Note
from envsolve.model.package import PackageFile
from envsolve.model.request import Packages, Request
from envsolve.releases.reader import KEY, ReadEvidence, ReadRow
from envsolve.releases.wheels import WheelFile, wheel_files

_PLATFORM = Platform.LINUX_64
"""The platform whose wheels are read for packages with kernels, as for the shipped rows."""

_NOT_ADDED = "release-not-added"
_SHOWN = ("pythons", "cuda", "linked_cuda", "cudnn", "sass", "ptx")


class UpdateRequest(NamedTuple):
    """What to look for: ``names`` of frameworks and packages; if empty, all in the matrix.

    ``index_url``, ``extra_index_urls`` and ``pytorch_index_url`` are as in a request for a lock.
    """

    names: tuple[str, ...] = ()
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    pytorch_index_url: str | None = None
    network: Network = Network()
    progress: Callable[[str], None] = lambda _: None


class New(NamedTuple):
    """A row that the matrix does not have, and the ``file`` that it belongs to, such as ``pytorch``."""

    file: str
    row: Row


class Updated(NamedTuple):
    """The result: new rows, functions that add them to existing files, and notes.

    ``failures`` are the releases that could not be read, each with the reason.
    """

    new: tuple[New, ...]
    files: Mapping[str, Making]
    notes: tuple[Note, ...]
    failures: tuple[str, ...]

    @property
    def matrix_is_complete(self) -> bool:
        """Whether the matrix has every release that was looked for, even those that cannot be read yet."""
        return not self.new and all(it.code != _NOT_ADDED for it in self.notes)


def look_for_new(request: UpdateRequest, matrix: Matrix, environ: Mapping[str, str]) -> Updated:
    """Read the releases on the indexes that ``matrix`` does not have. Writes nothing.

    Raises UsageError for an invalid name or address; UnsolvableError if a named package is on no index; OutsideError if
    an index does not respond.
    """
    as_request = Request(
        frameworks=(),
        index_url=request.index_url,
        extra_index_urls=request.extra_index_urls,
        packages=Packages(pytorch_index_url=request.pytorch_index_url),
    )
    frameworks, packages = _named(request.names, matrix)
    with start(as_request, request.network, environ) as (_, where, connection):
        new = NewReleases(matrix, connection, where, pytorch_index=request.pytorch_index_url, progress=request.progress)
        look = _Look(matrix, bool(request.names))
        for name in frameworks:
            look.at_framework(name, new)
        indexes = Indexes((*where.extra, where.default), connection.pool, where.mapped)
        for name in packages:
            look.at_package(name, indexes, connection, request.progress)
    return Updated(tuple(look.new), look.files, (*look.notes, *where.notes, *connection.notes), tuple(look.failures))


def _named(names: Sequence[str], matrix: Matrix) -> tuple[list[str], list[str]]:
    """The named frameworks and packages with kernels. Raises UsageError for an unknown name."""
    from envsolve.app.solve.solving import framework_names

    if not names:
        return list(matrix.framework_names), [it.partition("/")[2] for it in matrix.extension_tables]
    known = {**FRAMEWORK_OF_WHEEL, **framework_names(matrix)}
    wanted = [normalized(name) for name in names]
    for name, typed in zip(wanted, names, strict=True):
        if not all(it.isalnum() or it == "-" for it in name) or not name:
            raise UsageError("invalid-name", f"{typed!r} is not the name of a framework or a package")
    frameworks = dict.fromkeys(known[it] for it in wanted if it in known)
    return list(frameworks), [it for it in dict.fromkeys(wanted) if it not in known]


class _Look:
    """The results so far."""

    def __init__(self, matrix: Matrix, by_name: bool) -> None:
        self._matrix, self._by_name = matrix, by_name
        self.new: list[New] = []
        self.files: dict[str, Making] = {}
        self.notes: list[Note] = []
        self.failures: list[str] = []

    def at_framework(self, name: str, releases: NewReleases) -> None:
        """Read the releases of a framework that the matrix does not have."""
        read: list[ReadRow] = []
        days: dict[str, str] = {}
        for reader in releases.readers_of(name):
            try:
                published = releases.published(reader)
            except OutsideError as error:
                if not reader.endpoints:
                    raise
                self.failures.append(f"{name} on its own index: {error.message}")
                continue
            if not published.versions and not reader.endpoints:
                self._has_none(published)
            found = releases.read(published, releases.missing(published))
            read += found.rows
            days = {**days, **found.days}
            self.failures += found.failures
        accepted = self._lawful(name, read, days)
        if accepted:
            self.files[name] = partial(self._document, name, accepted, days)
            self.new += [New(name, row_of(name, it, self._matrix)) for it in accepted]

    def _has_none(self, published: Published) -> None:
        reader = published.reader
        text = f"the index has no wheels of {', '.join(reader.releases_of)}"
        self.notes.append(Note("not-on-index", text).about(framework=reader.framework))

    def _document(
        self, name: str, read: Sequence[ReadRow], days: Mapping[str, str], before: Document | None = None
    ) -> Document:
        evidence = [it for row in read for it in row.evidence]
        rows = [row_of(name, it, self._matrix) for it in read]
        return framework_document(name, self._matrix, rows, evidence, days, before)

    def _lawful(self, name: str, read: Sequence[ReadRow], days: Mapping[str, str]) -> list[ReadRow]:
        """The rows that obey the laws of the matrix. Notes say why others are left out."""
        if not read or not breaches({name: self._document(name, read, days)}, self._matrix):
            return list(read)
        accepted: list[ReadRow] = []
        for version in sorted({str(it.values["version"]) for it in read}, key=Version):
            rows = [it for it in read if it.values["version"] == version]
            against = breaches({name: self._document(name, rows, days)}, self._matrix)
            if against:
                self.notes.append(_left_out(f"{name} {version}", against))
            else:
                accepted += rows
        return accepted

    def at_package(self, name: str, indexes: Indexes, connection: Connection, progress: Callable[[str], None]) -> None:
        """Read the newest release of a package with kernels if the matrix does not know it.

        Raises UnsolvableError if the package was named and is on no index.
        """
        project = indexes.project(name)
        chosen = None if project is None else _newest_wheel(project)
        if project is None or chosen is None:
            if self._by_name:
                raise _not_there(name)
            return
        version, raw = chosen
        known = self._matrix.build_facts(name)
        if any(it.covers(version) for it in known) or _is_behind(version, known):
            return
        if any(it.with_cuda is not None or it.loss or it.beside for it in known):
            text = f"{name} {version} is not added: what its rows say is decided by people"
            self.notes.append(Note(_NOT_ADDED, text).about(release=f"{name} {version}"))
            return
        file = package_file(project, raw)
        requires = [it.name for it in indexes.metadata(project, raw).requires or () if "extra" not in it.marker]
        (facts,) = connection.wheels.read([Reading(file, ALL if self._by_name else BUDGET, named=False)], progress)
        found = self._build_facts(f"{name} {version}", facts, requires, file)
        if found is not None:
            self._add_package(found, file)

    def _build_facts(
        self, release: str, facts: PackageFacts | None, requires: Sequence[str], file: PackageFile
    ) -> BuildFacts | None:
        """The facts read from a wheel, as a row; None if that is not possible, with a note."""
        name, _, version = release.partition(" ")
        if facts is None:
            self.failures.append(f"{release}: {file.name} cannot be read")
            return None
        if facts.unread:
            text = f"{release} is not added: {facts.unread / 1e6:,.0f} MB of its libraries were not read"
            self.notes.append(Note("not-read", text, f"envsolve matrix update {name}").about(package=name))
            return None
        torch = self._matrix.torch_for(facts.torch, _PLATFORM)
        found = facts.build_facts(name, version, requires, evidence_of(file), torch)
        if found is None and self._by_name:
            text = f"{release} is not added: it has no kernels and loads no CUDA"
            self.notes.append(Note("nothing-to-add", text).about(package=name))
        if found is None or file.name.endswith("-any.whl"):
            return found
        return found._replace(platforms=(_PLATFORM,))

    def _add_package(self, found: BuildFacts, file: PackageFile) -> None:
        name = f"{EXTENSIONS}/{found.package}"
        making = partial(_package_document, found, file)
        against = breaches({name: making(None)}, self._matrix)
        if against:
            self.notes.append(_left_out(f"{found.package} {str(found.versions).removeprefix('==')}", against))
            return
        self.files[name] = making
        self.new.append(New(name, _build_row(found)))


def _not_there(name: str) -> UnsolvableError:
    hint = Hint("check the name, or name the index that has it with --index-url")
    return UnsolvableError("no-such-package", f"the index has no wheel of {name} for {_PLATFORM}", hints=(hint,))


def _left_out(what: str, against: Sequence[str]) -> Note:
    more = f" (and {len(against) - 1} more)" if len(against) > 1 else ""
    text = f"{what} is not added: {against[0]}{more}. A newer envsolve may know it"
    return Note(_NOT_ADDED, text).about(release=what, because=against[0])


def _newest_wheel(project: Project) -> tuple[str, RawFile] | None:
    """The newest release with a wheel for x86-64 Linux, and its wheel for the newest Python."""
    for position in reversed(range(len(project.versions))):
        wheels = [raw for raw in project.files(position) if PackageFile._make(raw).yanked is None]
        found = [(listed, raw) for raw in wheels for listed in wheel_files(project.name, raw[0], raw[1], None)]
        fitting = [(listed, raw) for listed, raw in found if listed.platform in (_PLATFORM, None)]
        if fitting:
            return project.versions[position], max(fitting, key=lambda it: _newest_python(it[0]))[1]
    return None


def _newest_python(wheel: WheelFile) -> tuple[list[Version], str]:
    return sorted(map(Version, wheel.pythons), reverse=True), wheel.filename


def _is_behind(version: str, known: Iterable[BuildFacts]) -> bool:
    """Whether there are rows about newer releases. If so, the matrix was checked for this one."""
    named = (Version(it.version.removesuffix(".*")) for facts in known for it in SpecifierSet(str(facts.versions)))
    return any(it > Version(version) for it in named)


def _package_document(found: BuildFacts, file: PackageFile, before: Document | None) -> Document:
    """The file of a package with the row ``found`` above those of ``before``."""
    today, row = today_in_utc(), _build_row(found)
    name = str(row["evidence"][0])  # type: ignore[index]  # a list
    older = [dict(it) for it in raw_rows(before or {}, "build") if it.get("versions") != row["versions"]]
    read = ReadEvidence(
        name, f"{file.name}: fat binaries, names of CUDA libraries and symbols of PyTorch", found.evidence[0].sha256
    )
    evidence = {**{key: dict(it) for key, it in raw_evidence(before or {}).items()}, name: evidence_row(read, today)}
    return {"schema_version": SCHEMA_VERSION, "updated": today, "evidence": evidence, "build": [row, *older]}


def _build_row(facts: BuildFacts) -> Row:
    row: Row = {"package": facts.package, "versions": str(facts.versions)}
    if facts.platforms:
        row["platforms"] = [it.value for it in facts.platforms]
    if facts.cuda is not None:
        row["cuda"] = str(facts.cuda)
    if facts.linked_cuda is not None:
        row["linked_cuda"] = str(facts.linked_cuda)
    if facts.code is not None:
        row |= {"sass": list(map(str, facts.code.sass)), "ptx": list(map(str, facts.code.ptx))}
    if facts.ptx_cuda is not None:
        row["ptx_cuda"] = str(facts.ptx_cuda)
    if facts.requires:
        row["requires"] = list(map(str, facts.requires))
    version = str(facts.versions).removeprefix("==")
    return {**row, "evidence": ["v" + "".join(it if it.isalnum() else "-" for it in version)]}


def shown(new: Iterable[New]) -> Iterator[str]:
    """The rows as a diff for people, by file."""
    file = ""
    for it in new:
        if it.file != file:
            file = it.file
            yield f"{file}.toml:"
        yield f"  + {' '.join(str(it.row[key]) for key in (*KEY, 'versions') if key in it.row)}"
        values = ", ".join(f"{key} {_value(it.row[key])}" for key in _SHOWN if key in it.row)
        if values:
            yield f"      {values}"


def _value(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
