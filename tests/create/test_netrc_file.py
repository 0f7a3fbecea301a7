"""Logins are passed to uv and pip in a netrc file that has the logins of the addresses and nothing else."""

from __future__ import annotations

from netrc import netrc
from pathlib import Path
from urllib.parse import quote as percent

import pytest

from envsolve.create.netrc_file import netrc_text
from envsolve.errors import UsageError

LOGINS = {
    "plain": ("me", "p@ss", ""),
    "no password": ("token", "", '""'),
    "no name": ("", "token", '""'),
    "a space": ("me", "two words", '"'),
    "a quote and a backslash": ("me", 'a"b\\c', '"'),
    "a comment": ("me", "#hash", '"'),
}


@pytest.mark.parametrize(("user", "password", "quote"), LOGINS.values(), ids=LOGINS)
def test_every_login_is_read_literally(user: str, password: str, quote: str, tmp_path: Path) -> None:
    text = netrc_text([f"https://{percent(user)}:{percent(password)}@host/simple"], {"NETRC": str(tmp_path / "none")})
    (tmp_path / "netrc").write_text(text)
    assert netrc(str(tmp_path / "netrc")).hosts == {"host": (user, "", password)}
    assert (quote in text) if quote else ('"' not in text)


def test_a_line_break_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        netrc_text(["https://me:pw%0Amachine%20other@host/simple"], {})
    assert raised.value.code == "url-invalid"
    assert "pw" not in raised.value.message


def test_entries_of_the_user_for_the_same_hosts_are_left_out(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text(
        "default login any password one\nmachine host login old password gone\n"
        "machine other login you password secret\n"
    )
    assert netrc_text(["https://me:new@host/simple"], {"NETRC": str(own)}) == (
        "machine host login me password new\nmachine other login you password secret\ndefault login any password one\n"
    )


def test_without_logins_there_is_no_file(tmp_path: Path) -> None:
    assert netrc_text(["https://host/simple", ""], {}) == ""
