"""Kinds of machines: no two products of one kind, and no two drivers between two steps, get different answers."""

from __future__ import annotations

import random

import pytest

from envsolve.matrix import Matrix
from envsolve.matrix.names import gpu_rows
from envsolve.model.host import Platform
from envsolve.model.versions import DriverVersion
from envsolve.site.machines import PLATFORMS, driver_steps, gpu_kinds


@pytest.mark.thorough
def test_every_product_is_of_one_kind_or_of_several(matrix: Matrix) -> None:
    kinds, ambiguous = gpu_kinds(matrix)

    named = [name for kind in kinds for name in kind.products]

    rows = {str(row["name"]) for row in gpu_rows(matrix.document("gpus"))}
    assert len(named) == len(set(named))
    assert rows == {*named, *ambiguous}
    assert ambiguous["GeForce GT 730"].code == "ambiguous-gpu"


@pytest.mark.thorough
def test_every_compute_capability_is_a_kind_by_itself(matrix: Matrix) -> None:
    kinds, _ = gpu_kinds(matrix)

    known = {it.capability for it in matrix.cuda.architectures}
    assert {it.capability for it in kinds if not it.forward} == known
    assert {it.example for it in kinds if not it.products} <= {str(it) for it in known}


def test_data_centre_gpus_are_of_kinds_of_their_own(matrix: Matrix) -> None:
    kinds, _ = gpu_kinds(matrix)

    of = {name: kind for kind in kinds for name in kind.products}

    assert of["NVIDIA A10"].capability == of["NVIDIA GeForce RTX 3090"].capability
    assert of["NVIDIA A10"].forward
    assert not of["NVIDIA GeForce RTX 3090"].forward


@pytest.mark.thorough
def test_drivers_of_one_step_support_the_same_toolkits(matrix: Matrix) -> None:
    drawn, (kinds, _) = random.Random(1), gpu_kinds(matrix)  # noqa: S311
    for platform in PLATFORMS:
        windows = platform.is_windows
        limits = [it.floor(windows=windows) for it in matrix.cuda.toolkits]
        limits += [full for it in matrix.cuda.toolkits if (full := it.full(windows=windows)) is not None]
        steps = driver_steps(drawn.choice(kinds), matrix, platform)
        for _ in range(300):
            numbers = drawn.randint(380, 625), drawn.randint(10, 130), drawn.randint(1, 20)
            driver = DriverVersion(numbers, "")
            like = DriverVersion(steps[sum(numbers >= it for it in steps) - 1], "")
            assert [driver.meets(it) for it in limits] == [like.meets(it) for it in limits]


def test_only_data_centre_gpus_distinguish_each_branch_that_has_forward_compatibility(matrix: Matrix) -> None:
    kinds, _ = gpu_kinds(matrix)
    plain, forward = (
        next(it for it in kinds if it.forward is wanted and str(it.capability) == "8.6") for wanted in (False, True)
    )

    more = set(driver_steps(forward, matrix, Platform.LINUX_64)) - set(driver_steps(plain, matrix, Platform.LINUX_64))

    assert (536, 0, 0) in more
    assert driver_steps(forward, matrix, Platform.WIN_64) == driver_steps(plain, matrix, Platform.WIN_64)
