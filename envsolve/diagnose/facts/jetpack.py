"""Facts on the JetPack of a Jetson: its CUDA comes with it, and wheels for Jetson are built for one of them.

Sources: developer.nvidia.com/embedded/jetpack-archive and docs.nvidia.com/jetson/archives.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from envsolve.diagnose.case import Case, Lines
from envsolve.model.versions import CudaVersion


class _JetPack(NamedTuple):
    """Releases of JetPack with one CUDA: their name, the first and the last of JetPack and of L4T."""

    title: str
    cuda: CudaVersion
    first: tuple[int, int]
    last: tuple[int, int]
    l4t_first: tuple[int, int]
    l4t_last: tuple[int, int]

    def __str__(self) -> str:
        return self.title


JETPACKS = (
    _JetPack("JetPack 4.2 and 4.3", CudaVersion(10, 0), (4, 2), (4, 3), (32, 1), (32, 3)),
    _JetPack("JetPack 4.4 to 4.6", CudaVersion(10, 2), (4, 4), (4, 6), (32, 4), (32, 7)),
    _JetPack("JetPack 5", CudaVersion(11, 4), (5, 0), (5, 1), (34, 1), (35, 6)),
    _JetPack("JetPack 6.0", CudaVersion(12, 2), (6, 0), (6, 0), (36, 2), (36, 3)),
    _JetPack("JetPack 6.1 and 6.2", CudaVersion(12, 6), (6, 1), (6, 2), (36, 4), (36, 4)),
    _JetPack("JetPack 7.0 and 7.1", CudaVersion(13, 0), (7, 0), (7, 1), (38, 2), (38, 4)),
)

_NUMBERS = re.compile(r"(?P<kind>jetpack|l4t)\D{0,12}(?P<major>\d+)\.(?P<minor>\d+)", re.IGNORECASE)


def _jetpack_in(text: str) -> _JetPack | None:
    """The releases that one of JetPack or of L4T is among."""
    match = _NUMBERS.search(text)
    if match is None:
        return None
    number = (int(match["major"]), int(match["minor"]))
    if match["kind"].casefold() == "jetpack":
        return next((it for it in JETPACKS if it.first <= number <= it.last), None)
    return next((it for it in JETPACKS if it.l4t_first <= number <= it.l4t_last), None)


def installed_jetpack(case: Case, _lines: Lines = ()) -> _JetPack | None:
    """The installed JetPack."""
    return next((pack for it in case.every("jetson") if (pack := _jetpack_in(it)) is not None), None)
