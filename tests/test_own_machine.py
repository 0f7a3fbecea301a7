"""Tests cannot reach other machines."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.own_machine import on_this_machine

ANOTHER_MACHINE = "192.0.2.1"
"""An address for documentation, which no machine has (RFC 5737)."""


@pytest.mark.parametrize(
    ("reach", "name"),
    [
        (lambda: socket.getaddrinfo("www.example.com", 80), "www.example.com"),
        (lambda: socket.create_connection((ANOTHER_MACHINE, 80), timeout=5), ANOTHER_MACHINE),
    ],
    ids=["a name", "an address"],
)
def test_a_test_that_reaches_for_another_machine_fails(reach: Callable[[], object], name: str) -> None:
    """The program under test may cope with the refusal, so it counts at the end."""
    with pytest.raises(AssertionError, match=f"reached for {name}"), on_this_machine(), suppress(OSError):
        reach()


def test_loopback_and_names_that_exist_nowhere_are_free() -> None:
    with on_this_machine(), socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
        with suppress(socket.gaierror):
            socket.getaddrinfo("nowhere.invalid", 80)
