"""Common fixtures: the shipped matrix, and the command line in this process."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from envsolve.cli.main import run
from envsolve.matrix import Matrix, find_matrix
from envsolve.matrix.load import PLATFORM_TABLES
from envsolve.model.host import Platform
from tests.fake_driver.builder import fake_driver
from tests.json_documents import require_documented
from tests.laws import TIMES, examples
from tests.own_machine import on_this_machine

__all__ = ["fake_driver"]

settings.register_profile(
    "laws",
    max_examples=examples(100),
    derandomize=TIMES <= 1,
    deadline=2000,  # milliseconds: whole locks are drawn and written in 10, on a busy machine in ten times that
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("laws")
"""The suites draw the same examples each time; LAWS_TIMES above 1 draws by chance."""

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""Containers often set it. Here several hundred processes would each compile again what they import."""

signal.signal(signal.SIGINT, signal.default_int_handler)
"""What a shell starts in the background ignores interrupts, and so do the commands that the tests interrupt."""

PEER_VARIABLES = ("CONDA_OVERRIDE_CUDA", "CONDA_OVERRIDE_CUDA_ARCH", "UV_CUDA_DRIVER_VERSION", "CUDA_VISIBLE_DEVICES")


class Result(NamedTuple):
    """The result of one command line."""

    code: int
    out: str
    err: str


Envsolve = Callable[..., Result]


def pytest_configure(config: pytest.Config) -> None:
    """A path on the command line stands for all tests there, also for thorough ones."""
    if config.args_source is pytest.Config.ArgsSource.ARGS and config.option.markexpr in config.getini("addopts"):
        config.option.markexpr = config.option.markexpr.replace(" and not thorough", "")


def pytest_collection_finish() -> None:
    """Exclude the thousands of tests from every later garbage collection: they stay until the end.

    And search seldom, as each search looks through the parsed matrices too.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)


@pytest.fixture(scope="session", autouse=True)
def _cached_matrix(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Cache the parsed matrix, as a user's first command does, but not in the cache of the user who runs the tests."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    shipped = Matrix(find_matrix())
    for name in shipped.framework_names:
        for platform in Platform:
            shipped.framework(name, platform)
    for name in PLATFORM_TABLES:
        shipped.document(name)
    for table in ("cuda", "cudnn", "components", "pci_ids", "places"):
        getattr(shipped, table)


@pytest.fixture(autouse=True)
def _stays_on_this_machine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Only tests with the mark ``online`` may use the network."""
    with nullcontext() if request.node.get_closest_marker("online") else on_this_machine():
        yield


@pytest.fixture(scope="session")
def matrix() -> Matrix:
    """The matrix that envsolve ships."""
    return Matrix(find_matrix())


@pytest.fixture
def shipped_matrix_is_read_once(matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the shipped matrix only: every command in this process would parse it again, as other processes do."""

    def opened(directory: Path | str | None = None) -> Matrix:
        found = Matrix(directory)
        return matrix if found.directory == matrix.directory else found

    monkeypatch.setattr("envsolve.matrix.Matrix", opened)


@pytest.fixture
def envsolve(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shipped_matrix_is_read_once: None
) -> Envsolve:
    """Run the command line in this process, without variables that would change it.

    Its JSON must be what the published schema says.
    """
    ours = [name for name in os.environ if name.startswith("ENVSOLVE_") and name != "ENVSOLVE_UPDATE_SNAPSHOTS"]
    for name in (*PEER_VARIABLES, *ours):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str) -> Result:
        capsys.readouterr()
        code = run(list(arguments))
        out, err = capsys.readouterr()
        require_documented(arguments, out)
        return Result(code, out, err)

    return call
