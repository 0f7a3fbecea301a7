"""The stored lock has no credentials, and otherwise equals the given lock exactly."""

from __future__ import annotations

import pytest

from envsolve.boundary.secrets import without_secrets


@pytest.mark.parametrize(
    ("text", "expected"),
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
def test_only_secrets_are_removed(text: str, expected: str) -> None:
    assert without_secrets(text) == expected
