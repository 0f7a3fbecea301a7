"""A directory is busy while any process works on it, whoever started that process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from envsolve.boundary import busy
from envsolve.conda.process import installing


@pytest.mark.skipif(sys.platform == "win32", reason="a lock is not passed on there")
def test_the_process_that_installs_conda_packages_also_holds_the_lock(tmp_path: Path) -> None:
    descriptor = busy._locked(tmp_path / busy.LOCK)
    assert descriptor is not None
    process = installing()
    os.close(descriptor)
    other = os.open(tmp_path / busy.LOCK, os.O_RDWR)
    try:
        assert not busy._try_lock(other)
        process.kill()
        process.communicate()
        assert busy._try_lock(other)
    finally:
        os.close(other)
