"""Builds that fail with the newest build tools, read from ``data/builds/bounds.toml``: what they build with instead."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from envsolve.boundary.document import Kept, read_document


class BuildBound(NamedTuple):
    """A failing build says ``text``, and succeeds with ``constraint``. ``because`` is the reason, for people."""

    text: str
    constraint: str
    because: str

    def __str__(self) -> str:
        return f"{self.constraint} ({self.because})"


def builds_document(name: str) -> Mapping[str, Any]:
    """What a file of ``data/builds`` has."""
    package = Path(__file__).parents[1]
    shipped = package / "_builds"
    path = (shipped if shipped.is_dir() else package.parent / "data" / "builds") / name
    return read_document(path, Kept(path, wanted=True))


@cache
def build_bounds() -> tuple[BuildBound, ...]:
    """All that are known."""
    bounds = builds_document("bounds.toml")["bound"]
    return tuple(BuildBound(it["text"], it["constraint"], it["because"]) for it in bounds)


def bound_for(output: str) -> BuildBound | None:
    """What a build that failed with ``output`` succeeds with; None where nothing is known of it."""
    return next((it for it in build_bounds() if it.text in output), None)
