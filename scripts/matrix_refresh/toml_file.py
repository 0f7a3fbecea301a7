"""Changing a framework's file in place: what was read wins, what a person wrote stays.

A row is found by version, source, platform, build and package. Of a row that is there only the fields that were read
change, and not those that ``by_hand`` names. A value that says the same as the wheel and more (cuDNN 8.1 where the
wheel says 8) stays too. Rows that no wheel was found for are never removed: they are reported.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from envsolve.releases.reader import KEY, ReadEvidence, ReadRow, Value
from scripts.matrix_refresh.cache import write_whole
from scripts.matrix_refresh.errors import RefreshError
from scripts.matrix_refresh.toml_text import blocks_of, inserted, key_text, new_block, odd_headers, path_of, with_field

FIELDS = (
    *("version", "source", "platform", "build", "build_string", "package", "pythons", "glibc"),
    *("cuda", "cuda_requires", "cuda_libraries", "cudnn", "cudnn_requires", "cudnn_package", "wheel", "extras"),
    *("sass", "ptx", "jit", "companions", "constraints", "evidence", "inferred", "by_hand", "note"),
)
"""The order of the fields in a row."""
_TOP = ("schema_version", "updated")
_RELEASE, _EVIDENCE, _DATES = "release", "evidence", "dates"
_SOURCES = ("pypi", "pytorch", "jax-releases", "conda-forge", "pytorch-channel")
_PLATFORMS = ("linux-64", "linux-aarch64", "win-64", "osx-64", "osx-arm64")


class Change(NamedTuple):
    """One field of a row that changes; None: the field was or will not be there."""

    field: str
    before: object
    after: object


class RowChange(NamedTuple):
    """What changes in one row: the row as it will be, and its fields that change; ``new`` for a row added."""

    row: Mapping[str, object]
    changes: tuple[Change, ...]
    new: bool


class Citation(NamedTuple):
    """Evidence whose words change."""

    name: str
    before: str
    after: str


class _Row(NamedTuple):
    """A row, and which block of the file it is."""

    block: int
    values: Mapping[str, object]


class MatrixFile:
    """One framework's TOML file, open for changes. Raises RefreshError where it cannot be read.

    ``cited`` are the citations that were brought up to another wheel, or to other members of it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = path.read_bytes().decode("utf-8")
            document = tomllib.loads(text)
        except (OSError, ValueError) as error:
            raise RefreshError(f"{path.name} cannot be read: {error}") from error
        self._line_end = "\r\n" if "\r\n" in text else "\n"
        self._text = text.replace("\r\n", "\n")
        if text.count("\n") != text.count(self._line_end):
            raise RefreshError(f"{path.name} cannot be changed in place: some of its lines end in CR LF, others in LF")
        self._blocks = blocks_of(self._text)
        self._evidence: dict[str, dict[str, object]] = document.get(_EVIDENCE, {})
        self.cited: list[Citation] = []
        releases: list[dict[str, object]] = document.get(_RELEASE, [])
        dates: list[dict[str, dict[str, object]]] = document.get(_DATES, [])
        self._dates = {version: day for row in dates for version, day in row.get("released", {}).items()}
        places = [number for number, block in enumerate(self._blocks) if block.table == _RELEASE]
        if len(places) != len(releases):
            raise RefreshError(
                f"{path.name} cannot be changed in place: write every release as a [[release]] of its own"
            )
        for header in odd_headers(self._blocks):
            raise RefreshError(f"{path.name} cannot be changed in place: begin a line with the header {header}")
        self._rows = [_Row(*pair) for pair in zip(places, releases, strict=True)]

    @property
    def changed(self) -> bool:
        """Whether anything was merged that the file did not say."""
        return self._merged() != self._text

    def rows(self) -> list[Mapping[str, object]]:
        """The rows as they stand."""
        return [row.values for row in self._rows]

    def differences(self, read: ReadRow) -> list[RowChange]:
        """What would change if ``read`` were merged; nothing is changed."""
        found = self._find(read.key)
        if not found:
            values = {name: value for name, value in _complete(read).items() if value is not None}
            return [RowChange(values, tuple(Change(name, None, value) for name, value in values.items()), new=True)]
        differing = [(row.values, _changes(row.values, read, several=len(found) > 1)) for row in found]
        return [RowChange(row, changes, new=False) for row, changes in differing if changes]

    def merge(self, read: ReadRow, today: str) -> list[RowChange]:
        """Bring what was read into the file, with its evidence. Returns what changed."""
        differences = self.differences(read)
        found = self._find(read.key)
        if not found:
            self._insert_row(read)
        for row in found:
            for change in _changes(row.values, read, several=len(found) > 1):
                self._set(row.block, change.field, change.after, FIELDS)
        for evidence in read.evidence:
            self._cite(evidence, today)
        return differences

    def date_changes(self, days: Mapping[str, str]) -> list[Change]:
        """What would change if ``days``, on which versions of the file were released, were merged, by version."""
        versions = {str(row.values["version"]) for row in self._rows}
        return [
            Change(version, self._dates.get(version), day)
            for version, day in days.items()
            if version in versions and self._dates.get(version) != day
        ]

    def merge_dates(self, days: Mapping[str, str], projects: Sequence[str], today: str) -> list[Change]:
        """Bring the days on which versions were released into the file, as the index has them for ``projects``."""
        changes = self.date_changes(days)
        if not changes:
            return []
        name = f"{self.path.stem}-upload-times"
        reference = f"upload times of the files on the package index: {', '.join(projects)}"
        self._cite(ReadEvidence(name, reference, None), today)
        path = (_DATES, "released")
        if not any(block.table and path_of(block.table) == path for block in self._blocks):
            at = self._evidence_end()
            self._insert(at, _DATES, new_block(f"[[{_DATES}]]", [(_EVIDENCE, [name])]))
            self._insert(at + 1, ".".join(path), new_block(f"[{'.'.join(path)}]", []))
        self._dates |= {change.field: change.after for change in changes}
        order = sorted(self._dates, key=Version, reverse=True)
        place = self._place_of(path)
        for change in changes:
            self._set(place, change.field, change.after, order)
        return changes

    def write(self, today: str) -> bool:
        """Write the file where anything changed, with the date of today. Returns whether it did."""
        if not self.changed:
            return False
        self._set(0, "updated", today, _TOP)
        write_whole(self.path, self._merged().replace("\n", self._line_end))
        self._text = self._merged()
        return True

    def _merged(self) -> str:
        return "".join(block.text for block in self._blocks)

    def _find(self, key: tuple[str, ...]) -> list[_Row]:
        return [row for row in self._rows if tuple(str(row.values.get(name)) for name in KEY) == key]

    def _set(self, block: int, name: str, value: object, order: Sequence[str]) -> None:
        self._blocks[block] = with_field(self._blocks[block], name, value, order)
        self._rows = [row if row.block != block else _Row(block, _with(row.values, name, value)) for row in self._rows]

    def _insert_row(self, read: ReadRow) -> None:
        values = {name: value for name, value in _in_order(_complete(read)).items() if value is not None}
        wanted = _rank(values)
        position = next((row.block for row in self._rows if _rank(row.values) > wanted), self._release_end())
        self._insert(position, _RELEASE, new_block(f"[[{_RELEASE}]]", list(values.items())))
        self._rows = sorted([*self._rows, _Row(position, values)], key=lambda row: row.block)

    def _release_end(self) -> int:
        """Behind the last row and the tables that belong to it; where there is none, at the end."""
        end = 1 + max((row.block for row in self._rows), default=len(self._blocks) - 1)
        while end < len(self._blocks) and path_of(self._blocks[end].table)[0] == _RELEASE:
            end += 1
        return end

    def _cite(self, evidence: ReadEvidence, today: str) -> None:
        wanted: dict[str, object] = {"kind": "wheel", "reference": evidence.reference}
        if evidence.sha256 is not None:
            wanted["sha256"] = evidence.sha256
        known = self._evidence.get(evidence.name)
        if known is not None and _cites(known, wanted):
            return
        wanted["seen"] = today
        table = f"{_EVIDENCE}.{key_text(evidence.name)}"
        if known is None:
            self._insert(self._evidence_end(), table, new_block(f"[{table}]", list(wanted.items())))
        else:
            block = self._place_of((_EVIDENCE, evidence.name))
            for name in ("kind", "reference", "sha256", "seen"):
                self._set(block, name, wanted.get(name), ("kind", "reference", "sha256", "seen"))
            self.cited.append(Citation(evidence.name, str(known.get("reference")), evidence.reference))
        self._evidence[evidence.name] = wanted

    def _place_of(self, path: tuple[str, ...]) -> int:
        """The block of one table. Raises RefreshError for one that was written in another way than with a header."""
        found = (number for number, block in enumerate(self._blocks) if block.table and path_of(block.table) == path)
        place = next(found, None)
        if place is None:
            raise RefreshError(f"{self.path.name} cannot be changed in place: there is no header [{'.'.join(path)}]")
        return place

    def _evidence_end(self) -> int:
        """Behind the last evidence; where there is none, before the first row."""
        cited = [number for number, block in enumerate(self._blocks) if block.table.startswith(f"{_EVIDENCE}.")]
        return 1 + cited[-1] if cited else min((row.block for row in self._rows), default=len(self._blocks))

    def _insert(self, position: int, table: str, text: str) -> None:
        self._blocks = inserted(self._blocks, position, table, text)
        self._rows = [row if row.block < position else _Row(row.block + 1, row.values) for row in self._rows]


