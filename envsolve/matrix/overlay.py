"""Rows in addition to the shipped matrix: read on this machine by ``envsolve matrix update``, or for one answer.

They are files of the same kind, and are read by the same parser. A row of the matrix for the same build takes
precedence. A file that is damaged or from another version of envsolve is ignored with one note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from envsolve.boundary.document import Document, TomlFile
from envsolve.errors import MatrixError
from envsolve.matrix.load import Matrix
from envsolve.matrix.row import Mistakes
from envsolve.matrix.tables import (
    EXTENSIONS,
    FrameworkTable,
    read_extension,
    read_framework,
    require_schema,
    without_mistakes,
)
from envsolve.model.build_facts import BuildFacts
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.release import Release

T = TypeVar("T")
_ONE_RELEASE = re.compile(r"==[^,*]+")
Read = Callable[[], Document]


def opened(directory: Path) -> dict[str, Read]:
    """Return the files of a directory by name, as ``pytorch`` and ``extensions/warp-lang``, to be read on demand."""
    paths = {path.stem: path for path in directory.glob("*.toml")}
    paths |= {f"{EXTENSIONS}/{path.stem}": path for path in (directory / EXTENSIONS).glob("*.toml")}
    return {name: partial(_document, path) for name, path in paths.items()}


def _document(path: Path) -> Document:
    return TomlFile(path, cached=False).content()


class Overlay:
    """Rows by the names of their files. ``notes`` say which of them were ignored."""

    def __init__(self, files: Mapping[str, Read]) -> None:
        self._files = files
        self._documents: dict[str, Document | None] = {}
        self._releases: dict[str, tuple[Release, ...]] = {}
        self._builds: dict[str, tuple[BuildFacts, ...]] = {}
        self.notes: list[Note] = []

    @staticmethod
    def of(documents: Mapping[str, Document]) -> Overlay:
        """Return the rows of parsed files."""
        return Overlay({name: partial(_itself, document) for name, document in documents.items()})

    @property
    def documents(self) -> dict[str, Document]:
        """The usable files, by name."""
        for name in self._files:
            if name.startswith(f"{EXTENSIONS}/"):
                self._builds_of(name)
            else:
                self._releases_of(name)
        return {name: found for name in self._files if (found := self._documents.get(name)) is not None}

    @property
    def packages(self) -> list[str]:
        """The packages with kernels that have a file."""
        return [name.partition("/")[2] for name in self._files if name.startswith(f"{EXTENSIONS}/")]

    def beside(self, table: FrameworkTable, platform: Platform | None, matrix: Matrix) -> FrameworkTable:
        """Return ``table``, for ``platform`` or all, with additional builds from here, newest version first.

        A build for a toolkit that ``matrix`` does not have is ignored: a newer envsolve read it.
        """
        known = {_build(it) for it in table.releases}
        more = [
            it._replace(read_here=True)
            for it in self._releases_of(table.name)
            if platform in (None, it.platform) and _build(it) not in known
        ]
        if not more:
            return table
        toolkits = {it.version for it in matrix.cuda.toolkits}
        for it in more:
            if it.cuda is not None and it.cuda not in toolkits:
                self._ignore(table.name, f"{it.label} is for CUDA {it.cuda}, which this envsolve does not know")
        more = [it for it in more if it.cuda is None or it.cuda in toolkits]
        releases = sorted((*more, *table.releases), key=lambda it: it.version, reverse=True)
        return table._replace(releases=tuple(releases))

    def beside_builds(self, package: str, facts: tuple[BuildFacts, ...]) -> tuple[BuildFacts, ...]:
        """Return ``facts`` about ``package`` with those from here about other releases."""
        found = self._builds_of(f"{EXTENSIONS}/{package}")
        return (*facts, *(it for it in found if not any(other.covers(_version(it)) for other in facts)))

    def _releases_of(self, name: str) -> tuple[Release, ...]:
        if name not in self._releases:
            table = self._used(name, partial(_framework, name))
            self._releases[name] = () if table is None else table.releases
        return self._releases[name]

    def _builds_of(self, name: str) -> tuple[BuildFacts, ...]:
        if name not in self._builds:
            found = self._used(name, partial(_extension, name)) or ()
            self._builds[name] = tuple(it._replace(read_here=True) for it in found)
        return self._builds[name]

    def _used(self, name: str, parse: Callable[[Document], T]) -> T | None:
        """The parsed file, or None if it does not exist or is unusable."""
        if name not in self._files:
            return None
        try:
            document = self._files[name]()
            require_schema(name, document)
            found = parse(document)
        except MatrixError as error:
            self._ignore(name, error.cause[0] if error.cause else error.message)
            self._documents[name] = None
            return None
        self._documents[name] = document
        return found

    def _ignore(self, name: str, why: str) -> None:
        text = f"rows of {name} that `envsolve matrix update` read are ignored: {why}"
        note = Note("overlay-ignored", text, "envsolve matrix update").about(file=f"{name}.toml", because=why)
        if note not in self.notes:
            self.notes.append(note)


def _itself(document: Document) -> Document:
    return document


def _framework(name: str, document: Document) -> FrameworkTable:
    return without_mistakes(f"{name}.toml", partial(read_framework, name, document))


def _extension(name: str, document: Document) -> tuple[BuildFacts, ...]:
    return without_mistakes(f"{name}.toml", partial(_each_on_one_release, name, document))


def _each_on_one_release(name: str, document: Document, mistakes: Mistakes) -> tuple[BuildFacts, ...]:
    rows = read_extension(name, document, mistakes)
    for number, row in enumerate(rows, 1):
        if not _ONE_RELEASE.fullmatch(str(row.versions)):
            mistakes.add(f"build[{number}].versions", "must name one release, as ==1.2.3")
    return rows


def _build(release: Release) -> tuple[object, ...]:
    return release.version, release.source, release.platform, release.build, release.package


def _version(facts: BuildFacts) -> str:
    """The only release that a row from here is about."""
    return str(facts.versions).removeprefix("==")
