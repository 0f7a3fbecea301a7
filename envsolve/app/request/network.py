"""How a command accesses package indexes and channels."""

from __future__ import annotations

from typing import NamedTuple


class Network(NamedTuple):
    """``offline`` sends no requests, ``refresh`` ignores the cache."""

    offline: bool = False
    refresh: bool = False
    cache_directory: str | None = None
    no_cache: bool = False
