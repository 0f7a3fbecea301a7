"""Credentials of channels are passed to rattler separately from their addresses."""

from __future__ import annotations

import pytest

from envsolve.conda.logins import Logins, logins_of
from envsolve.errors import UsageError


@pytest.mark.parametrize(
    ("address", "logins"),
    [
        ("https://host/chan", Logins({}, {})),
        ("conda-forge", Logins({}, {})),
        ("https://host/t/tk-1/chan", Logins({"https://host/chan/": "https://host/t/tk-1/chan/"}, {})),
        ("https://host/conda/t/tk-1", Logins({"https://host/conda/": "https://host/conda/t/tk-1/"}, {})),
        ("https://me:p%40ss@Host:8080/chan/", Logins({}, {"host": ("me", "p@ss")})),
        ("https://tk-1@host/chan", Logins({}, {"host": ("tk-1", "")})),
        (
            "https://me:pass@host/t/tk-1/chan?token=x",
            Logins({"https://host/chan/": "https://host/t/tk-1/chan/"}, {"host": ("me", "pass")}),
        ),
    ],
)
def test_tokens_become_mirrors_and_logins_apply_to_servers(address: str, logins: Logins) -> None:
    assert logins_of([address]) == logins


def test_two_logins_for_one_server_are_refused() -> None:
    assert logins_of(["https://me:pass@host/a", "https://me:pass@host/b"]).hosts == {"host": ("me", "pass")}
    with pytest.raises(UsageError) as caught:
        logins_of(["https://me:pass@host/a", "https://you:pass@host/b"])
    assert caught.value.code == "contradictory-logins"
    assert "pass" not in caught.value.message
