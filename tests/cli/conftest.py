"""The loopback package indexes, for command lines that lock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.locking import Locking, locking_in
from tests.cli.worlds import fill
from tests.conftest import Envsolve
from tests.index.conftest import index, poor_index
from tests.index.server import IndexServer

__all__ = ["index", "poor_index"]


@pytest.fixture
def world() -> Iterator[IndexServer]:
    """The made-up packages of tests/cli/worlds.py, and none else."""
    with IndexServer(recorded=False) as server:
        fill(server)
        yield server


@pytest.fixture(params=["uv", "pip"])
def installer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What installs: uv, or pip on a machine without uv as far as envsolve finds it."""
    if request.param == "pip":
        monkeypatch.setattr("envsolve.create.tools._candidates", lambda: iter(()))
    return str(request.param)


@pytest.fixture
def locking(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Locking]:
    """An index with alpha and beta, in a directory of its own."""
    with locking_in(envsolve, tmp_path, monkeypatch) as made:
        yield made
