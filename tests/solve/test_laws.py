"""Laws that hold for every answer, over random machines and requests drawn from the real matrix."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from envsolve.matrix import Matrix, find_matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import CudaLibraries, Source
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.model.versions import DriverVersion, LibcVersion
from envsolve.solve.solver import Solver

MATRIX = Matrix(find_matrix())
SOLVER = Solver(MATRIX)
DESKTOP = [life.capability for life in MATRIX.cuda.architectures if life.last_branch or life.first_branch]
DRIVERS = sorted(
    {
        toolkit.linux_full
        for toolkit in MATRIX.cuda.toolkits
        if toolkit.linux_full and len(toolkit.linux_full.parts) > 1
    },
    key=lambda driver: driver.parts,
)

platforms = st.sampled_from([Platform.LINUX_64, Platform.WIN_64, Platform.LINUX_AARCH64])
drivers = st.none() | st.sampled_from(DRIVERS)
gpus = st.lists(st.sampled_from(DESKTOP), min_size=1, max_size=3, unique=True)
frameworks = st.lists(st.sampled_from(["tensorflow", "pytorch", "jax"]), min_size=1, max_size=2, unique=True)
formats = st.sampled_from(["environment", "json"])
sources = st.sampled_from([(), (Source.PYPI,), (Source.PYTORCH,), (Source.CONDA_FORGE,)])


def posed(
    names: list[str],
    kinds: list[ComputeCapability],
    driver: DriverVersion | None,
    platform: Platform = Platform.LINUX_64,
    glibc: LibcVersion | None = None,
) -> Problem:
    """The problem of running ``names`` on one machine."""
    machine = Machine(driver, tuple((kind, "") for kind in sorted(kinds)), glibc, windows_driver=platform.is_windows)
    asked = tuple(FrameworkRequest(name, SpecifierSet()) for name in names)
    return Problem(frameworks=asked, platform=platform, machines=(machine,), cpu=False, python=None, cuda=None)


def answered(problem: Problem, format_name: str = "json", wanted: tuple[Source, ...] = ()) -> Solution | None:
    """The answer to a problem."""
    return SOLVER.solve(Request(frameworks=problem.frameworks, format=format_name, sources=wanted), problem)


@settings(max_examples=150, deadline=None)
@given(frameworks, gpus, drivers, platforms, formats, sources)
def test_every_chosen_build_runs_on_every_gpu(
    names: list[str],
    kinds: list[ComputeCapability],
    driver: DriverVersion | None,
    platform: Platform,
    format_name: str,
    wanted: tuple[Source, ...],
) -> None:
    solution = answered(posed(names, kinds, driver, platform), format_name, wanted)
    if solution is None:
        return
    for choice in solution.choices:
        release = choice.release
        assert release.cuda is not None
        for kind in kinds:
            served = [it for it in release.code.sass if it.capability.major == kind.major and it.capability <= kind]
            compiled = [it for it in release.code.ptx if it.capability <= kind]
            assert served or compiled
            if not served and driver is not None:
                toolkit = next(it for it in MATRIX.cuda.toolkits if it.version == release.cuda)
                full = toolkit.full(windows=platform.is_windows)
                assert full is not None
                assert driver.meets(full)


@settings(max_examples=100, deadline=None)
@given(frameworks, gpus, drivers, platforms, sources)
def test_driver_cudnn_and_python_fit(
    names: list[str],
    kinds: list[ComputeCapability],
    driver: DriverVersion | None,
    platform: Platform,
    wanted: tuple[Source, ...],
) -> None:
    solution = answered(posed(names, kinds, driver, platform), "json", wanted)
    if solution is None:
        return
    assert solution.toolkit is not None
    assert solution.minimum_driver is not None
    assert solution.minimum_driver.meets(solution.toolkit.floor(windows=platform.is_windows))
    if driver is not None:
        assert driver.meets(solution.minimum_driver)
        for life in MATRIX.cuda.architectures:
            if life.capability in kinds and life.last_branch is not None:
                assert driver.parts[0] < MATRIX.cuda.after(life.last_branch)
    if solution.cudnn is not None:
        assert all(solution.cudnn.serves(kind, platform) for kind in kinds)
        assert solution.cudnn.cuda_major == solution.toolkit.version.major
    assert all(str(solution.python) in choice.release.pythons for choice in solution.choices)
    assert len({choice.release.source.is_wheel for choice in solution.choices}) == 1


@settings(max_examples=60, deadline=None)
@given(frameworks, gpus, drivers, formats)
def test_the_same_problem_has_the_same_answer(
    names: list[str], kinds: list[ComputeCapability], driver: DriverVersion | None, format_name: str
) -> None:
    problem = posed(names, kinds, driver)
    assert answered(problem, format_name) == answered(problem, format_name)


@settings(max_examples=80, deadline=None)
@given(frameworks, gpus, st.sampled_from(DRIVERS), st.sampled_from(DRIVERS))
def test_a_newer_driver_within_the_gpus_life_never_gives_an_older_framework(
    names: list[str], kinds: list[ComputeCapability], one: DriverVersion, other: DriverVersion
) -> None:
    older, newer = sorted((one, other), key=lambda driver: driver.parts)
    lasts = [it.last_branch for it in MATRIX.cuda.architectures if it.capability in kinds and it.last_branch]
    before, after = answered(posed(names, kinds, older)), answered(posed(names, kinds, newer))
    if before is None or (lasts and newer.parts[0] > min(lasts)):
        return
    assert after is not None
    assert [it.release.version for it in after.choices] >= [it.release.version for it in before.choices]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["tensorflow", "pytorch", "jax"]), gpus)
def test_the_minimum_driver_named_is_enough(name: str, kinds: list[ComputeCapability]) -> None:
    free = answered(posed([name], kinds, None))
    if free is None:
        return
    held = answered(posed([name], kinds, free.minimum_driver))
    assert held is not None
    assert held.choices[0].release.version == free.choices[0].release.version


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["tensorflow", "pytorch", "jax"]), gpus, st.sampled_from(DRIVERS), st.sampled_from(DESKTOP))
def test_a_further_gpu_never_gives_a_newer_framework(
    name: str, kinds: list[ComputeCapability], driver: DriverVersion, further: ComputeCapability
) -> None:
    with_further = answered(posed([name], sorted({*kinds, further}), driver))
    alone = answered(posed([name], kinds, driver))
    if with_further is not None:
        assert alone is not None
        assert alone.choices[0].release.version >= with_further.choices[0].release.version


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["tensorflow", "pytorch", "jax"]), gpus, st.sampled_from([(2, 12), (2, 17), (2, 27), (2, 35)]))
def test_the_c_library_is_old_enough(name: str, kinds: list[ComputeCapability], glibc: tuple[int, int]) -> None:
    solution = answered(posed([name], kinds, None, glibc=LibcVersion(*glibc)))
    if solution is None:
        return
    for choice in solution.choices:
        assert choice.release.glibc is None or choice.release.glibc <= LibcVersion(*glibc)
        bundled = choice.release.cuda_libraries is CudaLibraries.BUNDLED
        from_conda = not choice.release.source.is_wheel and not bundled
        if from_conda and solution.cudnn is not None and solution.cudnn.conda_glibc is not None:
            assert solution.cudnn.conda_glibc <= LibcVersion(*glibc)
