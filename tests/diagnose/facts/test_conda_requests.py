"""Decisions of the rules if conda, mamba or pixi cannot satisfy a request."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Given
from envsolve.model.host import Platform
from tests.diagnose.facts.package_cases import causes_of, words_of

NOT_AVAILABLE = "PackagesNotFoundError: The following packages are not available from current channels:\n  - {}\n{}"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("wanted", "channels", "cause"),
    [
        ("cudatoolkit=12.1", "", "conda-cudatoolkit-ended"),
        ("cudatoolkit=11.7", "", "conda-pytorch-cuda"),
        ("cudatoolkit=11.1", "", "conda-cudatoolkit-missing"),
        ("cudatoolkit=8.0", "", "conda-cudatoolkit-old"),
        ("cudatoolkit=11.3", "https://conda.anaconda.org/pytorch/osx-64", "conda-no-cuda-for-platform"),
        ("cudatoolkit=10.2", "https://conda.anaconda.org/pytorch/win-32", "conda-32-bit"),
        ("pytorch=2.6.0", "https://conda.anaconda.org/pytorch/linux-64", "conda-pytorch-channel-ended"),
        ("cudnn=99", "", "conda-package-missing"),
    ],
)
def test_packages_that_conda_does_not_find(wanted: str, channels: str, cause: str) -> None:
    assert causes_of(NOT_AVAILABLE.format(wanted, channels)) == [cause]


WANTS = (
    "  - package {} requires pytorch-cuda {}, but none of the providers can be installed\n"
    "Could not solve for environment specs\n"
)
REQUESTED = "├─ pytorch-cuda =={} ha16c6d3_5 is requested and can be installed;"


@pytest.mark.parametrize(
    ("package", "requested", "expected"),
    [
        ("torchaudio-2.0.2-py310_cu117", "12.1", "pytorch-cuda 11.7 and 11.8"),
        ("torchaudio-0.13.1-py310_cu117", "11.8", "PyTorch 1.13"),
        ("torchvision-0.16.0-py310_cu118", "12.4", "PyTorch 2.1"),
    ],
)
def test_a_pytorch_that_was_not_built_for_the_pytorch_cuda(package: str, requested: str, expected: str) -> None:
    assert expected in words_of(WANTS.format(package, "11.7.*") + REQUESTED.format(requested))


def test_a_pytorch_cuda_that_fits_is_not_blamed() -> None:
    assert "was not built" not in words_of(
        WANTS.format("pytorch-2.1.0-py310_cuda11.8", "11.8.*") + REQUESTED.format("12.1")
    )
    assert "was not built" not in words_of(WANTS.format("pytorch-2.1.0-py310_cuda11.8", "11.8.*"))


NEEDED = "  - nothing provides cuda 11.7.* needed by pytorch-cuda-11.7-h67b0de4_0"
MISSING = "Could not solve for environment specs: pytorch\n└─ {} , which does not exist (perhaps a missing channel)."


@pytest.mark.parametrize(
    ("text", "platform", "causes"),
    [
        (NEEDED, Platform.OSX_ARM64, ["conda-no-cuda-for-platform"]),
        (NEEDED, Platform.LINUX_64, ["conda-unsatisfiable"]),
        (MISSING.format("cuda 11.7.*") + "\n" + MISSING.format("cuda 11.8.*"), None, ["conda-package-missing"]),
        (MISSING.format("python_abi 3.13.*"), None, ["conda-unsatisfiable"]),
    ],
)
def test_requirements_of_others_that_no_channel_has(text: str, platform: Platform | None, causes: list[str]) -> None:
    assert causes_of(text, Given(platform=platform)) == causes


def test_the_end_of_a_tree_of_libmamba_names_the_pytorch_cuda() -> None:
    tree = (
        "mamba install pytorch==2.3.0 pytorch-cuda=12.4 -c pytorch\n"
        "Could not solve for environment specs\n"
        "├─ pytorch 2.3.0 would require\n"
        "│  └─ pytorch-cuda >=11.8,<11.9 , which conflicts with any installable versions previously reported;"
    )
    assert "PyTorch 2.3 was not built for pytorch-cuda 12.4" in words_of(tree)
