"""Releases on package indexes that the matrix does not have, as rows made from their wheels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from packaging.version import Version

from envsolve.app.packages.lock_indexes import Connection, Places
from envsolve.boundary.document import Document
from envsolve.index.client import Indexes
from envsolve.matrix.laws import judge, latest_date
from envsolve.matrix.laws.facts import raw_evidence, raw_rows, texts
from envsolve.matrix.load import Matrix
from envsolve.matrix.overlay import Overlay
from envsolve.matrix.tables import SCHEMA_VERSION
from envsolve.model.release import PYTORCH_INDEX, Release
from envsolve.releases.errors import ReleaseError
from envsolve.releases.frameworks import readers
from envsolve.releases.reader import KEY, Reader, ReadEvidence, ReadRow
from envsolve.releases.remote import SMALL, days_of, wheels_of
from envsolve.releases.wheels import Listing
from envsolve.resolve.closure.workers import side_by_side

Row = dict[str, object]
_AT_ONCE = 4
_SERIES = 3
"""The number of newest series of a framework (2.15, 2.14, 2.13) that are searched for new releases. Older series are
complete in the matrix."""
_OF_THE_LANE = (
    *("glibc", "cuda", "cuda_requires", "cuda_libraries", "cudnn", "cudnn_requires", "cudnn_package", "extras"),
    *("sass", "ptx"),
)
"""The fields that a release inherits from the newest known one of its lane if its small files do not have them."""

_PLACE = ("source", "platform", "package")
_NEVER_READ = ("jit",)
"""The fields that only people write."""


class Published(NamedTuple):
    """The contents of indexes for a reader: its wheels, and the release date of each version, if known."""

    reader: Reader
    listing: Listing
    days: Mapping[str, str]

    @property
    def versions(self) -> frozenset[Version]:
        """The versions of the framework."""
        return frozenset(it for project in self.reader.releases_of for it in self.listing.versions(project))


class Found(NamedTuple):
    """The releases that were read of one framework, their release dates, and what could not be read."""

    rows: tuple[ReadRow, ...]
    days: Mapping[str, str]
    failures: tuple[str, ...]


class NewReleases:
    """Looks for releases on the indexes ``where``, over ``connection``.

    ``pytorch_index`` replaces PyTorch's own index. ``progress`` gets the name of each wheel that is fetched.
    """

    def __init__(
        self,
        matrix: Matrix,
        connection: Connection,
        where: Places,
        *,
        pytorch_index: str | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._matrix, self._connection = matrix, connection
        self._indexes = Indexes((*where.extra, where.default), connection.pool, where.mapped)
        self._pytorch_index = (pytorch_index or PYTORCH_INDEX).rstrip("/")
        self._progress = progress
        self._readers = readers(matrix)

    def readers_of(self, framework: str) -> tuple[Reader, ...]:
        """The readers for the releases of a framework: from the default index, and from its own index if it has one."""
        return tuple(it for it in self._readers.values() if it.framework == framework)

    def published(self, reader: Reader) -> Published:
        """The contents of the indexes. Raises OutsideError if one does not respond."""
        if not reader.endpoints:
            projects = [found for name in reader.projects if (found := self._indexes.project(name)) is not None]
        else:
            urls = (f"{self._pytorch_index}/{build}/" for build in self._lanes(reader))
            found_there = (self._connection.pool.index(url).project(name) for url in urls for name in reader.projects)
            projects = [found for found in found_there if found is not None]
        days: dict[str, str] = {}
        for project in projects if not reader.endpoints else ():
            if project.name in reader.releases_of:
                days = days_of(project) | days
        return Published(reader, Listing(file for project in projects for file in wheels_of(project)), days)

    def missing(self, published: Published) -> list[Version]:
        """The versions, with PyTorch's builds, that the matrix lacks in the newest series, newest first."""
        reader = published.reader
        releases = self._known(reader)
        known = {it.full_version for it in releases}
        series = sorted({it.version.release[:2] for it in releases}, reverse=True)[:_SERIES]
        oldest = series[-1] if series else ()
        new = (it for it in published.versions if it not in known and it.release[:2] >= oldest)
        return sorted(new, reverse=True)

    def read(self, published: Published, versions: Iterable[Version], platforms: Collection[str] = ()) -> Found:
        """The rows of ``versions``. With ``platforms``, only theirs are read, from the small files of their wheels."""
        reader, listing = published.reader, published.listing
        largest = None
        if platforms:
            listing, largest = listing.on(platforms), SMALL
        observations = self._connection.observations(reader, largest, self._progress)

        def rows_of(version: Version) -> tuple[ReadRow, ...] | str:
            try:
                return tuple(reader.rows(version, listing, observations.read))
            except ReleaseError as error:
                return f"{reader.framework} {version}: {error}"
            except (ValueError, LookupError) as error:
                return f"{reader.framework} {version}: its wheels say what envsolve cannot read: {error}"

        results = side_by_side(rows_of, versions, _AT_ONCE)
        rows = tuple(row for it in results if not isinstance(it, str) for row in it)
        days = {str(row.values["version"]): published.days.get(str(row.values["version"])) for row in rows}
        return Found(
            rows,
            {version: day for version, day in days.items() if day is not None},
            tuple(it for it in results if isinstance(it, str)),
        )

    def _known(self, reader: Reader) -> list[Release]:
        table = self._matrix.framework(reader.framework, None)
        return [it for it in table.releases if it.source.value == reader.source]

    def _lanes(self, reader: Reader) -> list[str]:
        """The builds of the newest releases on an index that has a folder for each."""
        releases = self._known(reader)
        newest = sorted({it.version for it in releases}, reverse=True)[:_SERIES]
        return sorted({it.build for it in releases if it.version in newest})


