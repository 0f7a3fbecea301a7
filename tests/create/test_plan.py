"""The lock that is kept holds no login, and is else the lock that was given, to the letter."""

from __future__ import annotations

import pytest

from envsolve.boundary.secrets import without_secrets


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("--index-url https://me:pw@host/simple\n", "--index-url https://host/simple\n"),
        ("url: https://host/t/tk-1/chan/linux-64/a.conda\n", "url: https://host/chan/linux-64/a.conda\n"),
        ("url: https://me:pw@host:8080/t/tk-1/chan\n", "url: https://host:8080/chan\n"),
        (
            "a @ https://mirror/packages/source/t/tqdm/tqdm.whl\n",
            "a @ https://mirror/packages/source/t/tqdm/tqdm.whl\n",
        ),
        ("a @ git+ssh://git@host/a\r\n", "a @ git+ssh://git@host/a\r\n"),
        (
            f"a @ https://host/a.whl {'--hash=sha256:0 ' * 500}end\n",
            f"a @ https://host/a.whl {'--hash=sha256:0 ' * 500}end\n",
        ),
    ],
    ids=["a login", "a token", "both", "a directory of this name", "an account", "a long line"],
)
def test_what_opens_something_goes_and_nothing_else(text: str, kept: str) -> None:
    assert without_secrets(text) == kept
