"""Several frameworks in one environment have the versions found by combining every build with every other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Machine, Problem
from envsolve.model.versions import DriverVersion
from tests.resolve.reference import Shelf, best_together
from tests.resolve.test_grid import PLATFORMS, drivers, shipped, solver_of

TOGETHER = (
    ("tensorflow", "pytorch"),
    ("pytorch", "jax"),
    ("jax", "tensorflow"),
    ("cupy", "onnxruntime"),
    ("tensorflow", "paddlepaddle"),
    ("pytorch", "paddlepaddle"),  # a conda package beside a wheel that brings no CUDA
    ("tensorflow", "pytorch", "jax"),
)
CONDA = {Source.CONDA_FORGE: 0}
WHEELS = {Source.PYPI: 0, Source.PYTORCH: 0}
MIXED = CONDA | WHEELS
LEAST_ANSWERS = 50
FEW = TOGETHER[1], TOGETHER[3]
"""The fast suite checks these; the thorough one all."""
ALL = [
    pytest.param(names, id=" ".join(names), marks=[] if names in FEW else [pytest.mark.thorough]) for names in TOGETHER
]
Builds = tuple[Release, ...]


class Cell(NamedTuple):
    """One question: the builds for this GPU with this driver."""

    platform: Platform
    gpu: ComputeCapability
    driver: DriverVersion | None


def cells(every: int) -> Iterator[Cell]:
    """Each ``every``th driver branch for each GPU; the next GPU begins with another branch."""
    gpus = [row.capability for row in shipped().cuda.architectures]
    for platform in PLATFORMS:
        numbers = drivers(platform)
        for offset, gpu in enumerate(gpus):
            yield from (Cell(platform, gpu, driver) for driver in numbers[offset % every :: every])


@cache
def shelves(framework: str, platform: Platform) -> Mapping[Source, Shelf]:
    """The builds of a framework from each of the usual sources, where conda may provide what a wheel does not bring."""
    return {source: Shelf(shipped(), framework, platform, source) for source in MIXED}


@cache
def wheels(framework: str, platform: Platform) -> Mapping[Source, Shelf]:
    """The builds of a framework for pip alone."""
    return {source: Shelf(shipped(), framework, platform, source, loosely=True) for source in WHEELS}


def expected(
    names: tuple[str, ...],
    cell: Cell,
    sources: Mapping[Source, int],
    of: Callable[[str, Platform], Mapping[Source, Shelf]] = shelves,
) -> Builds | None:
    """The reference's result for these sources. A source with a higher rank counts before a newer version."""
    parts = None if cell.driver is None else cell.driver.parts
    offered = [of(name, cell.platform) for name in names]
    return best_together(offered, sources, cell.gpu, parts)


def anywhere(names: tuple[str, ...], cell: Cell) -> Builds | None:
    """The newest of conda-forge alone and of wheels alone; of both together only if neither has any."""
    alone = [found for found in (expected(names, cell, CONDA), expected(names, cell, WHEELS)) if found is not None]
    return max(alone, key=versions) if alone else expected(names, cell, MIXED)


def versions(builds: Builds) -> tuple[Version, ...]:
    """The order of sources."""
    return tuple(build.version for build in builds)


def differences(
    names: tuple[str, ...], every: int, right: Callable[[Cell], Builds | None], sources: tuple[Source, ...]
) -> list[str]:
    """The cells with two different answers, in words."""
    return [
        f"{cell.platform} {cell.gpu} {cell.driver}: {_labels(best)} is right, and the answer is {_labels(answer)}"
        for cell in cells(every)
        if (best := right(cell)) != (answer := answered(names, cell, sources))
    ]


def _labels(builds: Builds | None) -> str:
    return " with ".join(build.label for build in builds or ()) or "nothing"


def answered(names: tuple[str, ...], cell: Cell, sources: tuple[Source, ...]) -> Builds | None:
    """The solver's result."""
    frameworks = tuple(FrameworkRequest(name, SpecifierSet()) for name in names)
    machine = Machine(cell.driver, ((cell.gpu, ""),), None, windows_driver=cell.platform.is_windows)
    problem = Problem(frameworks, cell.platform, (machine,), cpu=False, python=None, cuda=None)
    is_for_pip = bool(sources) and all(it.is_wheel for it in sources)
    request = Request(frameworks, sources=sources, format="requirements" if is_for_pip else "environment")
    solver = solver_of(shipped())
    solution = solver.solve(request, problem) if sources else solver.newest(request, problem)
    return None if solution is None else tuple(choice.release for choice in solution.choices)


@pytest.mark.thorough
@pytest.mark.parametrize("names", ALL)
def test_several_frameworks_from_conda_forge_are_the_best_that_go_together(names: tuple[str, ...]) -> None:
    assert differences(names, 17, lambda cell: expected(names, cell, CONDA), (Source.CONDA_FORGE,)) == []


@pytest.mark.thorough
@pytest.mark.parametrize("names", ALL)
def test_several_frameworks_from_wheels_go_by_source_before_version(names: tuple[str, ...]) -> None:
    ranked = {Source.PYPI: 1, Source.PYTORCH: 0}
    assert differences(names, 17, lambda cell: expected(names, cell, ranked, wheels), tuple(ranked)) == []


@pytest.mark.thorough
@pytest.mark.parametrize("names", ALL)
def test_several_frameworks_are_mixed_only_without_a_common_source(names: tuple[str, ...]) -> None:
    assert differences(names, 23, lambda cell: anywhere(names, cell), ()) == []


@pytest.mark.thorough
def test_the_questions_have_answers_of_all_three_kinds() -> None:
    """Otherwise the comparisons above would compare nothing with nothing."""
    questions = [
        (names, cell) for names in (("cupy", "onnxruntime"), ("pytorch", "paddlepaddle")) for cell in cells(every=29)
    ]
    alone = [max((expected(*it, CONDA), expected(*it, WHEELS)), key=bool) for it in questions]
    assert len([found for found in alone if found]) >= LEAST_ANSWERS
    without = [it for it, found in zip(questions, alone, strict=True) if not found]
    mixed = [expected(*it, MIXED) for it in without]
    assert any(mixed)
    assert not all(mixed)


def test_every_framework_is_the_newest_compatible_with_those_before_it() -> None:
    """CuPy 14.1.1 has a build for 13, which fits ONNX Runtime 1.26.0, and one for 12, which R590 supports in full.

    The second comes first, and with it no ONNX Runtime after 1.24.4 holds code for Blackwell.
    """
    cell = Cell(Platform.WIN_64, ComputeCapability(10, 0), DriverVersion.parse("590"))
    answer = answered(("cupy", "onnxruntime"), cell, (Source.CONDA_FORGE,))
    assert answer is not None
    assert [str(version) for version in versions(answer)] == ["14.1.1", "1.26.0"]
