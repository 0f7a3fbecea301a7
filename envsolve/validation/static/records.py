"""What installed distributions say they own: the RECORD of each wheel, the metadata of each conda package."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from envsolve.boundary.files import FileError, json_value, read_bytes, read_text
from envsolve.model.names import normalized

_LONGEST = 32 * 1024 * 1024
"""Bytes of one record, as in envsolve.diagnose.environment.conda_meta."""


class Records:
    """The RECORD files of an environment, each read once."""

    def __init__(self) -> None:
        self._directories: dict[Path, Mapping[str, Path]] = {}
        self._files: dict[Path, frozenset[str]] = {}

    def files(self, location: Path, name: str) -> frozenset[str]:
        """The files of the distribution ``name`` in ``location``, relative to that; none without a RECORD."""
        if location not in self._directories:
            found = location.glob("*.dist-info")
            self._directories[location] = {normalized(path.name.partition("-")[0]): path for path in found}
        directory = self._directories[location].get(name)
        if directory is None:
            return frozenset()
        if directory not in self._files:
            self._files[directory] = _record(directory)
        return self._files[directory]


def conda_build(prefix: Path, *names: str) -> str | None:
    """The build string of the first of the conda packages ``names`` that is in ``prefix``."""
    for name in names:
        for path in sorted((prefix / "conda-meta").glob(f"{name}-*.json")):
            try:
                record = json_value(read_bytes(path, _LONGEST) or b"")
            except FileError:
                continue
            if isinstance(record, dict) and record.get("name") == name:
                return str(record.get("build", ""))
    return None


def _record(directory: Path) -> frozenset[str]:
    try:
        text = read_text(directory / "RECORD", _LONGEST) or ""
        return frozenset(row[0] for row in csv.reader(text.splitlines()) if row)
    except (FileError, csv.Error):
        return frozenset()
