"""Malicious indexes and packages: they read no file, write no line of a lock, and get no password."""

from __future__ import annotations

import io
import json
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.cli.locking import Locking, assert_in_three_parts, locking_in, pins_of
from tests.conftest import Envsolve
from tests.index.packages import IndexFile, core_metadata, wheel
from tests.index.server import IndexServer

pytestmark = pytest.mark.thorough  # many hostile indexes

SECRET = "s3cr:t/word"  # noqa: S105 - not a real one
LOGIN = "ann:s3cr%3At%2Fword"
SPELLINGS = ("s3cr", "t/word", "%2Fword", "YW5u")
"""Parts of the password as it is, in an address and in a header."""


def listed(locking: Locking, *entries: dict[str, Any], **more: object) -> None:
    """Let the page of gamma list these files."""
    page = {"meta": {"api-version": "1.1"}, "name": "gamma", "files": entries, **more}
    locking.index.fault("/simple/gamma/", body=json.dumps(page).encode())


def entry(name: str = "gamma-1.0-py3-none-any.whl", **more: object) -> dict[str, Any]:
    return {"filename": name, "url": f"../../files/gamma/{name}", "hashes": {"sha256": "0" * 64}, **more}


def real(locking: Locking, **more: object) -> dict[str, Any]:
    """An entry for a wheel that really exists."""
    made = wheel("gamma", "1.0")
    locking.index.add("gamma", [made])
    known = {"hashes": {"sha256": made.sha256}, "core-metadata": {"sha256": made.metadata_sha256}}
    return {**entry(), **known, **more}


PLACES = {
    "a file of this machine": "file:///etc/passwd",
    "a file of this machine in capitals": "FILE:///etc/passwd",
    "a file of another machine": "file://server/share/gamma-1.0-py3-none-any.whl",
    "a script": "javascript:alert(1)",
    "data": "data:application/zip;base64,UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA==",
    "another protocol": "ftp://files.example.org/gamma-1.0-py3-none-any.whl",
    "half a host": "http://[::1/gamma-1.0-py3-none-any.whl",
    "a port that is none": "http://files.example.org:port/gamma-1.0-py3-none-any.whl",
    "a null": "http://files.example.org/\0",
}


@pytest.mark.parametrize("place", PLACES)
def test_an_index_cannot_redirect_to(locking: Locking, place: str) -> None:
    listed(locking, entry(url=PLACES[place]))
    done = locking(requirement="gamma")
    assert (done.code, done.out) == (3, ""), done.err
    assert_in_three_parts(done.err)
    assert done.err.startswith("error: index-page-invalid\n")
    assert "root:" not in done.err
    assert [path for path in locking.cache.rglob("*.kept") if b"root:" in path.read_bytes()] == []


@pytest.mark.parametrize("base", ["file:///etc/", "javascript:alert(1)", "http://[::1"])
def test_a_page_of_html_cannot_start_its_links_from(locking: Locking, base: str) -> None:
    body = f'<html><base href="{base}"><a href="gamma-1.0-py3-none-any.whl">gamma</a></html>'
    locking.index.fault("/simple/gamma/", body=body.encode(), content_type="text/html")
    done = locking(requirement="gamma")
    assert (done.code, done.out) == (3, ""), done.err
    assert_in_three_parts(done.err)


def test_a_folder_that_is_an_index_may_lead_to_its_own_files(locking: Locking, tmp_path: Path) -> None:
    made = wheel("gamma", "1.0")
    project = tmp_path / "simple" / "gamma"
    project.mkdir(parents=True)
    assert made.content is not None
    (project / made.name).write_bytes(made.content)
    (project / "index.html").write_text(f'<html><a href="{made.name}#sha256={made.sha256}">{made.name}</a></html>')
    done = locking("--index-url", project.parent.as_uri(), requirement="gamma")
    assert pins_of(done.out) == {"gamma": "1.0"}, done.err


