"""An index to read, with the files on its shelf, and a way to observe its wheels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from packaging.version import Version

from envsolve.matrix import Matrix
from envsolve.releases.reader import Reader, ReadRow
from envsolve.releases.requirements import CudaReleases
from envsolve.releases.wheels import Listing
from scripts.matrix_refresh.index import Index
from scripts.matrix_refresh.observation import Observations
from scripts.matrix_refresh.wheel import new_session
from tests.scripts.served import ServedIndex, served_index
from tests.scripts.tables import component_table

RowsOf = Callable[..., list[ReadRow]]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def index() -> Iterator[ServedIndex]:
    """An empty package index on the loopback interface."""
    with served_index() as server:
        yield server


@pytest.fixture
def session() -> Iterator[requests.Session]:
    """The session that the refresh uses."""
    with new_session() as session:
        yield session


@pytest.fixture
def cuda_releases(tmp_path: Path) -> CudaReleases:
    """A few releases of the toolkit."""
    folder = tmp_path / "components"
    folder.mkdir()
    (folder / "cuda_components.toml").write_text(component_table(), encoding="utf-8")
    return CudaReleases(Matrix(folder).components)


@pytest.fixture
def rows_of(index: ServedIndex, session: requests.Session, tmp_path: Path) -> RowsOf:
    """Read one release off the index with a reader."""

    def read(reader: Reader, version: str, *, deep: bool = False) -> list[ReadRow]:
        listing = Index(index.endpoint, tmp_path / "cache", session, offline=False)
        wheels = Listing(wheel for project in reader.projects for wheel in listing.wheels(project))
        observations = Observations(tmp_path / "cache", reader.edition, reader.observe, session, deep=deep)
        return list(reader.rows(Version(version), wheels, observations.read))

    return read
