"""Addresses of conda channels, and what must not be read off them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.model.conda import without_token


@pytest.mark.parametrize(
    ("url", "without"),
    [
        ("https://user:secret@127.0.0.1/channel", "https://127.0.0.1/channel"),
        ("https://user@127.0.0.1:8080/channel", "https://127.0.0.1:8080/channel"),
        ("https://us%40er:sec%2Fret@127.0.0.1/channel", "https://127.0.0.1/channel"),
        ("https://user:sec@ret@127.0.0.1/channel", "https://127.0.0.1/channel"),
        ("https://user:sec/ret@127.0.0.1/channel", "https://127.0.0.1/channel"),
        ("https://${USER}:${SECRET}@127.0.0.1/channel", "https://127.0.0.1/channel"),
        ("https://user:secret@[::1]:80/channel", "https://[::1]:80/channel"),
        ("//user:secret@127.0.0.1/channel", "//127.0.0.1/channel"),
        ("user:secret@127.0.0.1/channel", "127.0.0.1/channel"),
        ("https://127.0.0.1/t/tk-123-secret/channel", "https://127.0.0.1/channel"),
        ("https://127.0.0.1/conda/t/tk-123-secret", "https://127.0.0.1/conda"),
        (
            "https://127.0.0.1/t/pfx_secret/channel/linux-64/a-1-0.conda",
            "https://127.0.0.1/channel/linux-64/a-1-0.conda",
        ),
        ("https://127.0.0.1/t/<TOKEN>/channel", "https://127.0.0.1/channel"),
        ("https://127.0.0.1/t/*****/channel", "https://127.0.0.1/channel"),
        ("https://127.0.0.1/t/${SECRET}/channel", "https://127.0.0.1/channel"),
        ("https://127.0.0.1/t//t/secret/channel", "https://127.0.0.1/t//channel"),
        ("https://user:secret@127.0.0.1/t/secret/channel?of=1#abc", "https://127.0.0.1/channel?of=1#abc"),
        ("127.0.0.1/t/secret/channel", "127.0.0.1/channel"),
        ("t/secret/channel", "/channel"),
        ("https://127.0.0.1/t/secret?of=1", "https://127.0.0.1?of=1"),
    ],
)
def test_what_opens_a_channel_leaves_its_address(url: str, without: str) -> None:
    assert without_token(url) == without


@pytest.mark.parametrize(
    "url",
    [
        "",
        "conda-forge",
        "conda-forge/label/nightly",
        "https://conda.anaconda.org/conda-forge/linux-64/at-1.0-h1@2_0.conda",
        "https://127.0.0.1:8080/a@b/channel",
        "https://[::1]:8080/a@b/channel",
        "https://[::1]/a@b/channel",
        "https://127.0.0.1/start/tools/channel",
        "https://127.0.0.1/t/",
        "file:///opt/t/channel",
        "file:/opt/t/channel",
        "/opt/t/channel",
        "./t/channel",
        "../t/me@home/channel",
        "~/t/channel",
        r"C:\t\me@home\channel",
        "C:/t/channel",
    ],
)
def test_an_address_that_holds_no_secret_stays(url: str) -> None:
    assert without_token(url) == url


@given(
    st.sampled_from(["https://", "http://", "//", ""]),
    st.text(st.characters(codec="ascii", exclude_characters="/?#\\")).map(lambda user: f"{user}:secret@"),
    st.sampled_from(["/t/secret", "/conda/t/secret/", "/t/secret/channel", ""]),
)
def test_no_secret_survives_and_a_second_pass_changes_nothing(scheme: str, login: str, path: str) -> None:
    once = without_token(f"{scheme}{login}127.0.0.1{path}")
    assert "secret" not in once
    assert without_token(once) == once
