"""The outcomes of the site equal those of the command line, for every machine, not only for the sampled ones."""

from __future__ import annotations

import random

import pytest

from envsolve.app.request.command import command_of
from envsolve.app.solve.solving import solve_request
from envsolve.errors import UnsolvableError
from envsolve.matrix import Matrix
from envsolve.model.host import ASSUMED_GLIBC, Platform
from envsolve.model.versions import DriverVersion
from envsolve.resolve.solver import Solver
from envsolve.site.answers import PatientSolver, Query, Refusal, Stack, by_driver, request_for
from envsolve.site.machines import DRIVER, GpuKind, all_driver_steps, driver_steps, gpu_kinds

CONDA, PIP = ("environment", "pixi"), ("requirements",)


def kind_of(product: str, matrix: Matrix) -> GpuKind:
    return next(kind for kind in gpu_kinds(matrix)[0] if product in kind.products)


def query_for(matrix: Matrix, *frameworks: str, formats: tuple[str, ...] = CONDA) -> Query:
    return Query(matrix, PatientSolver(matrix), frameworks, Platform.LINUX_64, formats)


def filled(text: str, gpu: str, driver: str) -> str:
    return text.replace("@gpu@", gpu).replace(DRIVER, driver)


@pytest.mark.thorough
@pytest.mark.parametrize("formats", [CONDA, PIP], ids=["conda", "pip"])
@pytest.mark.parametrize("product", ["NVIDIA GeForce RTX 3090", "NVIDIA A10", "Tesla K80"])
def test_every_driver_has_the_outcome_of_the_previous_step(
    product: str, formats: tuple[str, ...], matrix: Matrix
) -> None:
    query, (kinds, _) = query_for(matrix, "tensorflow", formats=formats), gpu_kinds(matrix)
    kind, steps = kind_of(product, matrix), all_driver_steps(kinds, matrix, Platform.LINUX_64)
    found = [outcome for count, outcome in by_driver(query, kind, steps) for _ in range(count)]
    drawn = random.Random(3)  # noqa: S311

    for _ in range(25):
        branch = drawn.choice(matrix.cuda.branches).branch
        driver = DriverVersion((branch, drawn.randint(0, 130), drawn.randint(0, 20)), DRIVER)
        step = sum(driver.parts >= it for it in steps) - 1
        assert query.outcome(kind, driver) == found[step], driver.parts


@pytest.mark.thorough
def test_a_stack_has_the_file_and_notes_of_the_command_line(matrix: Matrix) -> None:
    query = query_for(matrix, "jax", "pytorch")
    drawn = random.Random(2)  # noqa: S311
    for product in ("NVIDIA GeForce RTX 3080", "Quadro GP100", "Quadro GV100"):
        driver = DriverVersion.parse(drawn.choice(("535.161.07", "560.35.03", "580")))
        outcome = query.outcome(kind_of(product, matrix), driver._replace(text=DRIVER))
        assert isinstance(outcome, Stack)

        for format_name, text in outcome.files:
            request = request_for(query.frameworks, query.platform, product, driver, format_name)
            solved = solve_request(request, matrix, {})
            expected = filled(text.replace("@command@", command_of(request)), product, str(driver))
            assert solved.texts == ((Platform.LINUX_64, expected),)
            assert [it.text for it in solved.notes] == [filled(it, product, str(driver)) for it in outcome.notes]
            assert [it.text for it in solved.because] == [filled(it, product, str(driver)) for it, _ in outcome.because]


def test_without_a_gpu_the_answer_is_for_the_c_library_in_the_command(matrix: Matrix) -> None:
    query = query_for(matrix, "jax", "pytorch")

    outcome = query.outcome(None, None)

    assert isinstance(outcome, Stack)
    for format_name, text in outcome.files:
        request = request_for(query.frameworks, query.platform, "none", None, format_name)
        assert f"--glibc {ASSUMED_GLIBC}" in command_of(request)
        solved = solve_request(request, matrix, {})
        assert solved.texts == ((Platform.LINUX_64, text.replace("@command@", command_of(request))),)


def test_a_refusal_has_the_conflict_and_suggestions_of_the_command_line(matrix: Matrix) -> None:
    query, product = query_for(matrix, "pytorch"), "NVIDIA GeForce RTX 5080"
    driver = DriverVersion.parse("550.54.14")

    outcome = query.outcome(kind_of(product, matrix), driver._replace(text=DRIVER))

    assert isinstance(outcome, Refusal)
    with pytest.raises(UnsolvableError) as error:
        solve_request(request_for(query.frameworks, query.platform, product, driver, "environment"), matrix, {})
    assert filled(outcome.message, product, str(driver)) == error.value.message
    assert [filled(it, product, str(driver)) for it, _ in outcome.because] == [
        it.requirement for it in error.value.conflict
    ]
    assert [(filled(it.text, product, ""), filled(it.command, product, "")) for it in outcome.ways] == [
        (it.text, it.command or "") for it in error.value.hints
    ]


def test_a_suggestion_that_the_selector_can_show_has_its_state(matrix: Matrix) -> None:
    query = query_for(matrix, "pytorch")

    outcome = query.outcome(kind_of("NVIDIA GeForce RTX 5080", matrix), DriverVersion((550, 54, 14), DRIVER))

    assert isinstance(outcome, Refusal)
    states = [way.state for way in outcome.ways]
    assert "framework=pytorch&driver=570.26&gpu=@gpu@&platform=linux-64" in states


@pytest.mark.thorough
def test_a_solver_with_a_memory_agrees_with_one_without(matrix: Matrix) -> None:
    query, kind = query_for(matrix, "cupy", "pytorch"), kind_of("Tesla K80", matrix)
    steps = [DriverVersion(it, DRIVER) for it in driver_steps(kind, matrix, Platform.LINUX_64)[::7]]
    for frameworks in (("cupy",), ("pytorch", "tensorflow"), ("cupy", "pytorch", "tensorflow")):
        for step in steps:
            query._replace(frameworks=frameworks).outcome(kind, step)
    remembered = [query.outcome(kind, step) for step in steps]

    fresh = [query._replace(solver=Solver(matrix)).outcome(kind, step) for step in steps]

    assert remembered == fresh
