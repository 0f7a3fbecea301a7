"""A test that reaches for another machine fails: what it sees there is not what the repository says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

LOOPBACK = ("", "localhost", "::1")
_refused: list[list[str]] = []
"""What each running :func:`on_this_machine` has refused; the hook refuses nothing outside of one."""


@contextmanager
def on_this_machine() -> Iterator[None]:
    """Refuse lookups of names and connections beyond loopback, in every thread of this process.

    Names that end in ``.invalid`` exist nowhere (RFC 2606). Raises AssertionError at the end if something was refused:
    envsolve itself may have coped with it.
    """
    refused: list[str] = []
    _refused.append(refused)
    try:
        yield
    finally:
        _refused.remove(refused)
    assert refused == [], f"reached for {', '.join(sorted(set(refused)))}: serve it on loopback"


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if not _refused or event not in ("socket.getaddrinfo", "socket.connect"):
        return
    address = arguments[0] if event == "socket.getaddrinfo" else arguments[1]
    host = address[0] if isinstance(address, tuple) else address if event == "socket.getaddrinfo" else None
    name = host.decode() if isinstance(host, bytes) else str(host or "")
    if name not in LOOPBACK and not name.startswith("127.") and not name.endswith(".invalid"):
        _refused[-1].append(name)
        raise OSError(f"a test may not reach {name}")


sys.addaudithook(_hook)  # hooks cannot be removed (PEP 578), so this one is added once
