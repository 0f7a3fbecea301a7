"""The input of laws: every file as values and as TOML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import NamedTuple, Protocol

from envsolve.boundary.document import Document
from envsolve.matrix.load import Matrix
from envsolve.matrix.names import GpuModel, read_gpus
from envsolve.matrix.row import Mistakes
from envsolve.matrix.tables import ComponentTable, CudaTable, FrameworkTable
from envsolve.model.capability import ComputeCapability
from envsolve.model.release import CudnnRelease, Release, Toolkit
from envsolve.model.versions import CudaVersion

RawRow = Mapping[str, object]


class Facts(NamedTuple):
    """The whole matrix. ``documents`` are its files by name. ``today`` is the latest date on Earth."""

    documents: Mapping[str, Document]
    frameworks: tuple[FrameworkTable, ...]
    cuda: CudaTable
    components: ComponentTable
    cudnn: tuple[CudnnRelease, ...]
    gpus: tuple[GpuModel, ...]
    pci_ids: Mapping[str, tuple[str, ComputeCapability]]
    today: date

    @property
    def releases(self) -> Iterator[tuple[str, Release]]:
        """Yield every build with the name of its file."""
        return ((table.name, release) for table in self.frameworks for release in table.releases)

    @property
    def toolkits(self) -> dict[CudaVersion, Toolkit]:
        """The toolkits by version."""
        return {toolkit.version: toolkit for toolkit in self.cuda.toolkits}


class Law(Protocol):
    """A function whose docstring says what must hold, and that yields what does not."""

    __name__: str
    __doc__: str | None

    def __call__(self, facts: Facts, /) -> Iterator[str]:
        """Every row that breaks the law."""


def gather(matrix: Matrix, today: date) -> Facts:
    """Read every file. Raises MatrixError if one does not load."""
    names = (*matrix.framework_names, *matrix.tables, *matrix.extension_tables)
    return Facts(
        documents={name: matrix.document(name) for name in names},
        frameworks=tuple(matrix.framework(name, None) for name in matrix.framework_names),
        cuda=matrix.cuda,
        components=matrix.components,
        cudnn=matrix.cudnn,
        gpus=read_gpus(matrix.document("gpus"), Mistakes("gpus.toml")),
        pci_ids=matrix.pci_ids,
        today=today,
    )


def breach(file: str, row: str, what: str) -> str:
    """Return the text for a row that breaks a law."""
    return f"{file}.toml: {row}: {what}"


def named(release: Release) -> str:
    """Return the name of a build in the text of a breach."""
    return f"release {release.version} ({release.source}, {release.build}, {release.platform})"


def raw_rows(document: Document, table: str) -> list[RawRow]:
    """Return the rows of an array of tables as in the file."""
    rows = document.get(table, [])
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def every_row(document: Document) -> Iterator[tuple[str, RawRow]]:
    """Yield every row of every array of tables, with its place as ``release[3]``."""
    for table in document:
        for number, row in enumerate(raw_rows(document, table), 1):
            yield f"{table}[{number}]", row


def raw_evidence(document: Document) -> Mapping[str, RawRow]:
    """Return the ``[evidence.<id>]`` tables as in the file."""
    tables = document.get("evidence", {})
    found = tables.items() if isinstance(tables, dict) else ()
    return {name: row for name, row in found if isinstance(row, dict)}


def texts(row: RawRow, key: str) -> list[str]:
    """Return a list of strings in a row; empty if it is absent."""
    value = row.get(key, [])
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
