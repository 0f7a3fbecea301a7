"""Compiled wheels from before NumPy 2: what their metadata do not say of NumPy.

What was compiled with NumPy 1 crashes beside NumPy 2 (NumPy 2.0.0 release notes, ABI changes). Until its first
pre-release no one could compile with NumPy 2, and most wheels of that time set no upper bound.
"""

from __future__ import annotations

from envsolve.index.page import RawFile
from envsolve.model.need import Need, is_limited

_FIRST_OF_NUMPY_2 = "2024-03-11"
"""The day of NumPy 2.0.0b1, as upload times begin."""
_NUMPY = "numpy"


def numpy_for(file: RawFile, needs: tuple[Need, ...]) -> tuple[Need, ...]:
    """``numpy<2`` for a wheel with extension modules that ``needs`` NumPy, is that old and says no more.

    Nothing where the index gives no upload times.
    """
    uploaded = file[4]
    own = [need for need in needs if need.name == _NUMPY]
    if not own or uploaded is None or uploaded >= _FIRST_OF_NUMPY_2 or not _has_modules(file[0]):
        return ()
    return () if any(is_limited(need.specifier) for need in own) else (Need(_NUMPY, (), "<2", ""),)


def _has_modules(name: str) -> bool:
    """Whether a file is a wheel for the ABI of a Python: it has extension modules, or could be for any Python."""
    return name.endswith(".whl") and name.split("-")[-2] != "none"
