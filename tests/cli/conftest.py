"""The loopback package indexes, for commands that lock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve import extension_sources
from tests.cli.locking import Locking, locking_in
from tests.cli.worlds import fill
from tests.conftest import Envsolve
from tests.index.conftest import index, poor_index
from tests.index.server import IndexServer

__all__ = ["index", "poor_index"]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexServer]:
    """The made-up packages of tests/cli/worlds.py only; no wheels elsewhere."""
    monkeypatch.setattr(extension_sources, "_shipped", tuple)
    with IndexServer(recorded=False) as server:
        fill(server)
        yield server


@pytest.fixture(params=["uv", "pip"])
def installer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The installer: uv, or pip on a machine where envsolve does not find uv."""
    if request.param == "pip":
        monkeypatch.setattr("envsolve.create.tools._candidates", lambda: iter(()))
    return str(request.param)


@pytest.fixture
def locking(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Locking]:
    """An index with alpha and beta, in its own directory."""
    with locking_in(envsolve, tmp_path, monkeypatch) as made:
        yield made
