"""What a lock requests from indexes again and what it caches; a cache never changes a lock."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envsolve.index.store import Store, encoded
from tests.cli.locking import FORMAT, TARGET, Locking, alpha, assert_in_three_parts, beta, pins_of
from tests.index.packages import wheel

PAGES = "/simple/*/"
is_root = sys.platform != "win32" and os.geteuid() == 0


def cached_files(locking: Locking) -> list[Path]:
    return sorted(locking.cache.rglob("*.kept"))


def requests_of(locking: Locking, *arguments: str) -> list[tuple[str, int]]:
    """Path and status of the requests of one lock, which must be correct."""
    before = len(locking.index.requests)
    done = locking(*arguments)
    assert done.code == 0, done.err
    return sorted((it.path, it.status) for it in locking.index.requests[before:])


def test_fresh_pages_are_not_requested(locking: Locking) -> None:
    first = locking()
    assert requests_of(locking) == []
    assert locking().out == first.out


@pytest.mark.thorough
@pytest.mark.parametrize("caching", ["max-age=0", "no-cache", "no-cache, max-age=600", "public"])
def test_stale_pages_are_revalidated(locking: Locking, caching: str) -> None:
    locking.index.fault(PAGES, caching=caching)
    first = locking()
    assert requests_of(locking) == [("/simple/alpha/", 304), ("/simple/beta/", 304)]
    locking.index.add("beta", [wheel("beta", "3.0")])
    assert requests_of(locking) == [
        ("/files/beta/beta-3.0-py3-none-any.whl.metadata", 200),
        ("/simple/alpha/", 304),
        ("/simple/beta/", 200),
    ]
    assert pins_of(locking().out) == {"alpha": "2.0", "beta": "3.0"} != pins_of(first.out)


@pytest.mark.thorough
@pytest.mark.parametrize("seconds", ["\xb2", "9" * 20, "9" * 400, "9" * 5000])
def test_an_invalid_date_costs_nothing(locking: Locking, seconds: str) -> None:
    right = locking.right
    locking.index.fault(PAGES, caching=f"max-age={seconds}")
    assert locking().out == right


def test_refresh_notices_changes_of_fresh_pages(locking: Locking) -> None:
    assert locking.pins() == {"alpha": "2.0", "beta": "2.0"}
    locking.index.add("beta", [wheel("beta", "3.0")])
    assert locking.pins() == {"alpha": "2.0", "beta": "2.0"}
    assert locking.pins("--refresh") == {"alpha": "2.0", "beta": "3.0"}
    assert locking.pins() == {"alpha": "2.0", "beta": "3.0"}
    assert requests_of(locking, "--refresh") == [("/simple/alpha/", 304), ("/simple/beta/", 304)]


def test_removed_versions_of_an_index_disappear(locking: Locking) -> None:
    """Files are cached by the position of their version, which moves."""
    locking.index.add("gamma", [wheel("gamma", f"{number}.0") for number in range(1, 6)])
    line = locking.line(requirement="gamma")
    assert pins_of(locking.envsolve(*line).out) == {"gamma": "5.0"}
    locking.index.withdraw("gamma")
    locking.index.add("gamma", [wheel("gamma", "0.5"), wheel("gamma", "4.0"), wheel("gamma", "4.5")])
    done, fresh = (locking.envsolve(*line, word) for word in ("--refresh", "--no-cache"))
    assert pins_of(done.out) == {"gamma": "4.5"}
    assert done.out == fresh.out
    assert locking.envsolve(*line).out == fresh.out


def test_uncacheable_pages_are_requested_every_time(locking: Locking) -> None:
    locking.index.fault(PAGES, caching="no-store")
    first = locking()
    assert requests_of(locking)[-2:] == [("/simple/alpha/", 200), ("/simple/beta/", 200)]
    assert not [path for path in cached_files(locking) if "simple" in path.name]
    assert locking().out == first.out
    assert locking("--offline").code == 3


def test_uncacheable_pages_do_not_mix_with_cached_ones(locking: Locking) -> None:
    """Files are cached by the position of their version: the second of one page is not the second of another."""
    first = locking()
    locking.index.withdraw("beta")
    locking.index.add("beta", [wheel("beta", "1.0"), wheel("beta", "7.0")])
    locking.index.fault(PAGES, caching="no-store", times=2)
    assert locking.pins("--refresh") == {"alpha": "2.0", "beta": "7.0"}
    assert locking().out == first.out
    assert locking("--refresh").out == locking.right


def test_a_page_compressed_in_several_streams_is_read_completely(locking: Locking) -> None:
    body = locking.index.page("beta")
    streams = b"".join(gzip.compress(part) for part in (body[:50], body[50:]))
    right = locking.right
    locking.index.fault("/simple/beta/", body=streams, encoding="gzip")
    assert locking().out == right
    assert pins_of(locking.envsolve(*locking.line("beta<2")).out) == {"alpha": "2.0", "beta": "1.0"}


def test_without_a_cache_nothing_is_stored(locking: Locking, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "of-the-user"))
    line = ["alpha", *FORMAT, *TARGET, "--index-url", locking.url, "--no-cache"]
    first, again = locking.envsolve(*line), locking.envsolve(*line)
    assert first.out == again.out
    assert locking.index.count(PAGES) == 4
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if "matrix" not in path.parts]  # the matrix in a form that loads faster


def test_a_partly_filled_cache_is_used_and_completed(locking: Locking) -> None:
    filled = locking()
    offline = locking("--offline")
    assert (offline.code, offline.out, offline.err) == (0, filled.out, filled.err)
    requests = len(locking.index.requests)
    locking.index.stop()
    assert locking("--offline").out == filled.out
    assert len(locking.index.requests) == requests


def test_offline_names_what_is_missing(locking: Locking) -> None:
    done = locking("--offline")
    assert (done.code, done.out) == (3, "")
    assert_in_three_parts(done.err)
    assert done.err.startswith("error: not-cached\n")
    assert f"{locking.url}alpha/" in done.err
    locking()
    locking.index.add("gamma", [wheel("gamma", "1.0", ["beta==1.0"])])
    assert locking.envsolve(*locking.line(requirement="gamma")).code == 0
    newer = locking("--offline", "alpha<2")
    assert newer.code == 3
    assert "the metadata of alpha-1.0-py3-none-any.whl" in newer.err
    assert locking.index.requests[-1].path != "/simple/alpha/"


def test_an_unreachable_index_leaves_fresh_pages_usable(locking: Locking) -> None:
    first = locking()
    locking.index.stop()
    assert locking().out == first.out
    done = locking("--refresh")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: index-unreachable\n")
    assert "--offline" in done.err
    assert locking().out == first.out


def test_an_unreachable_index_is_reported_with_its_setting(locking: Locking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", locking.url)
    locking.index.stop()
    words = locking.line("--no-cache")
    at = words.index("--index-url")
    done = locking.envsolve(*words[:at], *words[at + 2 :])
    assert done.code == 3
    assert "cause: that index is set in PIP_INDEX_URL\n" in done.err
    assert "that index is set in" not in locking("--no-cache").err


def test_a_missing_folder_index_is_only_an_error_for_a_missing_package(
    locking: Locking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "simple"
    words = locking.line("--no-cache", "--index-url", folder.as_uri())
    done = locking.envsolve(*words)
    assert (done.code, done.err.splitlines()[0]) == (2, "error: url-invalid"), done.err
    assert f"  the folder of an index does not exist: {folder}\ncause: it is set by --index-url\n" in done.err
    monkeypatch.setenv("PIP_INDEX_URL", folder.as_uri())
    at = words.index("--index-url")
    without = [it for number, it in enumerate(words[:-2]) if number not in (at, at + 1)]
    assert "cause: it is set by PIP_INDEX_URL\n" in locking.envsolve(*without).err
    folder.mkdir()
    assert "package-not-found" in locking.envsolve(*words).err


@pytest.mark.thorough
def test_processes_share_a_cache(locking: Locking) -> None:
    command = [sys.executable, "-m", "envsolve", *locking.line()]
    locking.index.latency_ms = 20
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = {it.communicate(timeout=60) for it in running}
    assert outputs == {(locking.right, "")}
    assert requests_of(locking) == []


def write_over(locking: Locking, content: bytes) -> None:
    """Replace every cached file of the index by ``content``."""
    store = Store(locking.cache)
    for name, files in (("alpha", alpha()), ("beta", beta())):
        page = f"{locking.url}{name}/"
        store.write("pages", page, content)
        for file in files:
            assert store.read("metadata", f"{page} {file.sha256}") or file.name != files[-1].name
            store.write("metadata", f"{page} {file.sha256}", content)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda _: b"",
    "cut": lambda content: content[: len(content) // 2],
    "overwritten": lambda content: os.urandom(len(content)),
    "from another program": lambda _: b"SQLite format 3\0" * 10,
    "changed in one bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
}


@pytest.mark.thorough
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_repairs_itself(locking: Locking, damage: str) -> None:
    first = locking()
    for path in cached_files(locking):
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    again = locking()
    assert (again.out, again.err) == (first.out, "")
    assert requests_of(locking) == []


SHAPES = {
    "a number": 11,
    "too few fields": (),
    "fields of other types": tuple(range(6)),
    "a page that is a number": (9e9, "", "", "", "", 7),
    "metadata of another shape": ("alpha", "1.0", 7, None, ()),
}


@pytest.mark.thorough
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_cache_entry_of_another_shape_counts_as_absent(locking: Locking, shape: object) -> None:
    right = locking.pins()
    write_over(locking, encoded(shape))
    assert locking.pins() == right


@pytest.mark.thorough
@pytest.mark.parametrize("content", [b"", b"\xff", b"[\x01\0\0\0" * 3000], ids=["empty", "odd", "deep"])
def test_a_cache_entry_of_another_format_counts_as_absent(locking: Locking, content: bytes) -> None:
    right = locking.pins()
    write_over(locking, content)
    assert locking.pins() == right


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
@pytest.mark.parametrize("kind", ["fifo", "zero"])
def test_a_cache_entry_that_is_no_file_counts_as_absent(locking: Locking, kind: str) -> None:
    right = locking.pins()
    for path in cached_files(locking):
        path.unlink()
        if kind == "fifo":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")
    assert locking.pins() == right


def test_a_page_lost_from_the_cache_is_fetched_again(locking: Locking) -> None:
    locking()
    for path in (locking.cache / "kept" / "pages").iterdir():
        path.unlink()
    other = locking("alpha<2")
    assert pins_of(other.out) == {"alpha": "1.0", "beta": "2.0"}
    assert locking("--offline", "beta<2").code == 3


def test_an_unusable_cache_is_reported_and_skipped(locking: Locking, tmp_path: Path) -> None:
    right = locking.right
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        done = locking("--cache-dir", str(place))
        assert (done.code, done.out) == (0, right)
        assert done.err.startswith("note: the cache")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(is_root, reason="nothing is read-only to root")
def test_a_read_only_cache_is_read(locking: Locking) -> None:
    first = locking()
    for path in [locking.cache, *locking.cache.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    assert locking().out == first.out
    assert locking("--offline").out == first.out
    done = locking("--refresh")
    assert done.out == first.out
    assert "note: the cache" in done.err


@pytest.mark.skipif(not is_root, reason="only root can give files away")
def test_a_cache_of_another_user_is_not_used(locking: Locking) -> None:
    first = locking()
    os.chown(locking.cache / "kept", 12345, 12345)
    done = locking()
    assert done.out == first.out
    assert done.err.startswith("note: the cache is not used")
    assert locking("--offline").code == 3


def test_a_cache_that_others_can_write_to_is_not_used(locking: Locking) -> None:
    first = locking()
    (locking.cache / "kept").chmod(0o777)
    done = locking()
    assert done.out == first.out
    assert done.err.startswith("note: the cache is not used")
