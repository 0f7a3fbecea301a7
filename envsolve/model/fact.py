"""True sentences and where they come from."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class EvidenceKind(StrEnum):
    """What a matrix row rests on, strongest first."""

    WHEEL = "wheel"
    RECIPE = "recipe"
    VENDOR_TABLE = "vendor-table"
    PROJECT_DOCS = "project-docs"
    ISSUE = "issue"
    FILE_NAME = "file-name"
    """What the publisher of a wheel wrote into its name. The wheel was not read."""


class Evidence(NamedTuple):
    """One document or binary that a matrix row rests on, and the day it was read (ISO date).

    ``sha256`` is the hash of the wheel that was read, where the reference is one file.
    """

    kind: EvidenceKind
    reference: str
    seen: str
    sha256: str | None = None


class Fact(NamedTuple):
    """One true sentence with its source, as it appears in locks, conflicts and findings."""

    text: str
    source: str
