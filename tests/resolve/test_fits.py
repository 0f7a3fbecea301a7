"""The builds that the matrix lists for a machine are those that the solver would choose from."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.app.request.targets import target_of
from envsolve.app.solve.builds import Filters, find_builds
from envsolve.errors import UnsolvableError
from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Machine, Problem
from envsolve.model.versions import DriverVersion
from envsolve.resolve.catalogue import Catalogue
from envsolve.resolve.fits import runnable
from envsolve.resolve.solver import Solver
from tests.matrix.tiny import tiny_matrix

GPUS = (("3.7",), ("6.1",), ("7.0",), ("8.6",), ("9.0",), ("12.0",), ("12.1",), ("6.1", "12.0"), ("8.0", "10.3"))
FRAMEWORKS = ("jax", "pytorch", "tensorflow")
"""The fast suite tests each GPU with one of them, the thorough one with all."""
DRIVERS = (None, "450.80.02", "470.256.02", "535.183.01", "570.26", "580.65.06", "616")


def listed(matrix: Matrix, filters: Filters) -> list[Release]:
    try:
        return [build.release for build in find_builds(filters, matrix, {}).builds]
    except UnsolvableError:
        return []


@pytest.fixture(scope="module")
def solver(matrix: Matrix) -> Solver:
    """One solver for all questions, with its caches."""
    return Solver(matrix)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("framework", "gpus"),
    [
        pytest.param(
            framework,
            gpus,
            id=f"{framework} {' '.join(gpus)}",
            marks=[] if (row + column) % len(FRAMEWORKS) == 0 else [pytest.mark.thorough],
        )
        for row, gpus in enumerate(GPUS)
        for column, framework in enumerate(FRAMEWORKS)
    ],
)
def test_the_newest_listed_build_is_the_solved_one(
    framework: str, gpus: tuple[str, ...], matrix: Matrix, solver: Solver
) -> None:
    for driver, platform in itertools.product(DRIVERS, (Platform.LINUX_64, Platform.WIN_64)):
        version = None if driver is None else DriverVersion.parse(driver)
        requested = (FrameworkRequest(framework, SpecifierSet()),)
        request = Request(requested, gpus=gpus, driver=version, platforms=(platform,))
        solution = solver.newest(request, target_of(request, matrix, {}).problem)
        sources = tuple(source for source in Source if source is not Source.PYTORCH_CHANNEL)
        found = listed(matrix, Filters((framework,), gpus=gpus, driver=version, platforms=(platform,), sources=sources))
        newest = max((release.version for release in found), default=None)
        assert newest == (None if solution is None else solution.choices[0].release.version), (driver, platform)
        assert solution is None or solution.choices[0].release in found


@pytest.mark.thorough
@pytest.mark.parametrize(
    "gpu", ["8.6", *(pytest.param(it, marks=pytest.mark.thorough) for it in ("8.0", "9.0", "12.0"))]
)
def test_a_newer_driver_excludes_no_build(gpu: str, matrix: Matrix) -> None:
    older: set[int] = set()
    for driver in filter(None, DRIVERS):
        newer = {id(it) for it in listed(matrix, Filters(gpus=(gpu,), driver=DriverVersion.parse(driver)))}
        assert older <= newer, driver
        older = newer
    assert older == {id(release) for release in listed(matrix, Filters(gpus=(gpu,)))}


@pytest.mark.thorough
@pytest.mark.parametrize("gpus", [gpus for gpus in GPUS if len(gpus) > 1], ids=" ".join)
def test_a_build_for_several_gpus_runs_on_each(gpus: tuple[str, ...], matrix: Matrix) -> None:
    together = {id(release) for release in listed(matrix, Filters(gpus=gpus))}
    alone = [{id(release) for release in listed(matrix, Filters(gpus=(gpu,)))} for gpu in gpus]
    assert together
    assert together == set.intersection(*alone)


AMPERE = 'capability = "8.0"\nname = "Ampere"\nfirst_cuda = "11.0"\nfirst_branch = 450\n'
PTX_ONLY = ('sass = ["8.0", "9.0", "12.0f"]\nptx = ["12.0"]', 'sass = ["9.0"]\nptx = ["7.5"]')


def on_ampere(directory: Path, last_branch: int, driver: str | None = None, *, ptx_only: bool = False) -> list[str]:
    """The tiny builds that are listed for an 8.0 with the last driver branch ``last_branch``."""
    matrix = tiny_matrix(directory, "cuda", AMPERE, f"{AMPERE}last_branch = {last_branch}\n")
    if ptx_only:
        path = directory / "thing.toml"
        path.write_text(path.read_text(encoding="utf-8").replace(*PTX_ONLY), encoding="utf-8")
    version = None if driver is None else DriverVersion.parse(driver)
    filters = Filters(("thing",), gpus=("8.0",), driver=version, platforms=(Platform.LINUX_64,))
    return [str(release.version) for release in listed(matrix, filters)]


def test_a_driver_beyond_the_life_of_the_gpu_runs_nothing_on_it(tmp_path: Path) -> None:
    assert on_ampere(tmp_path, 520, "525.60.13") == ["2.0"]
    assert on_ampere(tmp_path, 520, "575.51.03") == []


def test_a_driver_that_does_not_know_the_gpu_yet_runs_nothing_on_it(tmp_path: Path) -> None:
    newer = AMPERE.replace("450", "530")
    matrix = tiny_matrix(tmp_path, "cuda", AMPERE, newer)
    drivers = [DriverVersion.parse(text) for text in ("525.60.13", "530.30.02")]
    found = [listed(matrix, Filters(("thing",), gpus=("8.0",), driver=it)) for it in drivers]
    assert [len(releases) for releases in found] == [0, 1]


def test_a_build_that_needs_a_driver_after_the_last_one_of_the_gpu_does_not_run_on_it(tmp_path: Path) -> None:
    """No driver is given here, so that only build and GPU exclude each other."""
    assert on_ampere(tmp_path, 520) == ["2.0"]
    assert on_ampere(tmp_path, 575, ptx_only=True) == ["2.0"]
    assert on_ampere(tmp_path, 520, ptx_only=True) == []


@pytest.mark.parametrize(
    ("gpu", "windows_driver", "runs"), [("5.2", False, True), ("5.2", True, False), ("6.1", True, True)]
)
def test_wsl2_passes_no_gpu_before_pascal_through(gpu: str, windows_driver: bool, runs: bool, matrix: Matrix) -> None:
    table = matrix.framework("pytorch", Platform.LINUX_64)
    machine = Machine(None, ((ComputeCapability.parse(gpu), ""),), None, windows_driver=windows_driver)
    requested = (FrameworkRequest("pytorch", SpecifierSet()),)
    problem = Problem(requested, Platform.LINUX_64, (machine,), cpu=False, python=None, cuda=None)
    assert bool(runnable(problem, Catalogue.of(matrix.cuda, matrix.cudnn, {"pytorch": table}))) is runs
