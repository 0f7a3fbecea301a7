"""The metadata of installed distributions: what they are called, what they require, and who installed them.

Only the head of a METADATA file is read; the description below it may be megabytes long.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from envsolve.diagnose.environment.reading import names_of, text_of
from envsolve.diagnose.environment.record import Row, read_record
from envsolve.model.names import normalized

_HEAD = 256 * 1024
"""Bytes of a METADATA file that are read. The longest head on PyPI, with a thousand requirements, has 70 KB."""
_FOLDER = re.compile(r"(?P<name>[^~-][^-]*)-(?P<version>[^-]+?)(?:-py[\d.]+)?\.(?P<kind>dist|egg)-info\Z")
_OF_CONDA = ("conda", "conda-build")
"""What conda's packages say in INSTALLER."""


class Package(NamedTuple):
    """An installed distribution: normalized name, version, and where its metadata lies.

    ``requires`` are requirements as written. ``described`` says whether its metadata can be read at all.
    """

    name: str
    version: str
    folder: Path
    installer: str | None
    requires: tuple[str, ...]
    editable: bool
    described: bool

    @property
    def location(self) -> Path:
        """The directory of modules."""
        return self.folder.parent

    @property
    def is_wheel(self) -> bool:
        """Whether it was installed as a wheel is, with a RECORD."""
        return self.folder.suffix == ".dist-info"

    @property
    def is_of_conda(self) -> bool:
        """Whether conda installed it. A system's package manager leaves no INSTALLER, or its own name."""
        return self.installer in _OF_CONDA

    @property
    def label(self) -> str:
        """How a sentence names it."""
        return f"{self.name} {self.version}"


Claim = tuple[Package, Row]
"""A package, and a row of its RECORD."""


class Packages:
    """What is installed in the directories of a search path, in order."""

    def __init__(self, search_path: Iterable[Path]) -> None:
        self._search_path = tuple(dict.fromkeys(search_path))
        self._records: dict[Path, tuple[Row, ...] | None] = {}

    @cached_property
    def every(self) -> tuple[Package, ...]:
        """All of them, also those that another of the same name hides."""
        return tuple(package for directory in self._search_path for package in _packages(directory))

    @cached_property
    def by_name(self) -> Mapping[str, Package]:
        """Of each name the first, which is the one that counts."""
        found: dict[str, Package] = {}
        for package in self.every:
            found.setdefault(package.name, package)
        return found

    @cached_property
    def together(self) -> Mapping[tuple[Path, str], tuple[Package, ...]]:
        """Those of one directory and one name."""
        found: dict[tuple[Path, str], list[Package]] = defaultdict(list)
        for package in self.every:
            found[package.location, package.name].append(package)
        return {key: tuple(packages) for key, packages in found.items()}

    @cached_property
    def claims(self) -> Mapping[tuple[Path, str], tuple[Claim, ...]]:
        """The files that several packages of different names say they brought."""
        found: dict[tuple[Path, str], list[Claim]] = defaultdict(list)
        for package in self.every:
            for row in () if package.is_of_conda else self.record(package) or ():
                found[package.location, row.path].append((package, row))
        several = ((key, claims) for key, claims in found.items() if len(claims) > 1)
        return {key: tuple(claims) for key, claims in several if len({package.name for package, _ in claims}) > 1}

    def get(self, *names: str) -> Package | None:
        """The first installed one of ``names``."""
        return next((self.by_name[name] for name in names if name in self.by_name), None)

    def record(self, package: Package) -> tuple[Row, ...] | None:
        """The files of a package; None where it has no RECORD. Each is read once."""
        if package.folder not in self._records:
            self._records[package.folder] = read_record(package.folder) if package.is_wheel else None
        return self._records[package.folder]


def _packages(directory: Path) -> Iterator[Package]:
    for name in names_of(directory):
        match = _FOLDER.match(name)
        if match is not None:
            yield _package(directory / name, match["name"], match["version"])


def _package(folder: Path, name: str, version: str) -> Package:
    fields = _fields(folder)
    head = dict(reversed(fields))
    installer = text_of(folder / "INSTALLER", 100)
    return Package(
        name=normalized(head.get("name", name)),
        version=head.get("version", version),
        folder=folder,
        installer=(installer or "").strip().casefold() or None,
        requires=tuple(value for field, value in fields if field == "requires-dist"),
        editable=_is_editable(folder),
        described="name" in head and "version" in head,
    )


def _fields(folder: Path) -> list[tuple[str, str]]:
    """The fields at the top, by their names in lower case; a folded line continues the one before it."""
    files = (folder / "METADATA", folder / "PKG-INFO", folder)
    text = next((text for file in files if (text := text_of(file, _HEAD)) is not None), "")
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if not line.strip():
            break
        name, colon, value = line.partition(":")
        if line[0] in " \t" and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        elif colon:
            found.append((name.strip().casefold(), value.strip()))
    return [(name, value) for name, value in found if value]


def _is_editable(folder: Path) -> bool:
    try:
        told = json.loads(text_of(folder / "direct_url.json", _HEAD) or "null")
    except ValueError:
        return False
    directory = told.get("dir_info") if isinstance(told, dict) else None
    return isinstance(directory, dict) and directory.get("editable") is True
