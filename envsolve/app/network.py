"""How a command goes out to package indexes and channels."""

from __future__ import annotations

from typing import NamedTuple


class Network(NamedTuple):
    """``offline`` asks nobody, ``refresh`` trusts nothing that is kept."""

    offline: bool = False
    refresh: bool = False
    cache_directory: str | None = None
    no_cache: bool = False