def _with(values: Mapping[str, object], name: str, value: object) -> dict[str, object]:
    changed = {**values, name: value}
    return {name: value for name, value in changed.items() if value is not None}


def _cites(known: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    """Whether a citation is there, of this very wheel and of every member that was read; it may name more of them.

    It does after a run with ``--deep``, or where a person looked further.
    """
    if any(known.get(name) != wanted.get(name) for name in ("kind", "sha256")):
        return False
    file, members = _members(known.get("reference"))
    wanted_file, wanted_members = _members(wanted.get("reference"))
    return file == wanted_file and wanted_members <= members


def _members(reference: object) -> tuple[str, set[str]]:
    file, _, members = str(reference).partition(": ")
    return file, set(members.split(", "))


def _complete(read: ReadRow) -> dict[str, Value]:
    evidence: Value = [item.name for item in read.evidence]
    return {**read.defaults, **read.values, "evidence": evidence}


def _changes(row: Mapping[str, object], read: ReadRow, *, several: bool) -> tuple[Change, ...]:
    """The fields of ``row`` that what was read changes; of several rows that share a key the Pythons stay."""
    fixed = set(_texts(row.get("by_hand"))) | ({"pythons"} if several else set())
    changes = [
        Change(name, row.get(name), value)
        for name, value in read.values.items()
        if name not in KEY and name not in fixed and not _says_at_least(row.get(name), value)
    ]
    changes += [
        Change(name, None, value)
        for name, value in read.defaults.items()
        if value is not None and name not in row and name not in fixed
    ]
    cited = _texts(row.get("evidence"))
    missing = [item.name for item in read.evidence if item.name not in cited]
    if missing:
        changes.append(Change("evidence", cited, [*missing, *cited]))
    changes += _settled(row, read, changes, fixed)
    return tuple(changes)


def _settled(row: Mapping[str, object], read: ReadRow, changes: Sequence[Change], fixed: set[str]) -> Iterator[Change]:
    """What leaves ``inferred``: fields that now say what was read, and those that are taken out."""
    after = {**row, **{change.field: change.after for change in changes}}
    seen = [
        name for name in read.values if name not in fixed and (after.get(name) or None) == (read.values[name] or None)
    ]
    inferred = _texts(row.get("inferred"))
    left = [name for name in inferred if name not in seen]
    if left != inferred:
        yield Change("inferred", inferred, left or None)


def _says_at_least(here: object, read: Value) -> bool:
    """Whether the file's value says what was read, or the same and more: ``8.1`` for ``8``."""
    if here == read or (not here and not read):
        return True
    return isinstance(here, str) and isinstance(read, str) and here.startswith(f"{read}.")


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _in_order(values: Mapping[str, Value]) -> dict[str, Value]:
    return {name: values[name] for name in FIELDS if name in values}


def _rank(row: Mapping[str, object]) -> tuple[object, ...]:
    """Newest first, then in the order of the files: by source, platform, and the newest CUDA before the CPU build."""
    build = str(row["build"])
    digits = re.sub(r"\D", "", build)
    return (
        tuple(-part for part in _padded(Version(str(row["version"])))),
        _place(_SOURCES, str(row["source"])),
        _place(_PLATFORMS, str(row["platform"])),
        build == "cpu",
        -int(digits or 0),
        str(row["package"]),
    )


def _padded(version: Version) -> tuple[int, ...]:
    return (*(*version.release, 0, 0, 0, 0)[:5], version.post or 0)


def _place(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def without_evidence(difference: RowChange) -> RowChange | None:
    """A difference in what rows say, leaving out which wheel they were read from; None where nothing is left."""
    changes = tuple(change for change in difference.changes if change.field not in ("evidence", "inferred"))
    return difference._replace(changes=changes) if changes else None


def unread_rows(
    rows: Iterable[Mapping[str, object]], read: Iterable[ReadRow], source: str, failed: Collection[Version] = ()
) -> list[str]:
    """The rows of ``source`` that no wheel was found for, as lines for the report.

    Of versions that ``failed`` the wheels could not be read: nothing is known of their rows.
    """
    keys = {row.key for row in read}
    return [
        " ".join(str(row[name]) for name in KEY)
        for row in rows
        if row.get("source") == source
        and tuple(str(row.get(name)) for name in KEY) not in keys
        and not is_of(row, failed)
    ]


def is_of(row: Mapping[str, object], versions: Iterable[Version]) -> bool:
    """Whether a row is of one of ``versions``; a local label (``2.8.0+cu126``) stands for the row's build."""
    release = Version(str(row["version"]))
    return any(Version(it.public) == release and it.local in (None, row["build"]) for it in versions)
