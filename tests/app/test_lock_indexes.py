"""The connection of one command to its indexes."""

from __future__ import annotations

import pytest

from envsolve.app.lock_indexes import Lines
from envsolve.app.network import Network
from envsolve.errors import OutsideError
from envsolve.index.settings import IndexSettings


def test_who_asks_when_a_command_has_ended_opens_no_connection() -> None:
    """A thread that was about to fetch would leave a connection open that nobody closes."""
    lines = Lines(Network(no_cache=True), IndexSettings(), {}, builds=False)
    index = lines.pool.index("http://127.0.0.1:9/simple/")
    lines.close()
    with pytest.raises(OutsideError, match="fetch-cancelled"):
        index.project("alpha")
    lines.close()
