"""Logins from URLs, netrc and keyrings, as servers that require one receive them."""

from __future__ import annotations

import os
import sys
from base64 import b64decode
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from envsolve.index.address import address_of
from envsolve.index.credentials import Credentials
from envsolve.index.http import HttpFetcher
from tests.index.flaky import Answer, Flaky, flaky_server

REFUSED = Answer(401, b"who are you?", {"WWW-Authenticate": "Basic"})
WELCOME = Answer(body=b"welcome")
KEYRING_MODULE = """
from pathlib import Path
from types import SimpleNamespace

def get_credential(service, username):
    with Path(__file__).with_name("asked").open("a") as file:
        print(service, username, file=file)
    {answer}
"""
KEYRING_COMMAND = """#!{python}
import sys
from pathlib import Path
with Path(__file__).with_name("asked").open("a") as file:
    print(*sys.argv[1:], file=file)
{answer}
"""


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home directory without logins, and no proxy that would see the requests."""
    for name in [*(name for name in os.environ if name.lower().endswith("_proxy")), "NETRC"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


@pytest.fixture
def server() -> Iterator[Flaky]:
    with flaky_server() as running:
        yield running


@pytest.fixture
def fetcher() -> Iterator[HttpFetcher]:
    made = HttpFetcher(backoff=0.01)
    yield made
    made.close()


@pytest.fixture
def module(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory for a module ``keyring`` of a test."""
    monkeypatch.syspath_prepend(home)
    sys.modules.pop("keyring", None)  # the real one, where other packages of this environment need it
    yield home / "keyring.py"
    sys.modules.pop("keyring", None)


def logins(server: Flaky) -> list[str | None]:
    """The received logins, as ``user:password``."""
    return [_login(request.headers) for request in server.requests]


def _login(headers: Mapping[str, str]) -> str | None:
    value = headers.get("authorization")
    return None if value is None else b64decode(value.removeprefix("Basic ")).decode()


def test_the_login_in_a_url_is_sent_and_printed_nowhere(server: Flaky, fetcher: HttpFetcher) -> None:
    server.says("/x", WELCOME)
    response = fetcher.fetch(server.url("/x", login="%C3%A4nn%40b:p%3Aw%2F"))
    assert logins(server) == ["\u00e4nn@b:p:w/"]
    assert response.url == server.url("/x")
    assert "p:w" not in repr(address_of(server.url("/x", login="ann:p%3Aw")))


def test_a_login_is_used_for_the_files_of_an_index_and_no_other_server(server: Flaky, fetcher: HttpFetcher) -> None:
    with flaky_server() as other:
        server.says("/x", WELCOME)
        fetcher.fetch(server.url("/x", login="ann:one"))
        fetcher.fetch(server.url("/x"))
        fetcher.fetch(server.url("/x", login="bob:two"))
        fetcher.fetch(server.url("/x"))
        fetcher.fetch(other.says("/x", WELCOME))
        assert logins(server) == ["ann:one", "ann:one", "bob:two", "ann:one"]
        assert logins(other) == [None]


def test_a_token_in_the_place_of_a_user_is_sent_with_an_empty_password(server: Flaky, fetcher: HttpFetcher) -> None:
    server.says("/x", REFUSED)
    assert fetcher.fetch(server.url("/x", login="token")).status == 401
    fetcher.fetch(server.url("/x"))
    assert logins(server) == ["token:", "token:"]


@pytest.mark.parametrize("name", [".netrc", "_netrc"])
def test_netrc_of_the_home_directory_is_read(server: Flaky, fetcher: HttpFetcher, home: Path, name: str) -> None:
    (home / name).write_text("machine example.org login no password no\nmachine 127.0.0.1 login ann password one\n")
    fetcher.fetch(server.says("/x", WELCOME))
    assert logins(server) == ["ann:one"]


def test_the_variable_netrc_overrides_the_home_directory(
    server: Flaky, fetcher: HttpFetcher, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".netrc").write_text("machine 127.0.0.1 login no password no")
    (home / "logins").write_text("default login ann password one")
    monkeypatch.setenv("NETRC", str(home / "logins"))
    fetcher.fetch(server.says("/x", WELCOME))
    assert logins(server) == ["ann:one"]


def test_the_url_overrides_netrc(server: Flaky, fetcher: HttpFetcher, home: Path) -> None:
    (home / ".netrc").write_text("machine 127.0.0.1 login ann password one")
    server.says("/x", WELCOME)
    fetcher.fetch(server.url("/x", login="bob:two"))
    assert logins(server) == ["bob:two"]


def test_netrc_has_the_password_of_a_user_in_a_url(server: Flaky, fetcher: HttpFetcher, home: Path) -> None:
    (home / ".netrc").write_text("machine 127.0.0.1 login ann password one")
    server.says("/x", WELCOME)
    fetcher.fetch(server.url("/x", login="ann"))
    fetcher.fetch(server.url("/x", login="bob"))
    assert logins(server) == ["ann:one", "bob:"]


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (b"machine 127.0.0.1 login ann pass hidden", "line 1 is malformed"),
        (b"machine 127.0.0.1 login \xff password hidden", "it is not UTF-8 text"),
        (None, "it is a directory"),
    ],
)
def test_a_netrc_that_cannot_be_read_is_a_note(
    server: Flaky, fetcher: HttpFetcher, home: Path, content: bytes | None, note: str
) -> None:
    path = home / ".netrc"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    assert fetcher.fetch(server.says("/x", WELCOME)).body == b"welcome"
    fetcher.fetch(server.url("/x"))
    assert fetcher.notes == [f"{path} cannot be used for logins: {note}"]


