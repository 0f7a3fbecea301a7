"""The loopback package indexes, for command lines that lock."""

from __future__ import annotations

from tests.index.conftest import index, poor_index

__all__ = ["index", "poor_index"]
