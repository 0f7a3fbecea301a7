"""The packages that are frameworks are those of the matrix."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.packages.lock_frameworks import python_of
from envsolve.frameworks import FRAMEWORK_OF_WHEEL, FRAMEWORKS, rivals_of
from envsolve.matrix import Matrix
from envsolve.model.host import Platform


@pytest.mark.parametrize("package", FRAMEWORK_OF_WHEEL)
def test_a_package_that_belongs_to_a_framework_is_one_of_its_builds(package: str, matrix: Matrix) -> None:
    builds = matrix.framework(FRAMEWORK_OF_WHEEL[package], Platform.LINUX_64).releases
    assert package in {build.package for build in builds if build.source.is_wheel}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_gpu_wheel_counts_as_its_framework_or_is_listed_as_an_exception(framework: str, matrix: Matrix) -> None:
    builds = matrix.framework(framework, Platform.LINUX_64).releases
    wheels = {build.package for build in builds if build.source.is_wheel and build.cuda is not None}
    known = {package for package, name in FRAMEWORK_OF_WHEEL.items() if name == framework} | set(rivals_of(framework))
    assert {name for name in wheels if not _is_of_one_toolkit(name)} <= known


def _is_of_one_toolkit(package: str) -> bool:
    """CuPy before 12 has a package for each minor of CUDA: cupy-cuda112."""
    return package.startswith("cupy-cuda") and not package.endswith("x")


@pytest.mark.parametrize(
    "requested",
    [
        *("==3.11.7", "==3.11.*", ">=3.11", ">=3.11.5", ">3.11.5", "~=3.11.2", ">3.10,<3.12", "<3.11.4"),
        *("!=3.11.0", "!=3.11.0,!=3.11.1", ">=3.9,!=3.11.0,!=3.11.3", ">3.11.0,!=3.11.1,<=3.11.2"),
    ],
)
def test_a_lock_is_for_the_first_requested_patch(requested: str) -> None:
    admitted = SpecifierSet(requested)
    first = next(patch for patch in range(60) if admitted.contains(f"3.11.{patch}"))
    assert python_of(admitted, Version("3.11")) == (3, 11, first)
