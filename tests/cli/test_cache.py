"""The cache as the command line shows it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from envsolve.index.store import Store
from tests.conftest import Envsolve


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A cache of three entries of 1000 bytes, the first of them unused for long."""
    directory = tmp_path / "cache"
    store = Store(directory)
    for key in "abc":
        store.write("pages", key, bytes(1000))
    (oldest,) = directory.rglob("a-*.kept")
    os.utime(oldest, (time.time() - 100 * 86400,) * 2)
    return directory


def test_the_directory_is_printed_even_if_it_does_not_exist(envsolve: Envsolve, tmp_path: Path) -> None:
    result = envsolve("cache", "dir", "--cache-dir", str(tmp_path / "absent"))
    assert (result.code, result.out, result.err) == (0, f"{tmp_path / 'absent'}\n", "")
    assert not (tmp_path / "absent").exists()


def test_the_size_is_printed_as_text_and_json(envsolve: Envsolve, directory: Path) -> None:
    result = envsolve("cache", "size", "--cache-dir", str(directory))
    assert (result.code, result.out) == (0, "3 files, 3.1 kB\n")
    printed = json.loads(envsolve("cache", "size", "--json", "--cache-dir", str(directory)).out)
    size = {"files": 3, "bytes": 3117, "limit": 1_000_000_000}
    assert printed == {"schema_version": 1, "directory": str(directory), **size}


def test_an_empty_cache_has_no_files(envsolve: Envsolve, tmp_path: Path) -> None:
    assert envsolve("cache", "size", "--cache-dir", str(tmp_path)).out == "0 files, 0 bytes\n"
    assert envsolve("cache", "clear", "--cache-dir", str(tmp_path)).out == "removed 0 files, 0 bytes\n"
    assert list(tmp_path.iterdir()) == []


def test_prune_removes_unused_entries(envsolve: Envsolve, directory: Path) -> None:
    assert envsolve("cache", "prune", "--cache-dir", str(directory)).out == "removed 1 file, 1.0 kB\n"
    assert Store(directory).read("pages", "b") is not None


def test_prune_respects_the_limit(envsolve: Envsolve, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSOLVE_CACHE_SIZE", "1.5kB")
    assert envsolve("cache", "prune", "--cache-dir", str(directory)).out == "removed 2 files, 2.1 kB\n"


def test_clear_removes_the_cache_and_nothing_else(
    envsolve: Envsolve, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "thesis.tex").write_text("mine", encoding="utf-8")
    monkeypatch.setenv("ENVSOLVE_CACHE_DIR", str(directory))
    assert envsolve("cache", "clear").out == "removed 3 files, 3.1 kB\n"
    assert Store(directory).size().files == 0
    assert (directory / "thesis.tex").read_text(encoding="utf-8") == "mine"


def test_an_invalid_size_is_refused(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSOLVE_CACHE_SIZE", "plenty")
    result = envsolve("cache", "prune", "--cache-dir", str(tmp_path))
    assert (result.code, result.out) == (2, "")
    assert "error: invalid-cache-size\n  ENVSOLVE_CACHE_SIZE: 'plenty' is not a size" in result.err


@pytest.mark.parametrize("command", ["size", "prune", "clear"])
def test_a_cache_that_others_can_write_to_is_not_changed(envsolve: Envsolve, directory: Path, command: str) -> None:
    (directory / "kept").chmod(0o777)
    result = envsolve("cache", command, "--cache-dir", str(directory))
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith("error: cache-failed\n")
    assert "--cache-dir" in result.err
    assert len(list(directory.rglob("*.kept"))) == 3
