"""Older build tools for builds that fail with the newest ones, from ``data/builds/bounds.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from envsolve.boundary.document import TomlFile


class BuildBound(NamedTuple):
    """A build that fails with the output ``text`` succeeds with ``constraint``; ``because`` is the reason in words."""

    text: str
    constraint: str
    because: str

    def __str__(self) -> str:
        return f"{self.constraint} ({self.because})"


def builds_document(name: str) -> Mapping[str, Any]:
    """The content of a file of ``data/builds``."""
    package = Path(__file__).parents[1]
    shipped = package / "_builds"
    path = (shipped if shipped.is_dir() else package.parent / "data" / "builds") / name
    return TomlFile(path, cached=True).content()


@cache
def build_bounds() -> tuple[BuildBound, ...]:
    """All known bounds."""
    bounds = builds_document("bounds.toml")["bound"]
    return tuple(BuildBound(it["text"], it["constraint"], it["because"]) for it in bounds)


def bound_for(output: str) -> BuildBound | None:
    """The bound for a build that failed with ``output``; None if none is known."""
    return next((it for it in build_bounds() if it.text in output), None)
