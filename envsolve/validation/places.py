"""Where a process runs, as far as it changes the advice on a driver; facts for the catalogue."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Any

from envsolve.host.containers import is_container
from envsolve.host.jetson import l4t_release
from envsolve.host.wsl import is_wsl


class Place(StrEnum):
    """A property of the place where a process runs; several can be true."""

    POSIX = "posix"
    """Any Linux, including WSL: with a POSIX shell and the loader of Linux."""
    LINUX = "linux"
    """Linux with its own kernel driver: not WSL."""
    JETSON = "jetson"
    WSL = "wsl"
    WINDOWS = "windows"
    CONTAINER = "container"


def places_of(root: Path, *, windows: bool) -> frozenset[Place]:
    """The places of this machine's processes; ``root`` is the root of its files."""
    if windows:
        return frozenset({Place.WINDOWS})
    places = {Place.POSIX, Place.WSL if is_wsl(root) else Place.LINUX}
    if l4t_release(root) is not None:
        places.add(Place.JETSON)
    if is_container(root):
        places.add(Place.CONTAINER)
    return frozenset(places)


def facts_of(places: Collection[Place] | None) -> dict[str, Any]:
    """The facts of a check about where it runs.

    Without ``places`` they are true for all places but Windows.
    """
    return {place.value: True for place in (set(Place) - {Place.WINDOWS} if places is None else places)}
