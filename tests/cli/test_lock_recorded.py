"""Locks from the recorded index, checked with uv: apart from GPU facts they have what uv chooses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from scripts.index_recorder.uv_pins import PYTHON, compile_with_uv, pins_of
from scripts.index_recorder.walk import read_resolutions
from tests.cli.locked import pins_in, reasons_in
from tests.conftest import Envsolve
from tests.index.server import IndexServer
from tests.index.shelf import RECORDED

pytestmark = pytest.mark.thorough  # uv resolves the same

RESOLUTIONS = {it.name: it.requirements for it in read_resolutions(RECORDED / "resolutions.toml")}
NO_GPU = ("--host", str(Path(__file__).parents[1] / "hosts" / "no-gpu.json"))
TARGET = ("--python", PYTHON, "--platform", "linux-64", "--no-cache", "--format", "requirements")


class Case(NamedTuple):
    """A recorded resolution without ``but``, for the machine that ``arguments`` describe."""

    name: str
    arguments: tuple[str, ...]
    but: frozenset[str] = frozenset()

    @property
    def requirements(self) -> list[str]:
        return [it for it in RESOLUTIONS[self.name] if it not in self.but]

    def __str__(self) -> str:
        return " ".join((self.name, *(it for it in self.arguments if "/" not in it)))


BESIDE_CUDA_13 = frozenset({"xgboost"})
"""Wants NCCL for CUDA 12; the releases that a stack of CUDA 13 has to go back to are not recorded."""
OF_ITS_AGE = frozenset({"s3fs"})
"""Beside the newest boto3 uv takes the s3fs of 2020; a lock takes the newest and a boto3 of some weeks before."""
CASES = [
    Case("W1", ("--gpu", "8.6", "--driver", "580.65.06")),
    Case("W1", ("--gpu", "8.6", "--driver", "535.183.01")),
    Case("W1", ("--gpu", "6.1")),
    Case("W2", ("--gpu", "8.6")),
    Case("W2", NO_GPU),
    Case("W3", ("--gpu", "9.0")),
    Case("W3", ("--gpu", "7.0", "--driver", "580.65.06")),
    Case("W5", NO_GPU, OF_ITS_AGE),
    Case("W5", ("--gpu", "8.6"), BESIDE_CUDA_13 | OF_ITS_AGE),
    Case("W6", NO_GPU),
    Case("torch-2.7.1", ("--gpu", "6.1", "--gpu", "8.6")),
    Case("tensorflow-2.15.1", ("--gpu", "8.6", "--driver", "535.183.01")),
    Case("jax-0.4.30-cpu", NO_GPU),
]

LARGE = ("W5", "W6")
"""Resolutions of several hundred packages."""
WITH_LARGE = [
    pytest.param(case, marks=[pytest.mark.thorough] if case.name in LARGE else [], id=str(case)) for case in CASES
]

_BOUNDS: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (r"(\S+) is the last of CUDA \S+, the toolkit of this stack", lambda it: f"<={it[1]}"),
    (r"this stack has CUDA (\d+)", lambda it: f"=={it[1]}.*"),
    (r"cuDNN (\S+) has no code for compute capability \S+", lambda it: f"<{it[1]}"),
    (r"NCCL (\S+) has no code for compute capability \S+", lambda it: f"<{it[1]}"),
    (r"\S+ \S+ breaks without numpy(\S+)", lambda it: it[1]),
    (r"the matrix knows the GPUs of cuDNN up to (\d+)\.(\d+)", lambda it: f"<{it[1]}.{int(it[2]) + 1}"),
)
"""The sentences of a lock, as options for uv."""


def constraints_of(lock: str) -> Iterator[str]:
    """The parts of a lock that the GPU and the driver decided: its frameworks, and the bounds with their reasons."""
    pins = pins_in(lock)
    for package in re.findall(r'package = "([^"]+)"', lock):
        yield f"{package}=={pins[package]}"
    for name, reason in reasons_in(lock):
        (bound,) = [says(found) for pattern, says in _BOUNDS if (found := re.fullmatch(pattern, reason))]
        yield f"{name}{bound}"


def locked(envsolve: Envsolve, index: IndexServer, case: Case) -> str:
    result = envsolve(*case.requirements, *case.arguments, *TARGET, "--index-url", index.index_url)
    assert result.code == 0, result.err
    return result.out


@pytest.mark.parametrize("case", WITH_LARGE)
def test_a_lock_holds_what_uv_takes_within_what_the_lock_says(
    case: Case, envsolve: Envsolve, index: IndexServer, tmp_path: Path
) -> None:
    lock = locked(envsolve, index, case)
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(constraints_of(lock)), encoding="utf-8")
    judge = pins_of(compile_with_uv(index.index_url, case.requirements, "--constraint", str(constraints)))
    assert pins_in(lock) == judge


@pytest.mark.parametrize("case", [it for it in CASES if it.name in {"W1", "W2", "W3"}], ids=str)
def test_an_index_with_minimal_metadata_gives_the_same_lock(
    case: Case, envsolve: Envsolve, index: IndexServer, poor_index: IndexServer
) -> None:
    assert pins_in(locked(envsolve, poor_index, case)) == pins_in(locked(envsolve, index, case))


def refused(name: str, envsolve: Envsolve, index: IndexServer) -> str:
    """The error for a workload."""
    arguments = ("--gpu", "8.6", "--driver", "580.65.06", *TARGET, "--index-url", index.index_url)
    result = envsolve(*RESOLUTIONS[name], *arguments)
    assert (result.code, result.out) == (1, "")
    assert "\nhint: " in result.err
    return result.err


def test_frameworks_of_two_toolkits_are_refused_for_their_pages_at_most(envsolve: Envsolve, index: IndexServer) -> None:
    assert refused("W7", envsolve, index).startswith("error: frameworks-disagree\n")
    assert {request.path for request in index.requests} <= {"/simple/tensorflow/", "/simple/torch/"}


def test_a_wheel_without_cuda_is_refused_for_what_its_extra_pins(envsolve: Envsolve, index: IndexServer) -> None:
    """TensorFlow 2.15.0 works with every toolkit of CUDA 12; its extra ``and-cuda`` does not."""
    text = refused("W7b", envsolve, index)
    assert text.startswith("error: packages-conflict\n")
    assert "\ncause: tensorflow 2.15.0 requires nvidia-cublas-cu12==12.2.5.6\n" in text


@pytest.mark.parametrize("capability", ["6.1", "7.0"])
def test_a_gpu_that_a_newer_cudnn_dropped_gets_an_older_one(
    capability: str, envsolve: Envsolve, index: IndexServer
) -> None:
    lock = locked(envsolve, index, Case("W3", ("--gpu", capability, "--driver", "580.65.06")))
    assert pins_in(lock)["nvidia-cudnn-cu12"] == "9.10.2.21"
    assert '# cudnn = "9.10.2.21"' in lock
    assert not [name for name in pins_in(lock) if "cu13" in name or "cuda13" in name]


def test_a_file_that_the_index_lists_and_does_not_have_is_named(envsolve: Envsolve, index: IndexServer) -> None:
    arguments = ("--gpu", "8.6", "--driver", "580.65.06", *TARGET, "--index-url", index.index_url)
    result = envsolve("torch==2.10.0", *arguments)
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith("error: file-not-there\n  the index lists torch-2.10.0-")


def test_uv_takes_the_lock_and_its_hashes(envsolve: Envsolve, index: IndexServer, tmp_path: Path) -> None:
    lock = locked(envsolve, index, Case("W1", ("--gpu", "8.6")))
    lines = [line for line in lock.splitlines() if not line.startswith(("#", "--index-url"))]
    again = compile_with_uv(index.index_url, lines, "--generate-hashes", "--no-deps")
    assert again.returncode == 0, again.stderr
    hashes = re.compile(r"--hash=(\S+)")
    assert set(hashes.findall(lock)) <= set(hashes.findall(again.stdout))


def test_a_driver_of_an_older_toolkit_gets_the_libraries_of_its_major(envsolve: Envsolve, index: IndexServer) -> None:
    found = pins_in(locked(envsolve, index, Case("W3", ("--gpu", "8.6", "--driver", "535.183.01"))))
    assert (found["jax"], found["nvidia-cublas-cu12"]) == ("0.10.2", "12.9.3.13")


def test_the_previous_cuda_is_tried_if_an_index_lacks_a_package(envsolve: Envsolve, index: IndexServer) -> None:
    result = envsolve("-f", "jax", "--gpu", "8.6", "--driver", "580.65.06", *TARGET, "--index-url", index.index_url)
    assert result.code == 0, result.err
    assert "jax-cuda12-plugin==0.10.2" in result.out
    note = "note: jax 0.10.2 (pypi, cuda12) is used, not the build for CUDA 13.0: no package index has "
    assert f"{note}jax-cuda13-plugin" in result.err
