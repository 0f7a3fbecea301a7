"""One server for the small worlds of all cases: each case has its own indexes on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.index.server import IndexServer


@pytest.fixture(scope="module")
def server() -> Iterator[IndexServer]:
    """A server without recorded projects."""
    with IndexServer(recorded=False) as server:
        yield server