LEFT_OUT = {
    "above its folder": "../gamma-1.0-py3-none-any.whl",
    "in the root": "/gamma-1.0-py3-none-any.whl",
    "behind backslashes": "..\\gamma-1.0-py3-none-any.whl",
    "with a null": "gamma-1.0-py3-none-any\0.whl",
    "of another project": "delta-1.0-py3-none-any.whl",
    "of a project that begins alike": "gamma_more-1.0-py3-none-any.whl",
    "of no version": "gamma-one-py3-none-any.whl",
    "of a version in two lines": "gamma-1.0\n--index_url http:evil-py3-none-any.whl",
    "of a version of 5000 digits": f"gamma-{'9' * 5000}-py3-none-any.whl",
    "without tags": "gamma-1.0.whl",
    "with tags in two lines": "gamma-1.0-py3-none-any\n.whl",
    "with a build tag in two lines": "gamma-1.0-1\n2-py3-none-any.whl",
    "that is an egg": "gamma-1.0-py3.12.egg",
    "that is empty": "",
    "of spaces": "   ",
}


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_a_file_is_left_out_whose_name_is(locking: Locking, kind: str) -> None:
    good = real(locking)
    listed(locking, entry(LEFT_OUT[kind]), good)
    done = locking(requirement="gamma")
    assert pins_of(done.out) == {"gamma": "1.0"}, done.err
    locking.index.heal()
    listed(locking, entry(LEFT_OUT[kind]))
    alone = locking("--refresh", requirement="gamma")
    assert (alone.code, alone.out) == (1, ""), alone.err
    assert_in_three_parts(alone.err)


HOSTILE_TEXT = "a reason\n--index-url http://evil.example.org\x1b[31m\0"


@pytest.mark.parametrize("form", ["requirements", "pylock"])
@pytest.mark.parametrize(
    "more",
    [
        {"yanked": HOSTILE_TEXT},
        {"requires-python": HOSTILE_TEXT},
        {"requires-python": ">=3\n"},
        {"upload-time": HOSTILE_TEXT},
        {"hashes": {"sha256": f"{'0' * 64}\n--index-url http://evil.example.org"}},
        {"hashes": {"sha256 \n": "0" * 64}},
        {"hashes": {}},
        {"hashes": {"md5": "0" * 32}},
        {"size": -1},
        {"size": 10**30},
        {"provenance": HOSTILE_TEXT},
    ],
    ids=repr,
)
def test_text_on_a_page_cannot_start_a_line_of_a_lock(locking: Locking, more: dict[str, Any], form: str) -> None:
    listed(locking, real(locking, **more))
    line = locking.line("--format", form, requirement="gamma==1.0")
    done = locking.envsolve(*line)
    assert "evil" not in done.out
    assert not set(done.out + done.err) & {"\x1b", "\0", "\r"}
    if done.code:
        assert (done.code, done.out) == (3, ""), done.err
        assert_in_three_parts(done.err)
    elif form == "pylock":
        readable(done.out)


def readable(text: str) -> None:
    """Whether the standard's own reader accepts a lock."""
    import tomli
    from packaging import pylock

    pylock.Pylock.from_dict(tomli.loads(text)).validate()


REQUIRES = {
    "an option on a second line": "beta\n --index-url http://evil.example.org",
    "an option": "--index-url http://evil.example.org",
    "a carriage return": "beta\rRequires-Dist: evil",
    "a path": "../../evil",
    "nothing": "",
    "a version that is none": "beta>=one",
    "a version of 5000 digits": f"beta<{'9' * 5000}",
    "a marker that is none": "beta; python_version",
    "a marker of a thousand brackets": f"beta; {'(' * 5000}python_version>'3'{')' * 5000}",
    "an address in the place of versions": "beta @ file:///etc/passwd",
    "a command": "beta; os.system('evil')",
    "letters that look alike": "b\u0435ta",
}


@pytest.mark.parametrize("kind", REQUIRES)
def test_a_version_that_requires_nonsense_is_not_taken(locking: Locking, kind: str) -> None:
    metadata = core_metadata("gamma", "2.0", requires=[REQUIRES[kind]])
    locking.index.add("gamma", [wheel("gamma", "1.0", ["beta"]), wheel("gamma", "2.0", metadata=metadata)])
    done = locking(requirement="gamma")
    assert pins_of(done.out) == {"gamma": "1.0", "beta": "2.0"}, done.err
    assert "evil" not in done.out


@pytest.mark.parametrize("stated", ["2.\xb2", "9" * 5000])
def test_an_unreadable_number_is_ignored(locking: Locking, stated: str) -> None:
    metadata = core_metadata("gamma", "1.0").replace(b"2.2", stated.encode(), 1)
    locking.index.add("gamma", [wheel("gamma", "1.0", metadata=metadata)])
    assert pins_of(locking(requirement="gamma").out) == {"gamma": "1.0"}


