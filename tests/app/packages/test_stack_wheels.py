"""Facts in the matrix about the wheels of frameworks."""

from __future__ import annotations

import pytest

from envsolve.app.packages.stack_wheels import cuda_majors_of
from envsolve.matrix import Matrix
from envsolve.model.host import Platform


@pytest.mark.parametrize(
    ("package", "version", "majors"),
    [
        ("torch", "2.0.1", {11}),
        ("torch", "2.8.0", {12}),
        ("torch", "2.8.0+cu126", set()),  # not from the default index
        ("torch", "9.0", set()),
        ("jax", "0.9.0", set()),  # jax[cuda12] or jax[cuda13]
        ("numpy", "2.0.0", set()),
    ],
)
def test_wheels_of_a_framework_know_their_cuda(package: str, version: str, majors: set[int], matrix: Matrix) -> None:
    assert cuda_majors_of(matrix, package, version, Platform.LINUX_64) == majors
