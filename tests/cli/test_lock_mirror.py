"""Locks from mirrors that lack some of what the indexes they copy have."""

from __future__ import annotations

import pytest

from tests.cli.locked import pins_in
from tests.cli.worlds import torch, vision
from tests.conftest import Envsolve, Result
from tests.index.server import IndexServer
from tests.index.shelf import Shelf

pytestmark = pytest.mark.thorough

CUDA_12 = ("nvidia-cublas-cu12==12.6.4.1", "nvidia-cudnn-cu12==9.10.2.21", "nvidia-nccl-cu12==2.27.5")
PASCAL = ("--gpu", "6.1", "--driver", "580.95.05")


@pytest.fixture
def mirror(world: IndexServer) -> Shelf:
    """A folder of PyTorch's index with two builds of it and no torchvision, which no other index has either."""
    world.withdraw("torchvision")
    folder = world.index("/mirror/cu126/", "pytorch")
    folder.add("torch", [torch("2.14.1+cu126", *CUDA_12), torch("2.14.0+cu126", *CUDA_12)])
    return folder


def lock(envsolve: Envsolve, world: IndexServer, *words: str) -> Result:
    indexes = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/mirror")
    return envsolve(*words, "--platform", "linux-64", "--no-cache", "--format", "requirements", *indexes)


def test_an_older_companion_moves_the_framework_and_is_the_reason(
    envsolve: Envsolve, world: IndexServer, mirror: Shelf
) -> None:
    mirror.add("torchvision", [vision("0.29.0+cu126", "2.14.0")])
    result = lock(envsolve, world, "-f", "pytorch", "torchvision", *PASCAL)
    found = {name: version for name, version in pins_in(result.out).items() if name.startswith("torch")}
    assert found == {"torch": "2.14.0+cu126", "torchvision": "0.29.0+cu126"}, result.err
    assert "torchvision 0.29.0+cu126 requires torch==2.14.0" in result.err


def test_an_older_companion_on_another_index_moves_the_framework(
    envsolve: Envsolve, world: IndexServer, mirror: Shelf
) -> None:
    """The folder of the mirror has no torchvision, and the newest of the default index is for another build."""
    world.add("torchvision", [vision("0.29.2", "2.14.1"), vision("0.23.0", "2.8.0")])
    result = lock(envsolve, world, "-f", "pytorch", "torchvision", "--gpu", "7.0", "--driver", "550.54")
    found = {name: version for name, version in pins_in(result.out).items() if name.startswith("torch")}
    assert found == {"torch": "2.8.0", "torchvision": "0.23.0"}, result.err


def test_a_companion_that_nothing_has_is_not_on_an_index(envsolve: Envsolve, world: IndexServer, mirror: Shelf) -> None:
    result = lock(envsolve, world, "-f", "pytorch", "torchvision", *PASCAL)
    assert result.code == 1
    assert result.err.startswith("error: package-not-found\n  no package index has torchvision\n")


@pytest.mark.parametrize(
    ("words", "has_way"),
    [
        (("--gpu", "8.9", "--driver", "535.183.01"), True),
        (("--gpu", "none"), False),
        (("--gpu", "8.9", "--source", "pytorch"), False),
    ],
)
def test_without_the_index_of_pytorch_the_package_index_alone_is_offered(
    words: tuple[str, ...], *, has_way: bool, envsolve: Envsolve, world: IndexServer
) -> None:
    """Nothing listens on port 9. PyPI has no build of PyTorch for the CPU on Linux."""
    indexes = ("--index-url", world.index_url, "--pytorch-index-url", "http://127.0.0.1:9/whl")
    request = ("-f", "pytorch", *words, "--platform", "linux-64", "--no-cache", "--format", "requirements", *indexes)
    failed = envsolve(*request)
    assert failed.err.startswith("error: index-unreachable\n"), failed.err
    assert failed.code == 3
    assert ("hint: the package index alone has builds for this request\n" in failed.err) is has_way
    if has_way:
        assert "--source pypi " in failed.err
        assert pins_in(envsolve(*request, "--source", "pypi").out)["torch"] == "2.8.0"