METADATA = {
    "of another project": core_metadata("beta", "1.0"),
    "of another version": core_metadata("gamma", "1.1"),
    "of no project": b"Metadata-Version: 2.1\nVersion: 1.0\n",
    "of no version": b"Metadata-Version: 2.1\nName: gamma\n",
    "of nothing": b"",
    "of a name that a terminal obeys": core_metadata("\x1b[2Jgamma", "1.0"),
    "in another encoding": core_metadata("gamma", "1.0").decode().encode("utf-16"),
}


@pytest.mark.parametrize("beside", [True, False], ids=["beside the wheel", "in the wheel"])
@pytest.mark.parametrize("kind", METADATA)
def test_metadata_are_not_taken_that_are(locking: Locking, kind: str, beside: bool) -> None:
    made = wheel("gamma", "1.0", metadata=METADATA[kind])
    locking.index.add("gamma", [made if beside else made._replace(metadata=None, metadata_sha256=None)])
    done = locking(requirement="gamma")
    assert (done.code, done.out) == (3, ""), done.err
    assert done.err.startswith("error: metadata-invalid\n")
    assert "\x1b" not in done.err
    assert_in_three_parts(done.err)


def archive(*members: tuple[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as made:
        for name, content in members:
            made.writestr(name, content)
    return buffer.getvalue()


GOOD = core_metadata("gamma", "1.0")
PLACE = "gamma-1.0.dist-info/METADATA"


def encrypted(content: bytes) -> bytes:
    """The same with the mark of encryption on every member."""
    at = content.index(b"PK\x01\x02")
    return content[:6] + b"\x01" + content[7 : at + 8] + b"\x01" + content[at + 9 :]


ARCHIVES = {
    "two descriptions": archive((PLACE, GOOD), ("evil-1.0.dist-info/METADATA", core_metadata("evil", "1.0"))),
    "the same description twice": archive((PLACE, GOOD), (PLACE.replace("gamma", "Gamma"), GOOD)),
    "no description": archive(("gamma.py", b"")),
    "a description deeper down": archive((f"vendored/{PLACE}", GOOD)),
    "a description of 50 MB": archive((PLACE, GOOD + b" " * 50_000_000)),
    "an encrypted description": encrypted(archive((PLACE, GOOD))),
    "a description packed in another way": archive((PLACE, GOOD * 99), kind=zipfile.ZIP_LZMA),
    "nothing": archive(),
    "a table of contents that is too large": archive((PLACE, GOOD))[:-10] + b"\xf0\xff\xff\xff" + b"\0" * 6,
}


@pytest.mark.parametrize("ranges", [True, False], ids=["in parts", "whole"])
@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_wheel_is_not_taken_that_holds(
    envsolve: Envsolve, tmp_path: Path, kind: str, ranges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hashlib

    content = ARCHIVES[kind]
    with locking_in(envsolve, tmp_path, monkeypatch, ranges=ranges) as locking:
        made = IndexFile("gamma-1.0-py3-none-any.whl", content, sha256=hashlib.sha256(content).hexdigest())
        locking.index.add("gamma", [made])
        done = locking(requirement="gamma")
        assert (done.code, done.out) == (3, ""), done.err
        assert done.err.startswith("error: metadata-invalid\n")
        assert_in_three_parts(done.err)


def test_a_file_with_another_hash_than_its_own_is_reported(
    envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locking_in(envsolve, tmp_path, monkeypatch, ranges=False) as locking:
        made = wheel("gamma", "1.0")
        locking.index.add("gamma", [made._replace(metadata=None, metadata_sha256=None, sha256="0" * 64)])
        done = locking(requirement="gamma")
        assert (done.code, done.out) == (3, ""), done.err
        assert done.err.startswith("error: hash-mismatch\n")


def test_a_page_of_ten_thousand_versions_is_a_page(locking: Locking) -> None:
    files = [entry(f"gamma-{number}.0-py3-none-any.whl") for number in range(2, 10_000)]
    stated = [f"{number}.0" for number in range(1, 10_000)]
    for more in ({"versions": stated}, {}):
        locking.index.heal()
        listed(locking, real(locking), *files, **more)
        begun = time.monotonic()
        done = locking("--refresh", requirement="gamma<2")
        assert pins_of(done.out) == {"gamma": "1.0"}, done.err
        assert time.monotonic() - begun < 5


def test_a_version_with_a_hundred_thousand_requirements_is_not_taken(locking: Locking) -> None:
    many = wheel("gamma", "2.0", [f"nope-{number}" for number in range(100_000)])
    locking.index.add("gamma", [wheel("gamma", "1.0"), many])
    begun = time.monotonic()
    assert pins_of(locking(requirement="gamma").out) == {"gamma": "1.0"}
    assert time.monotonic() - begun < 5


def test_metadata_larger_than_any_is_an_error(locking: Locking) -> None:
    metadata = core_metadata("gamma", "1.0") + b"Requires-Dist: beta\n" * 600_000
    locking.index.add("gamma", [wheel("gamma", "1.0", metadata=metadata)])
    begun = time.monotonic()
    done = locking(requirement="gamma")
    assert (done.code, done.err.splitlines()[0]) == (3, "error: response-too-large"), done.err
    assert time.monotonic() - begun < 10


def test_hundreds_of_extras_are_extras(locking: Locking) -> None:
    extras = [f"extra-{number}" for number in range(300)]
    requires = [f"beta<{number + 2}; extra == '{extra}'" for number, extra in enumerate(extras)]
    locking.index.add("gamma", [wheel("gamma", "1.0", requires, extras=extras)])
    begun = time.monotonic()
    done = locking(requirement=f"gamma[{','.join(extras)}]")
    assert pins_of(done.out) == {"gamma": "1.0", "beta": "1.0"}, done.err
    assert time.monotonic() - begun < 5


@pytest.fixture
def closed(locking: Locking) -> Locking:
    """An index that requires a login."""
    locking.index.require("ann", SECRET)
    return locking


def test_an_unauthorised_user_gets_a_hint_how_to_log_in(closed: Locking) -> None:
    done = closed.refused()
    assert done.err.startswith("error: index-refused\n")
    assert "returned status 401" in done.err
    assert "hint: give user name and password" in done.err


def test_a_login_in_an_address_is_used_and_stored_nowhere(closed: Locking) -> None:
    closed.url = closed.url.replace("//", f"//{LOGIN}@")
    for form in ("requirements", "pylock"):
        done = closed("--format", form)
        assert (done.code, "beta" in done.out) == (0, True), done.err
        assert without_secret(done.out + done.err)
    assert closed("--offline").code == 0
    stored = [path for path in closed.cache.rglob("*") if path.is_file()]
    assert stored
    assert all(without_secret(path.read_bytes().decode("latin-1")) for path in stored)


LEAKS: dict[str, dict[str, Any]] = {
    "a page that is forbidden": {"status": 403},
    "a page that the server fails at": {"status": 500},
    "a page that is cut": {"cut": True},
    "a page of garbage": {"body": b"garbage"},
    "a page of the wrong shape": {"body": b'{"files": [7]}'},
    "a page that leads to itself": {"redirect": "{path}"},
    "a page that leads to a script": {"redirect": "javascript:alert(1)"},
    "a page that leads to a file that is forbidden": {
        "body": json.dumps({"files": [entry("beta-1.0-py3-none-any.whl", url="file:///x")]}).encode()
    },
}


@pytest.mark.parametrize("kind", LEAKS)
def test_no_error_reports_a_login(closed: Locking, kind: str) -> None:
    closed.url = closed.url.replace("//", f"//{LOGIN}@")
    closed.index.fault("/simple/beta/", **LEAKS[kind])
    done = closed.refused()
    assert without_secret(done.err), done.err
    stored = [path.read_bytes().decode("latin-1") for path in closed.cache.rglob("*") if path.is_file()]
    assert all(map(without_secret, stored))


def test_a_wrong_or_unencoded_password_is_not_printed(closed: Locking) -> None:
    plain = closed.url
    for login in ("ann:s3cret", "ann:s3cr/et", "ann:s3cr#et", "s3cret"):
        closed.url = plain.replace("//", f"//{login}@")
        done = closed()
        assert done.code in (2, 3), done.err
        assert "s3cr" not in done.err + done.out


def test_a_login_is_not_for_another_host(closed: Locking) -> None:
    with IndexServer(recorded=False) as other:
        other.add("alpha", [wheel("alpha", "7.0")])
        other.add("beta", [wheel("beta", "7.0")])
        closed.index.fault("/simple/*", redirect=f"{other.url}{{path}}")
        closed.url = closed.url.replace("//", f"//{LOGIN}@")
        assert closed.pins() == {"alpha": "7.0"}
        assert other.requests
        assert all("authorization" not in headers for headers in other.headers)


def without_secret(text: str) -> bool:
    return not any(part in text for part in SPELLINGS)
