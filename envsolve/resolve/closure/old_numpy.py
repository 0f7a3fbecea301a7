"""Compiled wheels from before NumPy 2: a limit on NumPy that their metadata lacks.

A module compiled with NumPy 1 crashes with NumPy 2 (NumPy 2.0.0 release notes, ABI changes). Before NumPy 2's first
pre-release no one could compile with it, and most wheels of that time set no upper limit.
"""

from __future__ import annotations

from envsolve.index.page import RawFile
from envsolve.model.need import Need, is_limited

_FIRST_OF_NUMPY_2 = "2024-03-11"
"""The day of NumPy 2.0.0b1, as upload times begin."""
_NUMPY = "numpy"
_BEFORE_2 = Need(_NUMPY, (), "<2", "", because="its wheel is older than NumPy 2")


def numpy_for(file: RawFile, needs: tuple[Need, ...]) -> tuple[Need, ...]:
    """Return ``numpy<2`` for an old wheel with extension modules that requires NumPy without an upper limit.

    The result is empty if the index has no upload times.
    """
    uploaded = file[4]
    own = [need for need in needs if need.name == _NUMPY]
    if not own or uploaded is None or uploaded >= _FIRST_OF_NUMPY_2 or not _has_modules(file[0]):
        return ()
    return () if any(is_limited(need.specifier) for need in own) else (_BEFORE_2,)


def _has_modules(name: str) -> bool:
    """Whether a file is a wheel for a Python ABI: it has extension modules, or could be for any Python."""
    return name.endswith(".whl") and name.split("-")[-2] != "none"