def test_a_netrc_that_is_named_and_missing_is_a_note(
    server: Flaky, fetcher: HttpFetcher, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETRC", str(home / "missing"))
    assert fetcher.fetch(server.says("/x", WELCOME)).body == b"welcome"
    assert fetcher.notes == [f"{home / 'missing'}, which NETRC names, does not exist"]


def test_the_keyring_is_only_queried_after_a_refusal(server: Flaky, fetcher: HttpFetcher, module: Path) -> None:
    module.write_text(KEYRING_MODULE.format(answer='return SimpleNamespace(username="ann", password="one")'))
    fetcher.fetch(server.says("/open", WELCOME))
    assert not module.with_name("asked").exists()
    assert fetcher.fetch(server.says("/x?y", REFUSED, WELCOME)).body == b"welcome"
    assert fetcher.fetch(server.url("/open")).body == b"welcome"
    assert logins(server) == [None, None, "ann:one", "ann:one"]
    assert module.with_name("asked").read_text() == f"{server.url('/x')} None\n"


def test_the_keyring_can_find_the_server_without_the_url(server: Flaky, fetcher: HttpFetcher, module: Path) -> None:
    answer = 'return None if "/" in service else SimpleNamespace(username=None, password="one")'
    module.write_text(KEYRING_MODULE.format(answer=answer))
    server.says("/x", REFUSED, WELCOME)
    assert fetcher.fetch(server.url("/x", login="ann")).body == b"welcome"
    assert logins(server) == ["ann:", "ann:one"]
    netloc = f"127.0.0.1:{server.server_address[1]}"
    assert module.with_name("asked").read_text() == f"{server.url('/x')} ann\n{netloc} ann\n"


def test_all_threads_query_the_keyring_once(server: Flaky, fetcher: HttpFetcher, module: Path) -> None:
    module.write_text(KEYRING_MODULE.format(answer="return None"))
    url = server.says("/x", REFUSED)
    with ThreadPoolExecutor(8) as pool:
        assert {response.status for response in pool.map(lambda _: fetcher.fetch(url), range(16))} == {401}
    assert len(module.with_name("asked").read_text().splitlines()) == 2
    assert logins(server) == [None] * 16


def test_a_keyring_login_is_shared_between_threads(server: Flaky, fetcher: HttpFetcher, module: Path) -> None:
    module.write_text(KEYRING_MODULE.format(answer='return SimpleNamespace(username="ann", password="one")'))
    server.logins = {"Basic YW5uOm9uZQ=="}
    url = server.says("/x", WELCOME)
    with ThreadPoolExecutor(8) as pool:
        assert {response.status for response in pool.map(lambda _: fetcher.fetch(url), range(16))} == {200}
    assert len(module.with_name("asked").read_text().splitlines()) == 1


def test_a_keyring_that_fails_is_a_note(server: Flaky, fetcher: HttpFetcher, module: Path) -> None:
    module.write_text(KEYRING_MODULE.format(answer='raise RuntimeError("locked")'))
    assert fetcher.fetch(server.says("/x", REFUSED)).status == 401
    assert fetcher.notes == [f"the keyring has no login for {server.url()[7:-1]}: it failed with RuntimeError"]


def test_a_password_that_was_given_and_refused_is_not_looked_up(
    server: Flaky, fetcher: HttpFetcher, module: Path
) -> None:
    module.write_text(KEYRING_MODULE.format(answer='return SimpleNamespace(username="ann", password="one")'))
    server.says("/x", REFUSED)
    assert fetcher.fetch(server.url("/x", login="ann:wrong")).status == 401
    assert (logins(server), module.with_name("asked").exists()) == (["ann:wrong"], False)


@pytest.mark.skipif(os.name == "nt", reason="the command is a script")
@pytest.mark.parametrize(
    ("user", "answer", "sent", "question"),
    [
        ("ann", "print('one')", "ann:one", "get {url} ann"),
        ("", "print('ann\\none')", "ann:one", "--mode creds get {url}"),
        ("ann", "sys.exit('locked')", None, "get {url} ann\nget {netloc} ann"),
        ("-ann", "print('one')", None, None),
    ],
)
def test_the_command_keyring_is_used_if_there_is_no_module(
    server: Flaky,
    fetcher: HttpFetcher,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    user: str,
    answer: str,
    sent: str | None,
    question: str | None,
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    command = home / "bin" / "keyring"
    command.parent.mkdir()
    command.write_text(KEYRING_COMMAND.format(python=sys.executable, answer=answer))
    command.chmod(0o755)
    server.says("/x", REFUSED, WELCOME if sent else REFUSED)
    assert fetcher.fetch(server.url("/x", login=user)).status == (200 if sent else 401)
    assert logins(server)[1:] == ([sent] if sent else [])
    log = command.with_name("asked")
    expected = None if question is None else question.format(url=server.url("/x"), netloc=server.url()[7:-1]) + "\n"
    assert (log.read_text() if log.exists() else None) == expected


def test_without_credentials_nothing_is_found() -> None:
    address = address_of("https://packages.example.org/simple/")
    credentials = Credentials()
    assert credentials.login_for(address) is None
    assert credentials.after_refusal(address, None) is None
    assert credentials.notes == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has neither FIFOs nor /dev/zero")
@pytest.mark.parametrize("kind", ["fifo", "/dev/zero"])
def test_an_endless_netrc_is_a_note(server: Flaky, fetcher: HttpFetcher, home: Path, kind: str) -> None:
    path = home / ".netrc"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(kind)
    assert fetcher.fetch(server.says("/x", WELCOME)).body == b"welcome"
    assert fetcher.notes == [f"{path} cannot be used for logins: it is a pipe or a device, not a regular file"]
