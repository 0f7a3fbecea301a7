"""Notes about newer releases are true: another source has them, or they only need a newer driver."""

from __future__ import annotations

import json
import re

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.matrix import Matrix, find_matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.model.versions import DriverVersion
from envsolve.resolve.solver import Solver
from tests.conftest import Envsolve

MATRIX = Matrix(find_matrix())
SOLVER = Solver(MATRIX)
WAITS = re.compile(r"a newer (\S+), (\S+), needs NVIDIA driver (\S+) or newer")


FAST_GPUS = {
    "tensorflow": ("6.1", "9.0"),
    "pytorch": ("3.7", "8.6", "12.0"),
    "jax": ("7.5", "12.0"),
    "cupy": ("3.7", "9.0"),
    "onnxruntime": ("8.6",),
}
"""The part of the grid of frameworks and GPUs that the fast suite checks; the thorough one checks all."""


def question(framework: str, gpu: str, driver: DriverVersion | None, version: str = "") -> tuple[Request, Problem]:
    machine = Machine(driver, ((ComputeCapability.parse(gpu), ""),), None)
    frameworks = (FrameworkRequest(framework, SpecifierSet(version)),)
    problem = Problem(frameworks, Platform.LINUX_64, (machine,), cpu=False, python=None, cuda=None)
    return Request(frameworks, format="requirements"), problem


def waiting(solution: Solution) -> list[tuple[str, str]]:
    """The noted releases that need a newer driver, and that driver."""
    return [(match[2], match[3]) for note in solution.notes if (match := WAITS.fullmatch(note.text))]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("framework", "gpu"),
    [
        pytest.param(framework, gpu, marks=[] if gpu in FAST_GPUS[framework] else [pytest.mark.thorough])
        for gpu in ("3.7", "6.1", "7.5", "8.6", "9.0", "12.0")
        for framework in FAST_GPUS
    ],
)
def test_a_release_that_needs_a_driver_fits_from_exactly_that_driver(framework: str, gpu: str) -> None:
    drivers = sorted({branch.first(windows=False) for branch in MATRIX.cuda.branches}, key=lambda driver: driver.parts)
    checked = 0
    for driver in drivers:
        solution = SOLVER.solve(*question(framework, gpu, driver))
        for version, needed in waiting(solution) if solution is not None else ():
            checked += 1
            assert SOLVER.solve(*question(framework, gpu, driver, f"=={version}")) is None
            assert SOLVER.solve(*question(framework, gpu, DriverVersion.parse(needed), f"=={version}")) is not None
            older = DriverVersion.parse(f"{int(needed.partition('.')[0]) - 1}.99")
            assert SOLVER.solve(*question(framework, gpu, older, f"=={version}")) is None
    assert checked or (framework, gpu) != ("pytorch", "8.6")


def test_no_release_needs_a_driver_that_dropped_the_gpu() -> None:
    solution = SOLVER.solve(*question("pytorch", "6.1", DriverVersion.parse("580.65.06")))
    assert solution is not None
    assert waiting(solution) == []


def test_no_driver_is_suggested_if_the_driver_is_unknown() -> None:
    solution = SOLVER.solve(*question("pytorch", "8.6", None))
    assert solution is not None
    assert waiting(solution) == []


def test_the_note_appears_once(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "12.0", "--driver", "570.86.10")
    assert result.err.count("note: a newer pytorch, 2.15.0, needs NVIDIA driver 580.65.06 or newer\n") == 1


def test_a_release_available_from_another_source_needs_no_driver(envsolve: Envsolve) -> None:
    result = envsolve("-f", "jax", "--gpu", "8.0", "--driver", "550.54.15")
    assert "needs NVIDIA driver" not in result.err
    assert f"--source {Source.PYPI} to choose it" in result.err


def test_a_suggested_driver_still_supports_the_gpu() -> None:
    """The last branch of Pascal is R580, the next is R590: CUDA 13 needs R580, which would still support Pascal."""
    old, new = DriverVersion.parse("470.256.02"), DriverVersion.parse("570.26")
    waits = SOLVER.solve(*question("pytorch", "6.1", old))
    assert waits is not None
    assert waiting(waits) == [("2.14.1", "525.60.13")]
    done = SOLVER.solve(*question("pytorch", "6.1", new))
    assert done is not None
    assert waiting(done) == []


def test_a_jetson_gets_its_driver_with_jetpack(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "8.7", "--driver", "540.3.0", "--platform", "linux-aarch64")
    assert "needs NVIDIA driver" not in result.err


PYTHON = re.compile(
    r"a newer \S+, (\S+), needs (?:NVIDIA driver (\S+) or newer and )?Python (\S+)( or \S+|, .+ or \S+)?, "
    "which --python excludes"
)


@pytest.mark.parametrize(
    ("framework", "python", "driver"),
    [
        ("pytorch", "==3.9.*", None),
        ("pytorch", "==3.8.*", "470.82.01"),
        ("jax", "<3.11", "535.54.03"),
        ("tensorflow", "==3.8.*", "580.65.06"),
    ],
)
def test_a_release_that_needs_another_python_fits_with_it(framework: str, python: str, driver: str | None) -> None:
    known = None if driver is None else DriverVersion.parse(driver)

    def solved(version: str, driver: DriverVersion | None, python: str) -> Solution | None:
        request, problem = question(framework, "8.6", driver, version)
        limit = SpecifierSet(python)
        return SOLVER.solve(request._replace(python=limit), problem._replace(python=limit))

    solution = solved("", known, python)
    assert solution is not None
    (match,) = filter(None, (PYTHON.fullmatch(it.text) for it in solution.notes))
    version, newer = f"=={match[1]}", None if match[2] is None else DriverVersion.parse(match[2])
    assert solved(version, known, python) is None
    assert solved(version, newer or known, f"=={match[3]}.*") is not None
    assert newer is None or solved(version, known, f"=={match[3]}.*") is None


@pytest.mark.parametrize("python", ["3.9", "3.10"])
def test_several_frameworks_may_be_newer_on_another_python(python: str, envsolve: Envsolve) -> None:
    frameworks = ("-f", "pytorch", "-f", "jax", "--gpu", "8.6")
    result = envsolve(*frameworks, "--python", python, "--format", "json")
    notes = [it["fields"] for it in json.loads(result.out)["notes"] if it["code"] == "newer-needs-python"]
    assert "jax" in [it["framework"] for it in notes]
    for it in notes:
        newer = (
            f"{it['framework']}=={it['version']}",
            *(name for name in ("pytorch", "jax") if name != it["framework"]),
        )
        words = [word for name in newer for word in ("-f", name)]
        assert envsolve(*words, "--gpu", "8.6", "--python", python).code == 1
        assert envsolve(*words, "--gpu", "8.6", "--python", it["pythons"]).code == 0
    assert "another Python" not in envsolve(*frameworks).err


def test_a_python_that_was_not_requested_gets_no_note() -> None:
    request, problem = question("pytorch", "8.6", DriverVersion.parse("580.65.06"))
    solution = SOLVER.solve(request, problem._replace(python=SpecifierSet("==3.9.*")))
    assert solution is not None
    assert solution.notes == ()
