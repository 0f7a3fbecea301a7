"""How a command goes out to package indexes and channels."""

from __future__ import annotations

from typing import NamedTuple


class Network(NamedTuple):
    """``offline`` makes no request, ``refresh`` ignores the cache."""

    offline: bool = False
    refresh: bool = False
    cache_directory: str | None = None
    no_cache: bool = False
