"""The connection of one command to its indexes."""

from __future__ import annotations

import pytest

from envsolve.app.packages.lock_indexes import Connection, Places, name_index
from envsolve.app.request.network import Network
from envsolve.errors import OutsideError
from envsolve.index.settings import IndexSettings
from envsolve.model.request import Request


def test_a_query_after_the_command_ended_opens_no_connection() -> None:
    """Otherwise a thread that was about to fetch would open a connection that no one closes."""
    connection = Connection(Network(no_cache=True), IndexSettings(), {}, builds=False)
    index = connection.pool.index("http://127.0.0.1:9/simple/")
    connection.close()
    with pytest.raises(OutsideError, match="fetch-cancelled"):
        index.project("alpha")
    connection.close()


@pytest.mark.parametrize(
    ("default", "failing", "is_named"),
    [
        ("https://devpi.example.org/team/stable", "https://devpi.example.org/team/stable/numpy/", True),
        ("https://user:secret@devpi.example.org/team/stable/", "https://devpi.example.org/team/stable/numpy/", True),
        ("https://DevPI.Example.org/team/stable", "https://devpi.example.org/team/stable/numpy/", True),
        ("https://devpi.example.org/team/stable", "https://devpi.example.org/team/stable-internal/numpy/", False),
        ("https://devpi.example.org/team/stable", "https://download.pytorch.org/whl/cu126/torch/", False),
        ("file:///srv/simple", "https://download.pytorch.org/whl/cu126/torch/", False),
    ],
)
def test_a_failure_is_reported_with_the_setting_of_its_own_index(default: str, failing: str, is_named: bool) -> None:
    error = OutsideError("index-unreachable", f"{failing} cannot be reached", ("Connection refused",))
    error.address = failing
    name_index(error, Request(()), Places((), default, False, {}, origin="PIP_INDEX_URL"))
    assert error.cause == ("Connection refused", *(("that index is set in PIP_INDEX_URL",) if is_named else ()))
