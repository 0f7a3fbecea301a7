"""The policies on a matrix of a few rows, for differences between policies that the shipped one does not show."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.request import FrameworkRequest, LockedVersions, Policy, Request
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.resolve.solver import Solver
from tests.resolve.test_preferences import CUDA, made

NOTHING = LockedVersions()
THIRD = CUDA[CUDA.index("[[toolkit]]", 2) :].replace('"12.4"', '"12.5"').replace("525.60.13", "530.30.02")
LIFE = '[[architecture]]\ncapability = "8.0"\nname = "Ampere"\nfirst_cuda = "11.0"\nevidence = ["e"]\n'


def answer(matrix: Matrix, policy: Policy, locked: LockedVersions = NOTHING) -> Solution:
    """The answer for one 8.0 with an unknown driver."""
    frameworks = (FrameworkRequest("thing", SpecifierSet()),)
    machine = Machine(None, ((ComputeCapability(8, 0), ""),), None)
    problem = Problem(frameworks, Platform.LINUX_64, (machine,), cpu=False, python=None, cuda=None)
    solution = Solver(matrix).solve(Request(frameworks, prefer=policy, locked=locked), problem)
    assert solution is not None
    return solution


@pytest.mark.parametrize("cuda", ["12.4", "12.8"])
def test_the_locked_cuda_stays(tmp_path: Path, cuda: str) -> None:
    matrix = made(tmp_path, {"cuda_requires": ">=12.4,<13"})
    solution = answer(matrix, Policy.LOCKED, LockedVersions((("thing", "1.0", ""),), cuda=cuda))
    assert solution.toolkit is not None
    assert str(solution.toolkit.version) == cuda


@pytest.mark.parametrize("python", ["3.11", "3.12"])
def test_the_locked_python_stays(tmp_path: Path, python: str) -> None:
    matrix = made(tmp_path, {"pythons": ["3.11", "3.12"]})
    assert str(answer(matrix, Policy.LOCKED, LockedVersions((("thing", "1.0", ""),), python=python)).python) == python


@pytest.mark.parametrize("build", ["cuda124h1_0", "cuda128h1_0"])
def test_the_locked_conda_build_stays(tmp_path: Path, build: str) -> None:
    rows = [
        {"source": "conda-forge", "build": name, "cuda": cuda, "cuda_requires": f"=={cuda}"}
        for name, cuda in (("cuda124", "12.4"), ("cuda128", "12.8"))
    ]
    solution = answer(made(tmp_path, *rows), Policy.LOCKED, LockedVersions((("thing", "1.0", build),)))
    assert build.startswith(solution.choices[0].release.build)


@pytest.mark.parametrize("build", ["cuda12", "cuda13"])
def test_the_extra_of_a_locked_wheel_stays(tmp_path: Path, build: str) -> None:
    rows = [{"build": name} for name in ("cuda12", "cuda13")]
    solution = answer(made(tmp_path, *rows), Policy.LOCKED, LockedVersions((("thing", "1.0", build),)))
    assert solution.choices[0].release.build == build


def test_a_locked_version_stays_despite_a_newer_one(tmp_path: Path) -> None:
    matrix = made(tmp_path, {"version": "1.1"}, {})
    assert (
        str(answer(matrix, Policy.LOCKED, LockedVersions((("thing", "1.0", ""),))).choices[0].release.version) == "1.0"
    )
    assert str(answer(matrix, Policy.LOCKED).choices[0].release.version) == "1.1"


def test_the_build_with_the_oldest_driver_is_chosen_among_equally_wide_ones(tmp_path: Path) -> None:
    """The first runs from 520 on with 12.4, though it also admits 12.5, which takes 530; the second takes 525."""
    rows = (
        {"build": "from-520", "cuda_requires": ">=12.4,<12.8"},
        {"build": "from-525", "version": "1.1", "cuda": "12.8", "cuda_requires": "==12.8"},
    )
    matrix = made(tmp_path, *rows)
    path = tmp_path / "cuda.toml"
    text = path.read_text(encoding="utf-8")
    head, separator, last = text.rpartition("[[toolkit]]")
    path.write_text(head + separator + last.replace("525.60.13", "520.61.05") + THIRD + LIFE, encoding="utf-8")
    solution = answer(matrix, Policy.WIDEST_GPU)
    assert solution.choices[0].release.build == "from-520"
    assert solution.minimum_driver is not None
    assert str(solution.minimum_driver) == "520.61.05"
