"""Many machines: which of them count as one, and the fewest groups with one stack each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from envsolve.matrix import Matrix, find_matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Machine, Problem
from envsolve.model.versions import DriverVersion, LibcVersion
from envsolve.resolve.fleet import profiles, smallest_split
from envsolve.resolve.solver import Solver
from tests.laws import examples

MATRIX = Matrix(find_matrix())
SOLVER = Solver(MATRIX)
GPUS = {  # of each generation a driver that drives it
    "3.7": "470.256.02",
    "6.1": "580.65.06",
    "7.0": "550.54.15",
    "8.6": "535.183.01",
    "8.0": "450.80.02",
    "9.0": "525.60.13",
    "10.0": "570.195.03",
    "12.0": "580.65.06",
}


def machine(gpu: str, driver: str | None, name: str = "", glibc: str = "2.35", *, windows: bool = False) -> Machine:
    version = None if driver is None else DriverVersion.parse(driver)
    hosts = (name,) if name else ()
    kinds = ((ComputeCapability.parse(gpu), ""),)
    return Machine(version, kinds, LibcVersion.parse(glibc), windows_driver=windows, hosts=hosts)


def posed(machines: Sequence[Machine], *frameworks: str) -> tuple[Request, Problem]:
    requested = tuple(FrameworkRequest(name, SpecifierSet()) for name in frameworks or ("pytorch",))
    problem = Problem(requested, Platform.LINUX_64, tuple(machines), cpu=False, python=None, cuda=None)
    return Request(requested, format="requirements"), problem


def test_drivers_between_the_same_limits_share_a_profile() -> None:
    drivers = ("535.104.05", "535.183.01", "535.86.10", "545.23.06")
    found = profiles([machine("8.6", driver, f"{driver}.json") for driver in drivers], MATRIX.cuda)
    assert [it.hosts for it in found] == [("535.104.05.json", "535.183.01.json", "535.86.10.json"), ("545.23.06.json",)]
    assert found[0].name == "535.104.05.json (and 2 more hosts like it)"
    assert str(found[0].driver) == "535.104.05"


@pytest.mark.parametrize(
    "other",
    [
        machine("8.9", "535.183.01"),
        machine("8.6", "535.54.02"),  # below the driver that supports CUDA 12.2 in full
        machine("8.6", "580.65.06"),
        machine("8.6", None),
        machine("8.6", "535.183.01", glibc="2.17"),
        machine("8.6", "535.183.01", windows=True),
    ],
)
def test_machines_that_a_rule_distinguishes_are_not_merged(other: Machine) -> None:
    assert len(profiles([machine("8.6", "535.183.01"), other], MATRIX.cuda)) == 2


fleets = st.lists(
    st.builds(
        machine,
        st.sampled_from(sorted(GPUS)),
        st.none()
        | st.sampled_from(["470.256.02", "525.60.12", "525.60.13", "535.54.02", "550.90.07", "580.82.07", "595.45"]),
        glibc=st.sampled_from(["2.17", "2.35"]),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.thorough
@settings(max_examples=examples(80), deadline=None)
@given(fleets)
def test_profiles_have_the_stack_of_their_machines(machines: list[Machine]) -> None:
    request, problem = posed(machines)
    every = SOLVER.solve(request, problem)
    fewer = SOLVER.solve(request, problem._replace(machines=profiles(machines, MATRIX.cuda)))
    assert (every is None) is (fewer is None)
    if every is not None and fewer is not None:
        assert [it.release for it in every.choices] == [it.release for it in fewer.choices]
        assert (every.toolkit, every.cudnn, every.python) == (fewer.toolkit, fewer.cudnn, fewer.python)


def partitions(count: int, most: int) -> Iterator[list[list[int]]]:
    """Every partition of so many machines into at most so many groups."""
    for places in product(range(most), repeat=count):
        groups = [[number for number, place in enumerate(places) if place == group] for group in range(most)]
        yield [group for group in groups if group]


def fewest_groups(request: Request, problem: Problem) -> int | None:
    """The same by trying every partition; None if some machine has no stack."""
    known: dict[tuple[int, ...], bool] = {}

    def has_stack(group: Sequence[int]) -> bool:
        key = tuple(group)
        if key not in known:
            machines = tuple(problem.machines[number] for number in group)
            known[key] = SOLVER.can_solve(request, problem._replace(machines=machines))
        return known[key]

    count = len(problem.machines)
    if not all(has_stack([number]) for number in range(count)):
        return None
    for most in range(1, count + 1):
        if any(all(map(has_stack, groups)) for groups in partitions(count, most)):
            return most
    return count


@pytest.mark.thorough
@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(st.sampled_from(sorted(GPUS)), min_size=2, max_size=5),
    st.sampled_from([("pytorch",), ("tensorflow",), ("jax",), ("tensorflow", "pytorch"), ("paddlepaddle",)]),
)
def test_no_split_is_smaller(gpus: list[str], frameworks: tuple[str, ...]) -> None:
    request, problem = posed([machine(gpu, GPUS[gpu]) for gpu in gpus], *frameworks)
    groups = smallest_split(request, problem, SOLVER)
    fewest = fewest_groups(request, problem)
    assert len(groups) == (fewest or 0)
    if fewest is not None:
        assert sorted(number for group in groups for number in group.numbers) == list(range(len(gpus)))
    for group in groups:
        here = problem._replace(machines=tuple(problem.machines[number] for number in group.numbers))
        assert group.solution == SOLVER.solve(request, here)


def test_a_machine_that_two_stacks_serve_gets_the_newer() -> None:
    request, problem = posed([machine(gpu, GPUS[gpu]) for gpu in ("3.7", "8.6", "12.0")])
    groups = smallest_split(request, problem, SOLVER)
    assert [group.numbers for group in groups] == [(1, 2), (0,)]
    newest, oldest = (group.solution.choices[0].release.version for group in groups)
    assert newest > oldest


@pytest.mark.thorough
def test_ten_thousand_machines_become_a_few_profiles() -> None:
    drivers = [
        f"{branch}.{patch}.{more:02d}"
        for branch in (525, 535, 550, 570)
        for patch in range(130, 230)
        for more in range(25)
    ]
    machines = [machine(gpu, driver, f"{gpu}-{driver}.json") for driver in drivers for gpu in ("7.5", "8.6", "9.0")][
        :10_000
    ]
    found = profiles(machines, MATRIX.cuda)
    assert sum(len(it.hosts) for it in found) == len(machines)
    assert len(found) <= 40
