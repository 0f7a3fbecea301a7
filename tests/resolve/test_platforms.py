"""Several platforms at once: the same releases if possible, and each platform's own build of them."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.matrix import Matrix, find_matrix
from envsolve.matrix.tables import FrameworkTable
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, Request, parse_framework
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.model.versions import DriverVersion
from envsolve.resolve.platforms import Part, agreed, differing
from envsolve.resolve.solver import Solver

SOLVER = Solver(Matrix(find_matrix()))


def part(platform: Platform, *frameworks: str, gpu: str | None = "8.6", driver: str | None = None) -> Part:
    requested = tuple(FrameworkRequest(*parse_framework(text)) for text in frameworks)
    gpus = () if gpu is None else ((ComputeCapability.parse(gpu), ""),)
    version = None if driver is None else DriverVersion.parse(driver)
    machine = Machine(version, gpus, None, windows_driver=platform.is_windows)
    problem = Problem(requested, platform, (machine,), cpu=gpu is None, python=None, cuda=None)
    return Request(requested), problem


def versions(solutions: list[Solution], number: int = 0) -> list[str]:
    return [str(solution.choices[number].release.version) for solution in solutions]


def test_the_newest_common_version_is_used_on_all_platforms() -> None:
    alone = SOLVER.solve(*part(Platform.LINUX_64, "tensorflow"))
    both = agreed([part(Platform.LINUX_64, "tensorflow"), part(Platform.WIN_64, "tensorflow")], SOLVER)
    assert alone is not None
    assert alone.choices[0].release.version > both[0].choices[0].release.version
    assert versions(both) == ["2.10.1", "2.10.1"]
    assert [solution.problem.platform for solution in both] == [Platform.LINUX_64, Platform.WIN_64]
    assert len({solution.python for solution in both}) == 1
    assert list(differing(both)) == []


def test_an_older_driver_on_one_platform_limits_the_others() -> None:
    linux, windows = part(Platform.LINUX_64, "pytorch"), part(Platform.WIN_64, "pytorch", driver="472.50")
    both = agreed([linux, windows], SOLVER)
    assert versions(both)[0] == versions(both)[1]
    assert [str(solution.toolkit.version.major if solution.toolkit else None) for solution in both][1] == "11"


def test_without_a_common_version_each_platform_has_its_own_with_a_note() -> None:
    linux = part(Platform.LINUX_64, "tensorflow", gpu="12.0", driver="580.65.06")
    windows = part(Platform.WIN_64, "tensorflow", gpu="8.6")
    both = agreed([linux, windows], SOLVER)
    assert versions(both)[0] != versions(both)[1]
    (note,) = differing(both)
    assert "on linux-64" in note.text
    assert "2.10.1 on win-64" in note.text


def test_frameworks_agree_one_after_the_other() -> None:
    names = ("pytorch", "jax")
    linux, arm = part(Platform.LINUX_64, *names), part(Platform.LINUX_AARCH64, *names, gpu="9.0")
    both = agreed([linux, arm], SOLVER)
    assert versions(both, 0)[0] == versions(both, 0)[1]
    assert versions(both, 1)[0] == versions(both, 1)[1]


@pytest.mark.parametrize("platforms", [(Platform.LINUX_64, Platform.OSX_ARM64, Platform.WIN_64)])
def test_cpu_stacks_also_agree_on_platforms_without_cuda(platforms: tuple[Platform, ...]) -> None:
    found = agreed([part(platform, "pytorch", gpu=None) for platform in platforms], SOLVER)
    assert len(set(versions(found))) == 1
    assert all(solution.toolkit is None for solution in found)


def test_the_request_still_applies() -> None:
    requirement = "pytorch<2.10"
    both = agreed([part(Platform.LINUX_64, requirement), part(Platform.WIN_64, requirement)], SOLVER)
    assert all(SpecifierSet("<2.10").contains(version) for version in versions(both))


@pytest.mark.parametrize("frameworks", [("pytorch",), ("jax", "pytorch"), ("tensorflow<2.18",)])
def test_the_python_is_the_newest_of_all_platforms(frameworks: tuple[str, ...]) -> None:
    parts = [part(platform, *frameworks, gpu=None) for platform in (Platform.LINUX_64, Platform.WIN_64)]
    found = agreed(parts, SOLVER)
    (python,) = {solution.python for solution in found}
    for minor in range(python.minor + 1, 16):
        pins = tuple(
            FrameworkRequest(it.release.framework, SpecifierSet(f"=={it.release.version}")) for it in found[0].choices
        )
        newer = [
            (request, problem._replace(frameworks=pins, python=SpecifierSet(f"==3.{minor}.*")))
            for request, problem in parts
        ]
        assert not all(SOLVER.can_solve(*it) for it in newer), minor


@pytest.mark.thorough
def test_conda_packages_for_all_platforms_are_preferred_to_newer_wheels_for_some() -> None:
    there = {Platform.LINUX_64: ("2.9.1", "2.11.0"), Platform.WIN_64: ("2.9.1", "2.10.0")}

    def narrowed(table: FrameworkTable) -> FrameworkTable:
        releases = (it for it in table.releases if it.source.is_wheel or str(it.version) in there[it.platform])
        return table._replace(releases=tuple(releases))

    parts = [part(platform, "pytorch") for platform in there]
    parts = [(request._replace(format="environment"), problem) for request, problem in parts]
    both = agreed(parts, Solver(Matrix(find_matrix()), narrowed))
    assert versions(both) == ["2.9.1", "2.9.1"]
    assert {it.choices[0].release.source for it in both} == {Source.CONDA_FORGE}
