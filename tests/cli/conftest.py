"""The loopback package indexes, for command lines that lock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.worlds import fill
from tests.index.conftest import index, poor_index
from tests.index.server import IndexServer

__all__ = ["index", "poor_index"]


@pytest.fixture
def world() -> Iterator[IndexServer]:
    """The made-up packages of tests/cli/worlds.py, and none else."""
    with IndexServer(recorded=False) as server:
        fill(server)
        yield server
