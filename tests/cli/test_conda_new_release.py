"""Conda builds that are newer than the matrix: their records give their requirements, and the GPUs are inferred."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.matrix import Matrix
from tests.conda.conftest import Mirror, mirror, own_channel_server
from tests.conda.records import MadePackage, record
from tests.conda.server import ChannelServer
from tests.conftest import Envsolve, Result

__all__ = ["mirror", "own_channel_server"]
GPU = ("--gpu", "8.6", "--driver", "580.65.06", "--platform", "linux-64")


def torch(build: str, *more: str, version: str = "2.16.0") -> MadePackage:
    python = ("python >=3.12,<3.13.0a0", "python_abi 3.12.* *_cp312", "__glibc >=2.17,<3.0.a0")
    return record("pytorch", version, [*python, *more], build=f"{build}_py312_h01234567_300")


FOR_CUDA = ("__cuda", "cuda-version >=12.9,<13", "cudnn >=9.10.2.21,<10.0a0")


@pytest.fixture
def channel(own_channel_server: ChannelServer, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A channel with a PyTorch that is newer than the shipped matrix, before conda-forge."""
    mirror(own_channel_server)
    monkeypatch.setenv("ENVSOLVE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr("envsolve.matrix.Matrix", Matrix)
    own_channel_server.channel("ours").add(torch("cuda129_mkl", *FOR_CUDA), torch("cpu_mkl"))
    return own_channel_server.url_of("ours")


def lock(envsolve: Envsolve, channel: str, *words: str) -> Result:
    unreachable = ("--index-url", "http://127.0.0.1:9/simple/", "--pytorch-index-url", "http://127.0.0.1:9/whl")
    return envsolve("-f", *words, *GPU, "-c", channel, *unreachable, "--no-cache")


def test_a_build_unknown_to_the_matrix_is_locked_with_inferred_gpus(envsolve: Envsolve, channel: str) -> None:
    done = lock(envsolve, channel, "pytorch==2.16", "--format", "conda-lock", "--source", "conda-forge")
    assert done.code == 0, done.err
    assert f"{channel}/linux-64/pytorch-2.16.0-cuda129_mkl_py312_h01234567_300.conda" in done.out
    assert """envsolve.linux-64.evidence: '{"inferred": ["pytorch as in 2.13.0 (cuda129)"]}'""" in done.out
    assert (
        "note: pytorch 2.16.0 (conda-forge, cuda129) is not in the matrix yet: its cuDNN, machine code and PTX are "
        "inferred (as in 2.13.0 (cuda129)). To prove them in the environment:\n  envsolve validate\n"
    ) in done.err


@pytest.mark.thorough
def test_gpus_without_code_in_the_previous_build_stay_unsupported(
    envsolve: Envsolve, channel: str, own_channel_server: ChannelServer
) -> None:
    own_channel_server.channel("newer").add(torch("cuda130_mkl", "cuda-version >=13.0,<14", "cudnn >=9.12,<10.0a0"))
    newer = own_channel_server.url_of("newer")
    words = ("pytorch==2.16", "--format", "explicit", "--source", "conda-forge", "--gpu", "6.1")
    done = lock(envsolve, newer, *words)
    assert done.code == 1
    assert "pytorch 2.16.0 (conda-forge, cuda130) has no code for compute capability 6.1" in done.err


@pytest.mark.thorough
def test_a_stack_queries_the_channels_if_no_index_has_the_release(envsolve: Envsolve, channel: str) -> None:
    done = lock(envsolve, channel, "pytorch==2.16")
    assert done.code == 0, done.err
    assert "  - pytorch=2.16.0=cuda129*" in done.out
    assert "To prove them in the environment:\n  envsolve validate\n" in done.err


@pytest.mark.thorough
def test_a_release_that_no_channel_has_either_is_refused(envsolve: Envsolve, channel: str) -> None:
    done = lock(envsolve, channel, "pytorch==2.17", "--format", "explicit", "--source", "conda-forge")
    assert done.code == 1
    assert done.err.startswith("error: no-such-release\n")


@pytest.mark.thorough
def test_a_build_for_an_unknown_cuda_is_refused_with_the_reason(
    envsolve: Envsolve, channel: str, own_channel_server: ChannelServer
) -> None:
    own_channel_server.channel("newer").add(torch("cuda139_mkl", "cuda-version >=13.9,<14"))
    newer = own_channel_server.url_of("newer")
    done = lock(envsolve, newer, "pytorch==2.16", "--format", "explicit", "--source", "conda-forge")
    assert done.code == 1
    assert "pytorch 2.16.0 (conda-forge, cuda139): " in done.err
