"""Fixtures of the host tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_driver.builder import fake_driver

__all__ = ["fake_driver"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The empty root of a machine's files."""
    root = tmp_path / "root"
    root.mkdir()
    return root
