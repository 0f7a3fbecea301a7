"""The formats that are solved with wheels alone are those that pip and uv install."""

from __future__ import annotations

from envsolve.lockfile.formats import PYTHON_FORMATS
from envsolve.resolve.parts import WHEELS_ONLY


def test_every_format_of_a_python_lock_has_only_wheels() -> None:
    assert set(PYTHON_FORMATS) == WHEELS_ONLY
