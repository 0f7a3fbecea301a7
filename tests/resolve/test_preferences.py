"""Of several stacks that all run, the better one: each line of the documented order, on a matrix of a few rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.model.versions import DriverVersion, LibcVersion
from envsolve.resolve.solver import Solver

HEAD = 'schema_version = 1\nupdated = "2026-11-20"\n'
EVIDENCE = '[evidence.e]\nkind = "wheel"\nreference = "r"\nseen = "2026-11-20"\n'
CUDA = """
[[toolkit]]
version = "12.8"
linux_floor = "525.60.13"
linux_full = "570.26"
windows_floor = "528.33"
windows_full = "570.65"
compiles_for = ["7.0", "8.0", "9.0", "12.0"]
evidence = ["e"]
[[toolkit]]
version = "12.4"
linux_floor = "525.60.13"
linux_full = "550.54.14"
windows_floor = "528.33"
windows_full = "551.61"
compiles_for = ["7.0", "8.0", "9.0"]
evidence = ["e"]
"""
CUDNN = """
[[release]]
version = "9.10.2.21"
cuda_major = 12
min_capability = "5.0"
max_capability = "12.0"
pypi = "nvidia-cudnn-cu12"
conda_forge = ["linux-64"]
glibc_conda_forge = "2.28"
evidence = ["e"]
[[release]]
version = "9.9.0.52"
cuda_major = 12
min_capability = "5.0"
max_capability = "12.0"
conda_forge = ["linux-64"]
evidence = ["e"]
"""
DEFAULTS = {
    "version": "1.0",
    "source": "pypi",
    "platform": "linux-64",
    "build": "b",
    "package": "thing",
    "pythons": ["3.12"],
    "cuda": "12.4",
    "cuda_requires": "==12.4",
    "cuda_libraries": "dependencies",
    "cudnn_requires": ">=9,<10",
    "sass": ["8.0"],
    "evidence": ["e"],
}


def made(directory: Path, *rows: dict[str, Any], known_bad: str = "") -> Matrix:
    """A matrix of one framework with these rows, each changing the defaults."""
    text = HEAD + 'framework = "thing"\n' + EVIDENCE + known_bad
    for row in rows:
        text += "[[release]]\n" + "".join(f"{key} = {value!r}\n" for key, value in (DEFAULTS | row).items())
    (directory / "thing.toml").write_text(text, encoding="utf-8")
    (directory / "cuda.toml").write_text(HEAD + EVIDENCE + CUDA, encoding="utf-8")
    (directory / "cudnn.toml").write_text(HEAD + EVIDENCE + CUDNN, encoding="utf-8")
    return Matrix(directory)


def answer(
    matrix: Matrix,
    driver: str | None = None,
    gpu: str = "8.0",
    *,
    wanted: tuple[Source, ...] = (),
    glibc: str | None = None,
    windows: bool = False,
    platform: Platform = Platform.LINUX_64,
) -> Solution | None:
    """The answer for one machine."""
    machine = Machine(
        None if driver is None else DriverVersion.parse(driver),
        ((ComputeCapability.parse(gpu), ""),),
        None if glibc is None else LibcVersion.parse(glibc),
        windows_driver=windows,
    )
    requested = (FrameworkRequest("thing", SpecifierSet()),)
    problem = Problem(frameworks=requested, platform=platform, machines=(machine,), cpu=False, python=None, cuda=None)
    return Solver(matrix).solve(Request(frameworks=requested, sources=wanted), problem)


def chosen(solution: Solution | None) -> str:
    assert solution is not None
    return solution.choices[0].release.build


NEWER_CUDA = {"cuda": "12.8", "cuda_requires": "==12.8"}


def test_the_newest_release_comes_first(tmp_path: Path) -> None:
    assert chosen(answer(made(tmp_path, {"build": "old"}, {"build": "new", "version": "1.1"}))) == "new"


def test_machine_code_comes_before_ptx_of_a_newer_cuda(tmp_path: Path) -> None:
    ptx = {"build": "ptx", "sass": ["7.0"], "ptx": ["7.0"], **NEWER_CUDA}
    assert chosen(answer(made(tmp_path, ptx, {"build": "sass"}), "570.26")) == "sass"


def test_a_fully_supported_cuda_comes_before_a_newer_one(tmp_path: Path) -> None:
    matrix = made(tmp_path, {"build": "newer", **NEWER_CUDA}, {"build": "full"})
    assert chosen(answer(matrix, "550.54.14")) == "full"
    assert chosen(answer(matrix, "570.26")) == "newer"
    assert chosen(answer(matrix)) == "newer"


def test_full_support_on_windows_has_its_own_number(tmp_path: Path) -> None:
    matrix = made(tmp_path, {"build": "newer", **NEWER_CUDA}, {"build": "full"})
    assert chosen(answer(matrix, "570.30", windows=True)) == "full"


def test_the_default_index_comes_before_pytorchs_own(tmp_path: Path) -> None:
    rows = ({"build": "a", "source": "pytorch"}, {"build": "b", "source": "pypi"})
    assert chosen(answer(made(tmp_path, *rows))) == "b"


def test_more_pythons_come_before_fewer(tmp_path: Path) -> None:
    rows = ({"build": "a"}, {"build": "b", "pythons": ["3.12", "3.13"]})
    assert chosen(answer(made(tmp_path, *rows))) == "b"


def test_a_preferred_source_comes_before_a_newer_release(tmp_path: Path) -> None:
    rows = ({"build": "old", "source": "pytorch"}, {"build": "new", "version": "1.1"})
    assert chosen(answer(made(tmp_path, *rows), wanted=(Source.PYTORCH, Source.PYPI))) == "old"


@pytest.mark.parametrize(
    ("driver", "gpu", "toolkit"),
    [
        ("550.54.14", "8.0", "12.4"),  # supported in full
        ("570.26", "8.0", "12.4"),  # both are: the one it was built with
        (None, "12.0", "12.8"),  # the one whose libraries hold code for the GPU
    ],
)
def test_the_toolkit_supports_the_gpus_then_the_driver_then_the_build(
    tmp_path: Path, driver: str | None, gpu: str, toolkit: str
) -> None:
    rows = {"cuda_requires": ">=12.4,<13", "sass": ["8.0", "9.0"], "ptx": ["9.0"]}
    solution = answer(made(tmp_path, rows), driver, gpu)
    assert solution is not None
    assert str(solution.toolkit.version if solution.toolkit else None) == toolkit


def test_the_newest_toolkit_is_chosen_if_none_has_builds(tmp_path: Path) -> None:
    solution = answer(made(tmp_path, {"cuda_requires": ">=12.5,<13"}))
    assert solution is not None
    assert str(solution.toolkit.version if solution.toolkit else None) == "12.8"


@pytest.mark.parametrize(
    ("driver", "windows", "fits"),
    [
        ("525.60.13", False, False),  # at the floor, but PTX needs full support
        ("550.54.13", False, False),
        ("550.54.14", False, True),
        ("551.60", True, False),
        ("551.61", True, True),
    ],
)
def test_ptx_needs_the_driver_that_supports_its_toolkit_in_full(
    tmp_path: Path, driver: str, windows: bool, fits: bool
) -> None:
    matrix = made(tmp_path, {"sass": ["7.0"], "ptx": ["7.0"]})
    assert (answer(matrix, driver, windows=windows) is not None) is fits


def test_machine_code_runs_from_the_driver_floor(tmp_path: Path) -> None:
    matrix = made(tmp_path, {})
    assert answer(matrix, "525.60.13") is not None
    assert answer(matrix, "525.60.12") is None
    assert answer(matrix, "526.00", windows=True) is None


def test_the_newest_ptx_counts(tmp_path: Path) -> None:
    solution = answer(made(tmp_path, {"sass": ["7.0"], "ptx": ["7.0", "8.0"]}), "570.26", "9.0")
    assert solution is not None
    assert dict(solution.choices[0].runs_as) == {ComputeCapability(9, 0): "compute_80"}


def test_a_toolkit_supports_no_gpu_that_its_compiler_dropped(tmp_path: Path) -> None:
    matrix = made(tmp_path, {"sass": ["6.0", "7.0"]})
    assert answer(matrix, "570.26", "6.0") is None
    assert answer(matrix, "570.26", "7.0") is not None


@pytest.mark.parametrize(("glibc", "cudnn"), [("2.28", "9.10.2.21"), ("2.17", "9.9.0.52")])
def test_cudnn_from_conda_is_bounded_by_the_c_library(tmp_path: Path, glibc: str, cudnn: str) -> None:
    solution = answer(made(tmp_path, {"source": "conda-forge"}), glibc=glibc)
    assert solution is not None
    assert str(solution.cudnn.version if solution.cudnn else None) == cudnn


def test_cudnn_from_the_python_index_is_not(tmp_path: Path) -> None:
    solution = answer(made(tmp_path, {}), glibc="2.17")
    assert solution is not None
    assert str(solution.cudnn.version if solution.cudnn else None) == "9.10.2.21"


@pytest.mark.parametrize(
    ("selection", "fits"),
    [
        ('platforms = ["win-64"]', True),
        ('platforms = ["linux-64"]', False),
        ('sources = ["conda-forge"]', True),
        ('builds = ["other"]', True),
        ('capabilities = ["9.0"]', True),
        ('capabilities = ["8.0"]', False),
        ("", False),
    ],
)
def test_a_known_bad_build_is_refused_on_its_platforms(tmp_path: Path, selection: str, fits: bool) -> None:
    bad = f'[[known_bad]]\nversions = "==1.0"\nreason = "it breaks."\nevidence = ["e"]\n{selection}\n'
    assert (answer(made(tmp_path, {}, known_bad=bad)) is not None) is fits
