"""The first channel that has a framework provides it, in an environment file and in a lock."""

from __future__ import annotations

import pytest
import yaml

from tests.conftest import Envsolve

_RTX_3090 = ("--gpu", "8.6", "--driver", "550.54.15", "--platform", "linux-64")
_OWN = ["pytorch", "nvidia", "conda-forge"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "channels", "build"),
    [
        (["-c", "pytorch"], _OWN, "py*_cuda12.4_cudnn9.1.0_*"),
        (["-c", "pytorch", "-c", "conda-forge"], _OWN, "py*_cuda12.4_cudnn9.1.0_*"),
        (["-c", "pytorch", "-c", "nvidia"], _OWN, "py*_cuda12.4_cudnn9.1.0_*"),
        (["-c", "nvidia", "-c", "pytorch"], ["nvidia", "pytorch", "conda-forge"], "py*_cuda12.4_cudnn9.1.0_*"),
        (["-c", "https://127.0.0.1/pytorch"], ["https://127.0.0.1/pytorch", *_OWN[1:]], "py*_cuda12.4_cudnn9.1.0_*"),
        (["-c", "own"], ["own", "conda-forge"], "cuda129*"),
        (["-c", "conda-forge", "-c", "pytorch"], ["conda-forge", "pytorch"], "cuda129*"),
        (["-c", "pytorch", "--source", "conda-forge"], ["pytorch", "conda-forge"], "cuda129*"),
    ],
)
def test_the_first_channel_with_the_build_provides_it(
    words: list[str], channels: list[str], build: str, envsolve: Envsolve
) -> None:
    done = envsolve("-f", "pytorch", *_RTX_3090, *words)
    environment = yaml.safe_load(done.out)
    (pytorch,) = (it for it in environment["dependencies"] if it.startswith("pytorch="))
    assert (environment["channels"], pytorch.rpartition("=")[2]) == (channels, build)


@pytest.mark.parametrize(
    "words",
    [
        ["-f", "pytorch", "--gpu", "12.0", "--driver", "580.65.06", "--platform", "linux-64"],
        ["-f", "pytorch>=2.6", *_RTX_3090],
    ],
)
def test_a_package_that_the_first_channel_lacks_is_a_wheel(words: list[str], envsolve: Envsolve) -> None:
    done = envsolve(*words, "-c", "pytorch")
    *_, pip = yaml.safe_load(done.out)["dependencies"]
    assert [it.startswith("torch==") for it in pip["pip"]] == [True]


def test_if_the_first_channel_has_nothing_for_a_platform_the_next_one_counts(envsolve: Envsolve) -> None:
    done = envsolve(
        "-f", "pytorch", "--gpu", "9.0", "--driver", "580.65.06", "--platform", "linux-aarch64", "-c", "pytorch"
    )
    assert any(str(it).startswith("pytorch=") for it in yaml.safe_load(done.out)["dependencies"]), done.out


def test_why_and_why_not_agree_with_the_channel_order(envsolve: Envsolve) -> None:
    done = envsolve("-f", "pytorch", *_RTX_3090, "-c", "pytorch", "--why", "pytorch")
    assert (done.code, "2.5.1" in done.out) == (0, True)
