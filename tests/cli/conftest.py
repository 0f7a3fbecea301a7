"""The loopback package indexes, for command lines that lock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.worlds import fill
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
