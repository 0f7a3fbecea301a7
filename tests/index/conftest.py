"""The loopback package indexes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.index.server import IndexServer


@pytest.fixture
def index() -> Iterator[IndexServer]:
    """An index that tells all that the standards know, with the recorded projects."""
    with IndexServer() as server:
        yield server


@pytest.fixture
def poor_index() -> Iterator[IndexServer]:
    """An index that tells names and hashes alone, with stand-ins for the recorded wheels."""
    with IndexServer("poor") as server:
        yield server