def row_of(framework: str, read: ReadRow, matrix: Matrix) -> Row:
    """A row as read. Fields that no wheel has are those of the newest known release of its lane."""
    row, lane = _as_read(read), _lane_of(framework, read, matrix)
    by_hand = [*texts(lane, "by_hand"), *_NEVER_READ] if lane else []
    return _taking_over(row, lane, [name for name in by_hand if name in lane])


def inferred_row(framework: str, read: ReadRow, matrix: Matrix) -> Row | str:
    """A row whose small files were read. Other fields are those of the newest release of the same build.

    If no such release is known, a sentence that says so.
    """
    row, lane = row_of(framework, read, matrix), _lane_of(framework, read, matrix)
    if row["build"] == "cpu":
        return row
    if not lane:
        return f"no release for CUDA {_major(row.get('cuda'))} on {row['platform']} is known to infer its GPUs from"
    return _taking_over(row, lane, [name for name in _OF_THE_LANE if name not in row and name in lane])


def _as_read(read: ReadRow) -> Row:
    """The fields of a row, without those that the wheel was seen not to have."""
    row = {name: value for name, value in {**read.defaults, **read.values}.items() if value is not None}
    return {**row, "evidence": [it.name for it in read.evidence]}


def _lane_of(framework: str, read: ReadRow, matrix: Matrix) -> Row:
    """The newest known release of the same build, or else of its CUDA major version; empty if there is none.

    PyTorch's default build moves to another toolkit every few releases, for the same GPUs.
    """
    own = [it for it in rows_in(matrix, framework) if all(it.get(key) == read.values.get(key) for key in _PLACE)]
    same = [it for it in own if it["build"] == read.values["build"]]
    alike = [it for it in own if "cuda" in it and _major(it["cuda"]) == _major(read.values.get("cuda"))]
    series = sorted({_series(it) for it in own}, reverse=True)[:_SERIES]
    return max(
        same or [it for it in alike if _series(it) in series], key=lambda it: Version(str(it["version"])), default={}
    )


def _series(row: Row) -> tuple[int, ...]:
    return Version(str(row["version"])).release[:2]


