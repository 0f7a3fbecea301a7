"""Facts and their sources."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class EvidenceKind(StrEnum):
    """What a matrix row is based on, most reliable first."""

    WHEEL = "wheel"
    RECIPE = "recipe"
    VENDOR_TABLE = "vendor-table"
    PROJECT_DOCS = "project-docs"
    ISSUE = "issue"
    FILE_NAME = "file-name"
    """The name of a wheel, which was not read."""


class Evidence(NamedTuple):
    """A document or binary that a matrix row is based on, and the day it was read (ISO date).

    ``sha256`` is the hash of the wheel that was read, if the reference is one file.
    """

    kind: EvidenceKind
    reference: str
    seen: str
    sha256: str | None = None


class Fact(NamedTuple):
    """A true sentence with its source, as shown in locks, conflicts and findings."""

    text: str
    source: str
