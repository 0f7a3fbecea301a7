"""Wheels read over the connection of locks: the same as by the scripts, less with a limit, and cached by their hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.version import Version

from envsolve.index.http import HttpFetcher
from envsolve.index.store import Store
from envsolve.releases.errors import ReleaseError
from envsolve.releases.frameworks.pytorch import PyTorchReader
from envsolve.releases.reader import Read
from envsolve.releases.remote import SMALL, Observations
from envsolve.releases.requirements import CudaReleases
from envsolve.releases.wheels import WheelFile
from tests.index.packages import IndexFile
from tests.index.server import IndexServer
from tests.scripts.wheels import torch_library, torch_wheel

BUILT = torch_wheel(library=torch_library(before=2 * SMALL))


@pytest.fixture
def server() -> Iterator[IndexServer]:
    """An index with a wheel of PyTorch."""
    with IndexServer(recorded=False) as server:
        server.add("torch", [IndexFile(BUILT.name, BUILT.content, sha256=hashlib.sha256(BUILT.content).hexdigest())])
        yield server


@pytest.fixture
def fetcher() -> Iterator[HttpFetcher]:
    """A fetcher without retries."""
    fetcher = HttpFetcher(retries=0)
    yield fetcher
    fetcher.close()


def wheel_at(server: IndexServer) -> WheelFile:
    url = f"{server.url}/files/torch/{BUILT.name}"
    digest = hashlib.sha256(BUILT.content).hexdigest()
    return WheelFile("torch", Version("2.9.0"), BUILT.name, url, digest, "linux-64", ("3.12",), "2.28")


def reading(
    fetcher: HttpFetcher, folder: Path, cuda: CudaReleases, *, largest: int | None = None, offline: bool = False
) -> Read:
    return Observations(PyTorchReader(cuda), fetcher, Store(folder), offline=offline, largest=largest).read


def test_a_wheel_is_read_in_full_or_without_its_large_members(
    server: IndexServer, fetcher: HttpFetcher, cuda_releases: CudaReleases, tmp_path: Path
) -> None:
    small = reading(fetcher, tmp_path, cuda_releases, largest=SMALL)(wheel_at(server))
    assert small["cuda"] == ["12.8"]
    assert "sass" not in small
    whole = reading(fetcher, tmp_path, cuda_releases)(wheel_at(server))
    assert whole["sass"] == ["7.5", "8.0", "9.0"]
    assert whole["read"][-1] == "torch/lib/libtorch_python.so"


def test_observations_are_cached_and_used_for_smaller_requests(
    server: IndexServer, fetcher: HttpFetcher, cuda_releases: CudaReleases, tmp_path: Path
) -> None:
    whole = reading(fetcher, tmp_path, cuda_releases)(wheel_at(server))
    for largest in (None, SMALL):
        assert reading(fetcher, tmp_path, cuda_releases, largest=largest, offline=True)(wheel_at(server)) == whole
    with pytest.raises(ReleaseError, match="is not cached, and --offline is set"):
        reading(fetcher, tmp_path / "another", cuda_releases, offline=True)(wheel_at(server))


def test_a_damaged_wheel_is_named(
    server: IndexServer, fetcher: HttpFetcher, cuda_releases: CudaReleases, tmp_path: Path
) -> None:
    server.fault("/files/*", alter=lambda content: content[: len(content) // 2])
    with pytest.raises(ReleaseError, match=f"{BUILT.name} cannot be read: "):
        reading(fetcher, tmp_path, cuda_releases)(wheel_at(server))


def test_a_missing_wheel_is_named(
    server: IndexServer, fetcher: HttpFetcher, cuda_releases: CudaReleases, tmp_path: Path
) -> None:
    server.fault("/files/*", status=404)
    with pytest.raises(ReleaseError, match=f"{BUILT.name} cannot be read: "):
        reading(fetcher, tmp_path, cuda_releases)(wheel_at(server))