def _major(cuda: object) -> str:
    return str(cuda).partition(".")[0]


def _taking_over(row: Row, lane: Row, names: Sequence[str]) -> Row:
    """``row`` with the fields ``names`` of ``lane``."""
    if "jit" in names:
        has_code = set(texts(row, "sass") or texts(lane, "sass"))
        names = [it for it in names if it != "jit" or set(_mapping(lane["jit"])) <= has_code]
    if not names:
        return row
    more = {name: lane[name] for name in names}
    return {
        **row,
        **more,
        "inferred": [*texts(row, "inferred"), *names],
        "note": f"as in {lane['version']} ({lane['build']})",
    }


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def rows_in(matrix: Matrix, framework: str) -> Iterator[Row]:
    """The rows of a framework as they are in its files."""
    documents = [matrix.document(framework), *(it.documents.get(framework, {}) for it in matrix.overlays)]
    for document in documents:
        yield from map(dict, raw_rows(document, "release"))


def framework_document(
    framework: str,
    matrix: Matrix,
    rows: Sequence[Row],
    evidence: Iterable[ReadEvidence],
    days: Mapping[str, str],
    before: Document | None = None,
) -> Document:
    """The file of a framework with ``rows``, and those of ``before`` for builds not in ``rows`` or shipped since.

    The newest is first.
    """
    today = today_in_utc()
    before = before or {}
    shipped = matrix.document(framework)
    keys = {_key(row) for row in (*rows, *raw_rows(shipped, "release"))}
    older = [row for row in map(dict, raw_rows(before, "release")) if _key(row) not in keys]
    every = sorted((*rows, *older), key=lambda row: Version(str(row["version"])), reverse=True)
    cited = {**raw_evidence(before), **{it.name: evidence_row(it, today) for it in evidence}}
    used = {name for row in every for name in texts(row, "evidence")}
    versions = {str(row["version"]) for row in every}
    released = {version: day for version, day in {**_released(before), **days}.items() if version in versions}
    head: Document = {name: shipped[name] for name in ("framework", "aliases", "uses_cudnn") if name in shipped}
    document: Document = {"schema_version": SCHEMA_VERSION, "updated": today, **head}
    used_here = {name: dict(it) for name, it in cited.items() if name in used}
    if released:
        reference = f"upload times of the files of {framework} on the package index"
        used_here["upload-times"] = {"kind": "wheel", "reference": reference, "seen": today}
    document["evidence"] = used_here
    if released:
        document["dates"] = [{"evidence": ["upload-times"], "released": released}]
    return {**document, "release": every}


def breaches(documents: Mapping[str, Document], matrix: Matrix) -> list[str]:
    """The errors in ``documents`` as an overlay of ``matrix``: mistakes, and laws that they violate."""
    overlay = Overlay.of(documents)
    usable = {f"overlay/{name}": it for name, it in overlay.documents.items()}
    found = [it for verdict in judge(matrix.with_overlay(overlay), latest_date(), usable) for it in verdict.violations]
    mistakes = [str(note.fields["because"]) for note in overlay.notes]
    before = {it for verdict in judge(matrix, latest_date()) for it in verdict.violations} if found else set()
    return [*mistakes, *(it for it in found if it not in before)]


def _key(row: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(str(row.get(name)) for name in KEY)


def _released(document: Document) -> dict[str, object]:
    """The dates in a file of a framework."""
    rows = (row.get("released") for row in raw_rows(document, "dates"))
    return {version: day for found in rows if isinstance(found, dict) for version, day in found.items()}


def today_in_utc() -> str:
    """The date of a file and its evidence."""
    return datetime.now(UTC).date().isoformat()


def evidence_row(read: ReadEvidence, today: str) -> dict[str, str]:
    """The ``[evidence.<id>]`` of what was read."""
    digest = {} if read.sha256 is None else {"sha256": read.sha256}
    return {"kind": read.kind, "reference": read.reference, **digest, "seen": today}
