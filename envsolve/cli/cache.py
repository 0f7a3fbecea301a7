"""``envsolve cache``: the directory of the cache, its size, and how to shrink it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from envsolve.boundary.display import size_text
from envsolve.cli.options import FileName, color_option, option
from envsolve.cli.output import deliver, json_text
from envsolve.errors import Hint, OutsideError

if TYPE_CHECKING:
    from envsolve import documents
    from envsolve.conda.repodata_cache import RepodataCache
    from envsolve.index.store import Amount, Store

cache_dir_option = option(
    "--cache-dir",
    "given",
    type=FileName("directory"),
    metavar="DIR",
    help="Use this cache directory instead of the user's.",
)


@click.group()
def cache() -> None:
    """Manage the cache of package indexes and conda channels."""


@cache.command("dir")
@cache_dir_option
@color_option
def show_directory(given: str | None) -> None:
    """Print the directory of the cache."""
    deliver(f"{_directory(_store(given))}\n", None)


@cache.command("size")
@cache_dir_option
@option("--json", "as_json", is_flag=True, help="Print JSON.")
@color_option
def show_size(given: str | None, as_json: bool) -> None:
    """Print the number of cached files and their size."""
    store = _store(given)
    amount = _with(store.size(), _repodata(store).size())
    _refuse_failed(store)
    facts: documents.CacheSize = {
        "schema_version": 1,
        "directory": str(_directory(store)),
        "files": amount.files,
        "bytes": amount.bytes,
        "limit": store.limit,
    }
    deliver(json_text(facts) if as_json else f"{_amount_text(amount)}\n", None)


@cache.command()
@cache_dir_option
@color_option
def prune(given: str | None) -> None:
    """Remove files unused for 90 days, and the oldest beyond ENVSOLVE_CACHE_SIZE (default: 1GB)."""
    store = _store(given)
    amount = _with(store.prune(), _repodata(store).prune())
    _refuse_failed(store)
    deliver(f"removed {_amount_text(amount)}\n", None)


@cache.command()
@cache_dir_option
@color_option
def clear(given: str | None) -> None:
    """Remove everything cached from package indexes and conda channels."""
    store = _store(given)
    repodata = _repodata(store)
    amount = _with(store.clear(), repodata.clear())
    left = _with(store.size(), repodata.size())
    _refuse_failed(store)
    if left.files:
        message = f"the cache in {store.directory} still has {_amount_text(left)}"
        raise OutsideError(
            "cache-failed", message, hints=(Hint("check who owns these files and which program uses them"),)
        )
    deliver(f"removed {_amount_text(amount)}\n", None)


def _store(given: str | None) -> Store:
    from envsolve.index.store import store_at

    return store_at(given, os.environ)


def _repodata(store: Store) -> RepodataCache:
    from envsolve.conda.repodata_cache import RepodataCache

    return RepodataCache(_directory(store))


def _with(amount: Amount, more: tuple[int, int]) -> Amount:
    return amount._replace(files=amount.files + more[0], bytes=amount.bytes + more[1])


def _directory(store: Store) -> Path:
    """The directory of the cache. Raises OutsideError for a user who has no place for one."""
    if store.directory is None:
        store.size()
        _refuse_failed(store)
    assert store.directory is not None
    return store.directory


def _refuse_failed(store: Store) -> None:
    if store.failure is not None:
        raise OutsideError("cache-failed", store.failure, hints=(Hint("choose another directory with --cache-dir"),))


def _amount_text(amount: Amount) -> str:
    """``12 files, 3.4 MB``."""
    return f"{amount.files} {'file' if amount.files == 1 else 'files'}, {size_text(amount.bytes)}"
