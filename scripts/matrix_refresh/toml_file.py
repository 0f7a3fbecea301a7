"""Changing a framework's file in place: what was read wins, what a person wrote stays.

A row is found by version, source, platform, build and package. Of a row that is there only the fields that were read
change, and not those that ``by_hand`` names. A value that says the same as the wheel and more (cuDNN 8.1 where the
wheel says 8) stays too. Rows that no wheel was found for are never removed: they are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import tomlkit
from packaging.version import Version
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Array, Item, Table

from scripts.matrix_refresh.errors import RefreshError
from scripts.matrix_refresh.reader import KEY, ReadEvidence, ReadRow, Value

FIELDS = (
    *("version", "source", "platform", "build", "build_string", "package", "pythons", "glibc"),
    *("cuda", "cuda_requires", "cuda_libraries", "cudnn", "cudnn_requires", "cudnn_package", "extras"),
    *("sass", "ptx", "companions", "constraints", "evidence", "inferred", "by_hand", "note"),
)
"""The order of the fields in a row."""
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


class MatrixFile:
    """One framework's TOML file, open for changes. Raises RefreshError where it cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._text = path.read_text(encoding="utf-8")
            self._document = tomlkit.parse(self._text)
        except (OSError, TOMLKitError) as error:
            raise RefreshError(f"{path.name} cannot be read: {error}") from error
        releases = self._document.get("release")
        self._rows: AoT = releases if isinstance(releases, AoT) else tomlkit.aot()
        if releases is None:
            self._document["release"] = self._rows

    def rows(self) -> list[Mapping[str, object]]:
        """The rows as they stand."""
        return [row.unwrap() for row in self._rows.body]

    def differences(self, read: ReadRow) -> list[RowChange]:
        """What would change if ``read`` were merged; nothing is changed."""
        found = self._find(read.key)
        if not found:
            values = {name: value for name, value in _complete(read).items() if value is not None}
            return [RowChange(values, tuple(Change(name, None, value) for name, value in values.items()), new=True)]
        differing = [(row, _changes(row.unwrap(), read, several=len(found) > 1)) for row in found]
        return [RowChange(row.unwrap(), changes, new=False) for row, changes in differing if changes]

    def merge(self, read: ReadRow, today: str) -> list[RowChange]:
        """Bring what was read into the file, with its evidence. Returns what changed."""
        differences = self.differences(read)
        if any(difference.new for difference in differences):
            self._insert(read)
        for row in self._find(read.key):
            for change in _changes(row.unwrap(), read, several=len(self._find(read.key)) > 1):
                _set(row, change.field, change.after)
        for evidence in read.evidence:
            self._cite(evidence, today)
        return differences

    def write(self, today: str) -> bool:
        """Write the file where anything changed, with the date of today. Returns whether it did."""
        if tomlkit.dumps(self._document) == self._text:
            return False
        self._document["updated"] = today
        temporary = self.path.with_suffix(".part")
        temporary.write_text(re.sub(r"\n{3,}", "\n\n", tomlkit.dumps(self._document)), encoding="utf-8")
        temporary.replace(self.path)
        return True

    def _find(self, key: tuple[str, ...]) -> list[Table]:
        return [row for row in self._rows.body if tuple(str(row.get(name)) for name in KEY) == key]

    def _insert(self, read: ReadRow) -> None:
        table = tomlkit.table()
        for name, value in _in_order(_complete(read)).items():
            if value is not None:
                table[name] = _item(value)
        table.add(tomlkit.nl())
        wanted = _rank(table)
        position = next((index for index, row in enumerate(self._rows.body) if _rank(row) > wanted), len(self._rows))
        self._rows.insert(position, table)

    def _cite(self, evidence: ReadEvidence, today: str) -> None:
        known = self._document.setdefault("evidence", tomlkit.table(is_super_table=True))
        entry = known.get(evidence.name)
        wanted = {"kind": "wheel", "reference": evidence.reference}
        if evidence.sha256 is not None:
            wanted["sha256"] = evidence.sha256
        if entry is not None and {name: value for name, value in entry.items() if name != "seen"} == wanted:
            return
        table = tomlkit.table()
        for name, value in {**wanted, "seen": today}.items():
            table[name] = value
        table.add(tomlkit.nl())
        known[evidence.name] = table


def _complete(read: ReadRow) -> dict[str, Value]:
    evidence: Value = [item.name for item in read.evidence]
    return {**read.defaults, **read.values, "evidence": evidence}


def _changes(row: Mapping[str, object], read: ReadRow, *, several: bool) -> tuple[Change, ...]:
    """The fields of ``row`` that what was read changes; of several rows that share a key the Pythons stay."""
    kept = set(_texts(row.get("by_hand"))) | ({"pythons"} if several else set())
    changes = [
        Change(name, row.get(name), value)
        for name, value in read.values.items()
        if name not in KEY and name not in kept and not _says_at_least(row.get(name), value)
    ]
    changes += [
        Change(name, None, value)
        for name, value in read.defaults.items()
        if value is not None and name not in row and name not in kept
    ]
    cited = _texts(row.get("evidence"))
    missing = [item.name for item in read.evidence if item.name not in cited]
    if missing:
        changes.append(Change("evidence", cited, [*missing, *cited]))
    inferred = _texts(row.get("inferred"))
    settled = [name for name in inferred if read.values.get(name) is not None]
    if settled:
        left = [name for name in inferred if name not in settled]
        changes.append(Change("inferred", inferred, left or None))
    return tuple(changes)


def _says_at_least(here: object, read: Value) -> bool:
    """Whether the file's value says what was read, or the same and more: ``8.1`` for ``8``."""
    if here == read or (not here and not read):
        return True
    return isinstance(here, str) and isinstance(read, str) and here.startswith(f"{read}.")


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _set(row: Table, name: str, value: object) -> None:
    """Set a field where it belongs: after the fields that the schema has before it."""
    if value is None:
        row.remove(name)
        return
    item = _item(value)
    if name in row:
        row[name] = item
        return
    later = [field for field in FIELDS[FIELDS.index(name) + 1 :] if field in row]
    held = [(field, row[field]) for field in later]
    for field, _ in held:
        row.remove(field)
    row.append(name, item)
    for field, kept in held:
        row.append(field, kept)


def _item(value: object) -> Item:
    item = tomlkit.item(value)
    return item.multiline(multiline=False) if isinstance(item, Array) else item


def _in_order(values: Mapping[str, Value]) -> dict[str, Value]:
    return {name: values[name] for name in FIELDS if name in values}


def _rank(row: Mapping[str, object]) -> tuple[object, ...]:
    """Newest first, then as the files are kept: by source, platform, and the newest CUDA before the CPU build."""
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


def unread_rows(rows: Iterable[Mapping[str, object]], read: Iterable[ReadRow], source: str) -> list[str]:
    """The rows of ``source`` that no wheel was found for, as lines for the report."""
    keys = {row.key for row in read}
    return [
        " ".join(str(row[name]) for name in KEY)
        for row in rows
        if row.get("source") == source and tuple(str(row.get(name)) for name in KEY) not in keys
    ]
