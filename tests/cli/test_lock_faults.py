"""Indexes that fail: a lock is correct, or the error is clear, and a failure leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.locking import OLD, Locking, locking_in
from tests.conftest import Envsolve
from tests.index.faults import GARBAGE, INVALID_JSON, WRONG_SHAPES, gzip_bomb, halved, large_page, tampered
from tests.index.packages import wheel

pytestmark = pytest.mark.thorough  # each waits for what a broken index does

PAGE = "/simple/beta/"
METADATA = "/files/beta/beta-2.0-*.metadata"
FILE = "/files/beta/beta-2.0-*.whl"
HTML = "text/html"
LONG_AGO = "Wed, 21 Oct 2015 07:28:00 GMT"


class Case(NamedTuple):
    """A fault on a path, and the code of the resulting error."""

    path: str
    fault: dict[str, Any]
    error: str
    code: int = 3


def _with_files(*files: object, **more: object) -> bytes:
    """A page of beta that lists its versions as indexes do today, and then ``files``."""
    page = {"files": files, "meta": {"api-version": "1.1"}, "name": "beta", "versions": ["1.0", "2.0"], **more}
    return json.dumps(page).encode()


def _entry(**other: object) -> dict[str, object]:
    entry = {"filename": "beta-2.0-py3-none-any.whl", "url": "beta-2.0-py3-none-any.whl", "hashes": {}}
    return {**entry, **other}


FATAL = {
    "a page that nobody has": Case(PAGE, {"status": 404}, "package-not-found", 1),
    "a page that is gone": Case(PAGE, {"status": 410}, "package-not-found", 1),
    "a page that the server fails at": Case(PAGE, {"status": 500}, "index-failed"),
    "a page that is forbidden": Case(PAGE, {"status": 403}, "index-refused"),
    "a page for those who log in": Case(PAGE, {"status": 401}, "index-refused"),
    "a page with a status of its own": Case(PAGE, {"status": 418}, "index-failed"),
    "a part of a page": Case(PAGE, {"status": 206, "body": b"<html><a href='x'>x</a>"}, "index-refused"),
    "a range of a page": Case(PAGE, {"status": 416, "body": b"<html>", "content_type": HTML}, "index-refused"),
    "a page that is cut": Case(PAGE, {"cut": True}, "response-cut"),
    "a page that never comes": Case(PAGE, {"stall": 20.0}, "index-timeout"),
    "a page that stops in its middle": Case(PAGE, {"stall": 20.0, "cut": True}, "index-timeout"),
    "a page of garbage": Case(PAGE, {"body": GARBAGE}, "index-page-invalid"),
    "a page of JSON that ends early": Case(PAGE, {"body": INVALID_JSON}, "index-page-invalid"),
    "a page that a mirror cut in half": Case(PAGE, {"alter": halved}, "index-page-invalid"),
    "an empty page": Case(PAGE, {"body": b""}, "index-page-invalid"),
    "an empty page of HTML": Case(PAGE, {"body": b"", "content_type": HTML}, "index-page-invalid"),
    "a picture": Case(PAGE, {"body": b"\x89PNG\r\n\x1a\n", "content_type": "image/png"}, "index-page-invalid"),
    "JSON that is called HTML": Case(PAGE, {"body": WRONG_SHAPES[3], "content_type": HTML}, "index-page-invalid"),
    "HTML that is called JSON": Case(PAGE, {"body": b"<!DOCTYPE html><html></html>"}, "index-page-invalid"),
    "HTML without links": Case(PAGE, {"body": b"<html>log in</html>", "content_type": HTML}, "packages-conflict", 1),
    "JSON too deep to read": Case(PAGE, {"body": b"[" * 200_000}, "index-page-invalid"),
    "a page of 50 MB without a file": Case(PAGE, {"body": large_page}, "packages-conflict", 1),
    "a page that unpacks to 200 MB": Case(PAGE, {"body": gzip_bomb, "encoding": "gzip"}, "response-too-large"),
    "a page that is not packed as it says": Case(PAGE, {"body": b"plain", "encoding": "gzip"}, "response-cut"),
    "a page packed in a way of its own": Case(PAGE, {"body": b"x", "encoding": "lzma"}, "response-unreadable"),
    "a page that leads to itself": Case(PAGE, {"redirect": "{path}"}, "redirect-loop"),
    "a page that leads on and on": Case("/simple/beta*", {"redirect": "{path}x/"}, "redirect-loop"),
    "a page that leads to a file": Case(PAGE, {"redirect": "file:///etc/passwd"}, "redirect-invalid"),
    "a page that leads to a script": Case(PAGE, {"redirect": "javascript:alert(1)"}, "redirect-invalid"),
    "a page that leads nowhere": Case(PAGE, {"redirect": "http://[::1/"}, "redirect-invalid"),
    "metadata that the server fails at": Case(METADATA, {"status": 503}, "index-failed"),
    "metadata that are forbidden": Case(METADATA, {"status": 403}, "file-not-there"),
    "metadata that are cut": Case(METADATA, {"cut": True}, "response-cut"),
    "metadata that never come": Case(METADATA, {"stall": 20.0}, "index-timeout"),
    "metadata that somebody changed": Case(METADATA, {"alter": tampered}, "hash-mismatch"),
    "metadata that are empty": Case(METADATA, {"body": b""}, "hash-mismatch"),
    "metadata of 50 MB": Case(METADATA, {"body": b" " * 50_000_000}, "response-too-large"),
    "metadata that lead to a file": Case(METADATA, {"redirect": "file:///etc/passwd"}, "redirect-invalid"),
    "neither metadata nor file": Case("/files/beta/beta-2.0-*", {"status": 404}, "file-not-there"),
} | {
    f"JSON of the wrong shape: {shape.decode()[-60:]}": Case(PAGE, {"body": shape}, "index-page-invalid")
    for shape in WRONG_SHAPES
} | {
    f"{what} in place of what an entry holds": Case(PAGE, {"body": _with_files(entry)}, "index-page-invalid")
    for what, entry in {
        "nothing": {"filename": "beta-2.0-py3-none-any.whl"},
        "a file name that is a number": _entry(filename=2.0, url="-2.0-"),
        "an address that is a number": _entry(url=7),
        "hashes in a list": _entry(hashes=["sha256"]),
        "a hash that is a number": _entry(hashes={"sha256": 7}),
        "a size in words": _entry(size="large"),
        "a Python that is a number": _entry(**{"requires-python": 3.8}),
        "a day that is a number": _entry(**{"upload-time": 20260101}),
        "a hash of metadata that is a number": _entry(**{"core-metadata": {"sha256": 7}}),
    }.items()
}  # fmt: skip


@pytest.mark.parametrize("name", FATAL)
def test_a_temporary_fault_is_reported_and_not_cached(
    locking: Locking, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, fault, error, code = FATAL[name]
    right = locking.right
    if "stall" in fault:
        monkeypatch.setenv("UV_HTTP_TIMEOUT", "0.5")
    locking.index.fault(path, **{key: it() if it in (large_page, gzip_bomb) else it for key, it in fault.items()})
    done = locking.refused(code=code)
    assert done.err.startswith(f"error: {error}\n"), done.err
    locking.index.heal()
    assert locking().out == right


HEALED: dict[str, tuple[str, dict[str, Any]]] = {
    "a server that fails once": (PAGE, {"status": 500, "times": 1}),
    "a server that is busy": (PAGE, {"status": 429, "retry_after": 0, "times": 1}),
    "a server that says when to come again": (METADATA, {"status": 503, "retry_after": LONG_AGO, "times": 1}),
    "a server that says so in no known form": (METADATA, {"status": 503, "retry_after": "soon", "times": 1}),
    "a page that is cut once": (PAGE, {"cut": True, "times": 1}),
    "a page that is late once": (PAGE, {"stall": 20.0, "times": 1}),
    "metadata that are cut once": (METADATA, {"cut": True, "times": 1}),
    "metadata that are not there": (METADATA, {"status": 404}),
    "metadata that are gone": (METADATA, {"status": 410}),
    "metadata that lead to where they are": (METADATA, {"redirect": "{path}?again", "times": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", HEALED)
def test_a_recoverable_fault_is_repaired(locking: Locking, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, fault = HEALED[name]
    right = locking.right
    if "stall" in fault:
        monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "0.5")
    locking.index.fault(path, **fault)
    first, again = locking(), locking()
    assert (first.out, first.err, first.code) == (right, "", 0)
    assert again.out == right


def test_retry_after_is_respected(locking: Locking) -> None:
    right = locking.right
    locking.index.fault(PAGE, status=429, retry_after=1, times=1)
    begun = time.monotonic()
    assert locking().out == right
    assert time.monotonic() - begun >= 1


def test_timeouts_are_configured_as_for_uv_and_pip(locking: Locking, monkeypatch: pytest.MonkeyPatch) -> None:
    locking.index.fault(PAGE, status=500)
    for variable, value, tries in (("UV_HTTP_RETRIES", "2", 3), ("UV_HTTP_RETRIES", "0", 1), ("PIP_RETRIES", "0", 1)):
        monkeypatch.delenv("UV_HTTP_RETRIES", raising=False)
        monkeypatch.setenv(variable, value)
        before = locking.index.count(PAGE)
        locking.refused()
        assert locking.index.count(PAGE) - before == tries, variable


def test_a_package_that_no_index_has_is_named_with_its_dependents(locking: Locking) -> None:
    locking.index.add("gamma", [wheel("gamma", "1.0", ["nowhere"]), wheel("gamma", "2.0", ["nowhere>=1"])])
    locking.index.add("delta", [wheel("delta", "1.0", ["beta>=9"]), wheel("delta", "2.0", ["beta>=10"])])
    locking.index.add("omega", [wheel("omega", "1.0", ["delta"])])
    done = locking(requirement="gamma")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: package-not-found\n  no package index has nowhere\n")
    assert f"cause: {locking.url.rstrip('/')} does not have nowhere\n" in done.err
    assert "cause: gamma 2.0 requires nowhere>=1\n" in done.err
    done = locking(requirement="omega")
    assert (done.code, done.out) == (1, "")
    assert "cause: the command line requires omega\n" in done.err
    assert "cause: delta 2.0 requires beta>=10\n" in done.err
    assert "/simple has beta 1.0 to 2.0, and no other index is used for it\n" in done.err


def test_the_indexes_that_lack_a_package_are_named_in_order_and_without_logins(locking: Locking) -> None:
    own = locking.url.replace("://", "://user:hunter2@")
    done = locking("--extra-index-url", own.replace("/simple", "/private"), "--index-url", own, requirement="nowhere")
    assert done.code == 1
    public = locking.url.rstrip("/")
    assert f"cause: {public.replace('/simple', '/private')} and {public} do not have nowhere\n" in done.err
    assert "hunter2" not in done.err


POOR: dict[str, Callable[[bytes], bytes]] = {
    "a wheel that ends early": halved,
    "a wheel that is no archive": lambda content: b"\0" * len(content),
    "a wheel that is empty": lambda _: b"",
    "a wheel that is a page of HTML": lambda _: b"<html>log in here</html>" * 100,
}


@pytest.mark.parametrize("ranges", [True, False], ids=["in parts", "whole"])
@pytest.mark.parametrize("name", POOR)
def test_a_damaged_wheel_is_reported_and_not_cached(
    envsolve: Envsolve, tmp_path: Path, name: str, ranges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locking_in(envsolve, tmp_path, monkeypatch, ranges=ranges) as locking:
        right = locking.right
        locking.index.fault(METADATA, status=404)
        locking.index.fault(FILE, alter=POOR[name])
        done = locking.refused()
        whole = not ranges or not POOR[name](b"some bytes")  # of nothing there is no part
        assert done.err.startswith("error: hash-mismatch\n" if whole else "error: metadata-invalid\n"), done.err
        assert "beta-2.0-py3-none-any.whl" in done.err
        locking.index.heal()
        assert locking().out == right


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize("fault", [{"stall": 60.0}, {"stall": 60.0, "cut": True}, {"status": 429, "retry_after": 25}])
@pytest.mark.parametrize("path", [PAGE, METADATA])
def test_an_interrupted_lock_stops_at_once_and_writes_nothing(
    locking: Locking, path: str, fault: dict[str, Any]
) -> None:
    right = locking.right
    locking.index.fault(path, **fault)
    locking.output.write_text(OLD)
    command = [sys.executable, "-m", "envsolve", *locking.line("-o", str(locking.output))]
    environ = os.environ | {"UV_HTTP_TIMEOUT": "60"}
    before = locking.index.count("/files/alpha/*")
    running = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while locking.index.count("/files/alpha/*") == before:
        assert running.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)  # now beta is requested
    running.send_signal(signal.SIGINT)
    begun = time.monotonic()
    out, err = running.communicate(timeout=30)
    assert time.monotonic() - begun < 3
    assert (running.returncode, out, err.strip()) == (130, "", "interrupted")
    assert locking.output.read_text() == OLD
    assert not [it for it in locking.output.parent.iterdir() if it.name.startswith(".envsolve-")]
    locking.index.heal()
    assert locking().out == right
