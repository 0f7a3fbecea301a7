"""What the matrix lists as running on a machine is what the solver would choose from."""

from __future__ import annotations

import itertools

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.app.builds import Filters, find_builds
from envsolve.app.targets import target_of
from envsolve.errors import UnsolvableError
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.versions import DriverVersion
from envsolve.solve.solver import solve

GPUS = (("3.7",), ("6.1",), ("7.0",), ("8.6",), ("9.0",), ("12.0",), ("12.1",), ("6.1", "12.0"), ("8.0", "10.3"))
DRIVERS = (None, "450.80.02", "470.256.02", "535.183.01", "570.26", "580.65.06", "616")


def listed(matrix: Matrix, filters: Filters) -> list[Release]:
    try:
        return [build.release for build in find_builds(filters, matrix, {}).builds]
    except UnsolvableError:
        return []


@pytest.mark.parametrize("framework", ["jax", "pytorch", "tensorflow"])
@pytest.mark.parametrize("gpus", GPUS, ids=" ".join)
def test_the_newest_build_that_is_listed_is_the_one_that_is_solved_for(
    framework: str, gpus: tuple[str, ...], matrix: Matrix
) -> None:
    for driver, platform in itertools.product(DRIVERS, (Platform.LINUX_64, Platform.WIN_64)):
        version = None if driver is None else DriverVersion.parse(driver)
        asked = (FrameworkRequest(framework, SpecifierSet()),)
        request = Request(asked, gpus=gpus, driver=version, platform=platform, format="json")
        solution = solve(request, target_of(request, matrix, {}).problem, matrix)
        sources = tuple(source for source in Source if source is not Source.PYTORCH_CHANNEL)
        found = listed(matrix, Filters((framework,), gpus=gpus, driver=version, platforms=(platform,), sources=sources))
        newest = max((release.version for release in found), default=None)
        assert newest == (None if solution is None else solution.choices[0].release.version), (driver, platform)
        assert solution is None or solution.choices[0].release in found


@pytest.mark.parametrize("gpu", ["8.0", "8.6", "9.0", "12.0"])
def test_a_newer_driver_takes_no_build_away(gpu: str, matrix: Matrix) -> None:
    older: set[int] = set()
    for driver in filter(None, DRIVERS):
        newer = {id(it) for it in listed(matrix, Filters(gpus=(gpu,), driver=DriverVersion.parse(driver)))}
        assert older <= newer, driver
        older = newer
    assert older == {id(release) for release in listed(matrix, Filters(gpus=(gpu,)))}


@pytest.mark.parametrize("gpus", [gpus for gpus in GPUS if len(gpus) > 1], ids=" ".join)
def test_what_runs_on_several_gpus_runs_on_each(gpus: tuple[str, ...], matrix: Matrix) -> None:
    together = {id(release) for release in listed(matrix, Filters(gpus=gpus))}
    alone = [{id(release) for release in listed(matrix, Filters(gpus=(gpu,)))} for gpu in gpus]
    assert together
    assert together == set.intersection(*alone)
