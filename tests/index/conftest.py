"""The loopback package indexes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.index.server import IndexServer


@pytest.fixture
def index() -> Iterator[IndexServer]:
    """An index with everything in the standards, with the recorded projects."""
    with IndexServer() as server:
        yield server


@pytest.fixture
def poor_index() -> Iterator[IndexServer]:
    """An index with only names and hashes, with stand-ins for the recorded wheels."""
    with IndexServer("poor") as server:
        yield server
