"""The reference itself, compared with answers computed by hand and with rules that no shipped row distinguishes.

The rows behind an answer are quoted, so that a change of the matrix shows which line of reasoning it broke.
"""

from __future__ import annotations

import pytest

from envsolve.matrix import Matrix
from envsolve.model.capability import CodeTarget, ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.versions import DriverVersion
from tests.resolve.reference import Cause, Shelf, Stack, allowed, meets, serves_as_ptx, serves_as_sass


def answer(shelf: Shelf, gpu: str, driver: str | None) -> Stack | Cause:
    parts = None if driver is None else DriverVersion.parse(driver).parts
    return next(shelf.answers(ComputeCapability.parse(gpu), [parts]))


@pytest.fixture
def pytorch_wheels(matrix: Matrix) -> Shelf:
    return Shelf(matrix, "pytorch", Platform.LINUX_64, Source.PYTORCH)


@pytest.fixture
def tensorflow_wheels(matrix: Matrix) -> Shelf:
    return Shelf(matrix, "tensorflow", Platform.LINUX_64, Source.PYPI)


def test_pascal_gets_the_one_build_of_the_newest_release_with_its_code(pytorch_wheels: Shelf) -> None:
    """Of 2.14.1 only cu126 goes below 7.5: sass 6.0 runs on 6.1; cuda ==12.6, floor 525.60.13; cuDNN ==9.10.2.21."""
    expected = Stack("2.14.1", "pytorch", "cu126", "torch", "12.6", "9.10.2.21", "3.14")
    assert answer(pytorch_wheels, "6.1", "580.65.06") == expected
    assert answer(pytorch_wheels, "6.1", "525.60.13") == expected
    assert answer(pytorch_wheels, "6.1", None) == expected


def test_pascal_ends_with_r580(pytorch_wheels: Shelf) -> None:
    """last_branch = 580, and the next branch is 590; Windows counts on to 582 within R580."""
    assert answer(pytorch_wheels, "6.1", "589.99") != Cause.LIFE
    assert answer(pytorch_wheels, "6.1", "590.44.01") == Cause.LIFE


@pytest.mark.parametrize(
    ("driver", "version", "toolkit", "cudnn", "python"),
    [
        (
            "545.23.06",
            "2.18.1",
            "12.5",
            "9.3.0.75",
            "3.12",
        ),  # from 2.19 on jit 9.0 = 12.5, whose full driver is 555.42.02
        ("535.54.03", "2.15.1", "12.2", "8.9.4.25", "3.11"),  # 2.17: jit 12.3, full 545.23.06; 2.16: known bad; PTX 8.0
        (
            "530.30.02",
            "2.14.1",
            "11.8",
            "8.7.0.84",
            "3.10",
        ),  # 2.15: PTX of 12.2, full 535.54.03; more Pythons than 3.11's
    ],
)
def test_hopper_needs_the_full_driver_of_what_is_compiled_there(
    tensorflow_wheels: Shelf, driver: str, version: str, toolkit: str, cudnn: str, python: str
) -> None:
    """Ada, with machine code in every kernel, gets 2.21.0 on all of these drivers."""
    found = answer(tensorflow_wheels, "9.0", driver)
    build = "cuda11" if toolkit.startswith("11") else "cuda12"
    assert found == Stack(version, "pypi", build, "tensorflow", toolkit, cudnn, python)
    ada = answer(tensorflow_wheels, "8.9", driver)
    assert ada == Stack("2.21.0", "pypi", "cuda12", "tensorflow", "12.9", "9.28.0.42", "3.13")


def test_native_windows_uses_the_cudnn_of_conda_forge(matrix: Matrix) -> None:
    """2.10.1 brings no CUDA and needs cuDNN 8.1.*: of 8.1.1.33 and 8.1.0.77 conda-forge only has the older one."""
    shelf = Shelf(matrix, "tensorflow", Platform.WIN_64, Source.PYPI)
    expected = Stack("2.10.1", "pypi", "cuda11", "tensorflow", "11.2", "8.1.0.77", "3.10")
    assert answer(shelf, "8.6", "566.36") == expected
    assert answer(shelf, "9.0", "566.36") == Cause.TOOLKIT  # 11.2 ends at 8.6


def test_an_unstated_part_counts_as_equal() -> None:
    assert meets((580,), (580, 65, 6))
    assert meets((580, 65, 6), (580,))
    assert not meets((579, 99), (580,))
    assert meets((535, 104, 5), (535, 86, 9))


def test_an_unknown_driver_is_one_that_supports_the_gpu() -> None:
    assert allowed(None, None, (580, 65, 6))
    assert allowed(None, 590, (580, 65, 6))
    assert not allowed(None, 495, (520, 61, 5))


@pytest.mark.parametrize(
    ("target", "gpu", "as_sass", "as_ptx"),
    [
        ("8.0", "8.9", True, True),
        ("8.9", "8.6", False, False),
        ("8.0", "9.0", False, True),
        ("8.0", "8.7", False, True),  # Jetson: PTX alone crosses over
        ("8.7", "8.9", False, True),
        ("8.7", "8.7", True, True),
        ("10.0a", "10.0", True, True),
        ("10.0a", "10.3", False, False),
        ("10.0f", "10.3", True, True),
        ("10.0f", "12.0", False, False),
    ],
)
def test_builds_run_on_the_expected_gpus(target: str, gpu: str, as_sass: bool, as_ptx: bool) -> None:
    code, capability = CodeTarget.parse(target), ComputeCapability.parse(gpu)
    assert serves_as_sass(code, capability) is as_sass
    assert serves_as_ptx(code, capability) is as_ptx
