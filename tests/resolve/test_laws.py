"""Laws that hold for every answer, over random machines and requests drawn from the real matrix.

What an answer promises is judged with the rules of ``tests.resolve.reference``, not with the solver's own.

    LAWS_TIMES=50 .venv-test/bin/python -m pytest tests/resolve/test_laws.py

checks fifty times as many questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ParamSpec

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st
from packaging.version import Version
from resolvelib import BaseReporter, ResolutionImpossible, Resolver
from resolvelib.resolvers import Criterion

from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.lock_format import PYTHON_FORMATS
from envsolve.model.release import CudaLibraries, Release, Source
from envsolve.model.request import LockedVersions, Packages, Policy
from envsolve.model.solution import Machine, Owner, Solution
from envsolve.model.versions import CudaVersion, LibcVersion
from envsolve.resolve.agreement import best_combination
from envsolve.resolve.conflict import Kind, restricted
from envsolve.resolve.explain import explain
from envsolve.resolve.parts import Candidate, Requirement, framework_identifier
from envsolve.resolve.provider import Provider
from envsolve.resolve.relax import ways_out
from envsolve.resolve.rules import owner_of
from envsolve.resolve.solver import Solver, source_groups
from tests.laws import examples
from tests.resolve import reference
from tests.resolve.drawn import (
    ANY,
    CUDAS,
    DEFAULT_SOURCES,
    DRIVERS,
    GLIBCS,
    MATRIX,
    MOMENTS,
    ONE_SOURCE,
    POLICIES,
    PYTHONS,
    Question,
    gpu_kinds,
    locked_versions_of,
    machines,
    question_of,
    questions,
    version_ranges,
)

SOLVER = Solver(MATRIX)
UNRANKED = ((), *ONE_SOURCE)
"""Sources of which none is preferred to a newer release from another."""
SHAPE = [HealthCheck.filter_too_much, HealthCheck.too_slow]
P = ParamSpec("P")


def law(whole: int) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Try a law on so many questions."""
    return settings(max_examples=examples(whole), deadline=None, suppress_health_check=SHAPE)


def versions(solution: Solution) -> list[Version]:
    """The chosen versions, in the order requested: they decide which answer is newer."""
    return [choice.release.version for choice in solution.choices]


def builds(solution: Solution) -> list[Release]:
    """The chosen builds."""
    return [choice.release for choice in solution.choices]


def answer(question: Question) -> Solution:
    """The answer, for laws about questions that have one."""
    solution = SOLVER.solve(*question)
    if solution is None:
        reject()
    return solution


def can_solve(question: Question) -> bool:
    """Whether there is an answer."""
    return SOLVER.can_solve(*question)


# What every answer promises


def floors_of(solution: Solution, machine: Machine) -> Iterator[reference.Driver]:
    """The oldest driver of everything in the stack on ``machine``."""
    cuda = MATRIX.cuda
    full = reference.full_drivers(cuda, windows=machine.windows_driver)
    assert solution.toolkit is not None
    yield reference.floors_of(cuda, windows=machine.windows_driver)[solution.toolkit.version]
    for gpu, _ in machine.gpus:
        first = reference.life_of(cuda, gpu, windows=machine.windows_driver).first
        if first is not None:
            yield first
        for build in builds(solution):
            code = reference.code_for(build, gpu, full)
            assert code is not None, f"{build.label} has nothing for {gpu}"
            if code[1] is not None:
                yield code[1]


@pytest.mark.thorough
@law(80)
@given(questions(policies=POLICIES))
def test_every_build_has_code_for_every_gpu_that_its_driver_supports(question: Question) -> None:
    solution = answer(question)
    for machine in question.problem.machines:
        floors = list(floors_of(solution, machine))
        ceilings = [
            ceiling
            for gpu, _ in machine.gpus
            if (ceiling := reference.life_of(MATRIX.cuda, gpu, windows=machine.windows_driver).ceiling) is not None
        ]
        assert solution.minimum_driver is not None
        if len(question.problem.machines) == 1:
            assert all(reference.meets(solution.minimum_driver.parts, floor) for floor in floors)
        if machine.driver is None:
            assert all(floor[0] < ceiling for floor in floors for ceiling in ceilings)
        else:
            assert all(reference.meets(machine.driver.parts, floor) for floor in floors)
            if machine.windows_driver is all(it.windows_driver for it in question.problem.machines):
                assert reference.meets(machine.driver.parts, solution.minimum_driver.parts)
            assert all(machine.driver.parts[0] < ceiling for ceiling in ceilings)


@pytest.mark.thorough
@law(80)
@given(questions(policies=POLICIES))
def test_all_builds_share_one_toolkit_one_cudnn_one_python_and_one_owner_of_cuda(question: Question) -> None:
    solution = answer(question)
    problem, toolkit = question.problem, solution.toolkit
    assert toolkit is not None
    assert problem.cuda is None or problem.cuda.contains(str(toolkit.version))
    assert problem.python is None or any(problem.python.contains(f"{solution.python}.{patch}") for patch in range(30))
    assert all(reference.toolkit_serves(toolkit, gpu) for gpu in problem.gpus)
    for build, wanted in zip(builds(solution), problem.frameworks, strict=True):
        assert build.framework == wanted.framework
        assert build.cuda is not None
        assert build.platform is problem.platform
        assert wanted.specifier.contains(build.full_version)
        assert not question.request.sources or build.source in question.request.sources
        assert build.cuda.major == toolkit.version.major
        assert str(solution.python) in build.pythons
        known_bad = MATRIX.framework(build.framework, problem.platform).known_bad
        assert not any(reference.is_known_bad(build, known_bad, gpu) for gpu in (None, *problem.gpus))
    on_their_own = [it for it in builds(solution) if not _may_stand_beside_others(it, question)]
    for build in on_their_own:
        assert reference.requires_toolkit(build, toolkit)
        _check_cudnn(solution, build)
    assert {owner_of(build) for build in on_their_own} <= {solution.owner}
    assert len({build.cuda.major for build in builds(solution) if build.cuda}) == 1


def _may_stand_beside_others(build: Release, question: Question) -> bool:
    """Whether pip installs other frameworks with a build that brings no CUDA: one of the same major is enough."""
    by_pip = question.request.format in PYTHON_FORMATS and len(question.problem.frameworks) > 1
    return by_pip and build.cuda_libraries is CudaLibraries.NONE


def _check_cudnn(solution: Solution, build: Release) -> None:
    cudnn = solution.cudnn
    if build.cudnn_requires is None:
        return
    assert cudnn is not None
    assert reference.requires_cudnn(build, cudnn)
    assert all(reference.cudnn_serves(cudnn, gpu, build.platform) for gpu in solution.problem.gpus)
    assert build.cudnn is None or cudnn.version.release[:2] >= build.cudnn.release[:2], build.label


@pytest.mark.thorough
@law(40)
@given(questions(policies=POLICIES), st.sampled_from(MOMENTS))
def test_every_version_was_released_before_the_cutoff(question: Question, moment: str) -> None:
    solution = answer(question.changed(packages=Packages(exclude_newer=moment)))
    assert all(build.released is not None and build.released < moment[:10] for build in builds(solution))


@pytest.mark.thorough
@law(40)
@given(questions(policies=POLICIES), st.sampled_from(GLIBCS))
def test_the_c_library_of_every_machine_is_new_enough(question: Question, glibc: LibcVersion) -> None:
    there = tuple(machine._replace(glibc=glibc) for machine in question.problem.machines)
    solution = answer(question.changed(machines=there, platform=Platform.LINUX_64))
    assert all(build.glibc is None or build.glibc <= glibc for build in builds(solution))
    if solution.owner is Owner.CONDA and solution.cudnn is not None:
        assert solution.cudnn.conda_glibc is None or solution.cudnn.conda_glibc <= glibc


@pytest.mark.parametrize(("glibc", "cudnn"), [("2.12", None), ("2.17", "8.1.0.77")])
def test_the_cudnn_that_conda_installs_for_a_wheel_fits_the_c_library(glibc: str, cudnn: str | None) -> None:
    """The wheel of TensorFlow 2.8 runs with 2.12 or newer, and the oldest cuDNN 8.1 of conda-forge with 2.17."""
    solution = SOLVER.solve(*question_of("tensorflow<2.11", gpu="8.6", glibc=glibc, sources=(Source.PYPI,)))
    assert (None if solution is None else str(solution.cudnn.version if solution.cudnn else "")) == cudnn


# What more or less of something does to an answer


@st.composite
def two_drivers(draw: st.DrawFn, machine: Machine) -> tuple[Machine, Machine]:
    """A machine with an older and with a newer driver, neither after the last one of its GPUs."""
    lives = [reference.life_of(MATRIX.cuda, gpu, windows=machine.windows_driver) for gpu, _ in machine.gpus]
    ceiling = min((life.ceiling for life in lives if life.ceiling is not None), default=1000)
    known = [
        driver for driver in DRIVERS[machine.windows_driver] if driver.parts[0] < ceiling and len(driver.parts) > 1
    ]
    numbers = sorted(draw(st.tuples(*[st.integers(0, len(known) - 1)] * 2)))
    return machine._replace(driver=known[numbers[0]]), machine._replace(driver=known[numbers[1]])


@pytest.mark.thorough
@law(30)
@given(questions(frameworks=(1, 2), sources=UNRANKED, formats=("requirements",)), st.data())
def test_a_newer_supported_driver_never_gives_an_older_or_no_answer(question: Question, data: st.DataObject) -> None:
    first, *rest = question.problem.machines
    older, newer = data.draw(two_drivers(first))
    before = answer(question.changed(machines=(older, *rest)))
    after = SOLVER.solve(*question.changed(machines=(newer, *rest)))
    assert after is not None
    assert versions(after) >= versions(before)


@pytest.mark.thorough
@law(50)
@given(questions(sources=UNRANKED, formats=("requirements",)), st.data())
def test_another_machine_or_gpu_never_gives_a_newer_answer(question: Question, data: st.DataObject) -> None:
    problem = question.problem
    first, *rest = problem.machines
    if data.draw(st.booleans()):
        more = (*problem.machines, data.draw(machines(problem.platform, windows=first.windows_driver)))
    else:
        gpus = dict(first.gpus) | dict.fromkeys(data.draw(gpu_kinds()), "")
        more = (first._replace(gpus=tuple(sorted(gpus.items()))), *rest)
    after = answer(question.changed(machines=more))
    before = SOLVER.solve(*question)
    assert before is not None
    assert versions(after) <= versions(before)


@pytest.mark.thorough
@law(50)
@given(questions(), st.data())
def test_another_constraint_never_makes_a_request_solvable(question: Question, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(("python", "cuda", "date", "versions", "source", "glibc")))
    problem, request = question.problem, question.request
    if kind == "python":
        further = question.changed(python=data.draw(st.sampled_from(PYTHONS)) & (problem.python or ANY))
    elif kind == "cuda":
        further = question.changed(cuda=data.draw(st.sampled_from(CUDAS)) & (problem.cuda or ANY))
    elif kind == "date":
        limits = (data.draw(st.sampled_from(MOMENTS)), request.packages.exclude_newer)
        further = question.changed(packages=Packages(exclude_newer=min(filter(None, limits))))
    elif kind == "versions":
        first, *rest = problem.frameworks
        added = data.draw(st.sampled_from(version_ranges(first.framework)))
        further = question.changed(frameworks=(first._replace(specifier=first.specifier & added), *rest))
    elif kind == "source":  # the two that only a name brings in are not among those that a request has without one
        usual = [it for it in DEFAULT_SOURCES if it.is_wheel or request.format not in PYTHON_FORMATS]
        sources = [(source,) for source in request.sources or usual]
        further = question.changed(sources=data.draw(st.sampled_from(sources)))
    else:
        there = tuple(it._replace(glibc=it.glibc or data.draw(st.sampled_from(GLIBCS))) for it in problem.machines)
        further = question.changed(machines=there)
    assume(can_solve(further))
    assert can_solve(question)


# The same question


@pytest.fixture(scope="module")
def used() -> Solver:
    """A solver that has answered a hundred questions."""
    solver = Solver(MATRIX)

    @settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(questions(policies=POLICIES))
    def answer(question: Question) -> None:
        solver.solve(*question)

    answer()
    return solver


@pytest.mark.thorough
@law(40)
@given(question=questions(policies=POLICIES))
def test_a_fresh_solver_and_a_used_one_agree(used: Solver, question: Question) -> None:
    assert Solver(MATRIX).solve(*question) == used.solve(*question)


@pytest.mark.thorough
@law(80)
@given(questions(policies=POLICIES))
def test_the_quick_check_agrees_with_the_solver(question: Question) -> None:
    assert (SOLVER.solve(*question) is not None) is can_solve(question)


# Where there is none

CODES = {
    "cuda-excluded",
    "cudnn-not-available",
    "driver-too-new-for-gpu",
    "driver-too-old",
    "driver-too-old-for-gpu",
    "frameworks-disagree",
    "glibc-too-old",
    "gpu-not-supported",
    "known-bad-release",
    "no-build-for-platform",
    "no-driver-for-gpus",
    "no-gpu-build",
    "no-such-release",
    "python-not-supported",
    "released-later",
}


@pytest.mark.thorough
@law(100)
@given(questions(most_machines=2))
def test_a_conflict_is_real_and_none_of_its_constraints_can_be_left_out(question: Question) -> None:
    assume(not can_solve(question))
    conflict = explain(*question, SOLVER)
    assert conflict.message
    assert conflict.code in CODES
    assert conflict.steps
    assert all(step.requirement and step.because for step in conflict.steps)
    assert conflict.spelled
    minimal = frozenset(conflict.minimal)
    limited = restricted(*question, minimal)
    assert not SOLVER.can_solve(*limited)
    assert SOLVER.solve(*limited) is None
    for left_out in minimal:
        assert SOLVER.can_solve(*restricted(*question, minimal - {left_out})), left_out


def test_removing_a_source_excludes_no_build() -> None:
    """jax-releases has jax 0.4.16, and none of its builds run on Blackwell; the release itself exists."""
    conflict = explain(*question_of("jax==0.4.16", gpu="12.0", sources=(Source.JAX_RELEASES,)), SOLVER)
    assert conflict.code == "gpu-not-supported"
    assert {constraint.kind for constraint in conflict.minimal} == {Kind.FRAMEWORK, Kind.VERSION, Kind.GPU}


@pytest.mark.thorough
@law(60)
@given(questions(most_machines=2))
def test_every_suggested_change_has_the_promised_stack(question: Question) -> None:
    assume(not can_solve(question))
    minimal = explain(*question, SOLVER).minimal
    for way in ways_out(*question, minimal, SOLVER):
        request = way.request
        again = SOLVER.solve(
            request,
            way.solution.problem._replace(frameworks=request.frameworks, python=request.python, cuda=request.cuda),
        )
        assert again is not None, way.text
        assert again.toolkit is None or way.solution.toolkit is not None, way.text


@pytest.mark.thorough
@pytest.mark.parametrize("gpu", ["6.1", "7.5", "8.6", "9.0", "10.3", "12.0"])
@pytest.mark.parametrize("framework", ["cupy", "jax", "pytorch>=2.5", "tensorflow"])
def test_a_suggested_driver_is_the_oldest_that_works(framework: str, gpu: str) -> None:
    question = question_of(framework, gpu=gpu, sources=())
    (machine,) = question.problem.machines
    question = question.changed(machines=(machine._replace(driver=DRIVERS[False][0]),))
    minimal = explain(*question, SOLVER).minimal
    drivers = [way.request.driver for way in ways_out(*question, minimal, SOLVER) if way.request.driver is not None]
    assert len(drivers) == 1
    older = [driver for driver in DRIVERS[False] if driver.parts < drivers[0].parts and len(driver.parts) > 1]
    assert not any(can_solve(question.changed(machines=(machine._replace(driver=driver),))) for driver in older)


# The policies

BY_ANOTHER_ORDER = (Policy.NEWEST_CUDA, Policy.WIDEST_GPU)


@law(40)
@given(questions())
def test_every_policy_answers_the_same_questions(question: Question) -> None:
    solvable = can_solve(question)
    locked = locked_versions_of(answer(question)) if solvable else LockedVersions((), "3.11", "12.4")
    for policy in POLICIES:
        solution = SOLVER.solve(*question.changed(prefer=policy, locked=locked))
        assert (solution is not None) is solvable, policy


@pytest.mark.thorough
@law(40)
@given(questions(sources=ONE_SOURCE))
def test_no_policy_gives_a_newer_cuda_than_newest_cuda(question: Question) -> None:
    newest = answer(question.changed(prefer=Policy.NEWEST_CUDA))
    for policy in (Policy.NEWEST_FRAMEWORK, Policy.WIDEST_GPU):
        assert toolkit_of(newest) >= toolkit_of(answer(question.changed(prefer=policy)))


@pytest.mark.thorough
@law(35)
@given(questions(frameworks=(1, 1), most_machines=1, most_gpus=1, sources=ONE_SOURCE))
def test_the_widest_stack_serves_as_many_gpus_as_the_newest_and_needs_no_newer_driver_for_as_many(
    question: Question,
) -> None:
    newest = answer(question)
    widest = answer(question.changed(prefer=Policy.WIDEST_GPU))
    assert reach(widest) >= reach(newest)
    if reach(widest) == reach(newest):
        assert widest.minimum_driver is not None
        assert newest.minimum_driver is not None
        assert widest.minimum_driver.parts <= newest.minimum_driver.parts


def test_the_widest_stack_for_two_generations_serves_as_many_gpus_as_the_newest() -> None:
    """PyTorch 1.10.2 supports Kepler with an older cuDNN; the one for 7.0 and 9.0 together has dropped it."""
    question = question_of("pytorch", gpu="7.0", sources=(Source.CONDA_FORGE,))
    (machine,) = question.problem.machines
    question = question.changed(machines=(machine._replace(gpus=(*machine.gpus, (ComputeCapability(9, 0), ""))),))
    assert reach(answer(question.changed(prefer=Policy.WIDEST_GPU))) >= reach(answer(question))


@pytest.mark.thorough
@law(60)
@given(questions())
def test_a_locked_answer_stays(question: Question) -> None:
    before = answer(question)
    after = answer(question.changed(prefer=Policy.LOCKED, locked=locked_versions_of(before)))
    assert builds(after) == builds(before)
    assert (after.python, after.toolkit) == (before.python, before.toolkit)


@pytest.mark.thorough
@law(50)
@given(questions(frameworks=(1, 1), sources=ONE_SOURCE), st.sampled_from(BY_ANOTHER_ORDER))
def test_the_locked_package_stays_whatever_policy_chose_it(question: Question, policy: Policy) -> None:
    before = answer(question.changed(prefer=policy))
    after = answer(question.changed(prefer=Policy.LOCKED, locked=locked_versions_of(before)))
    assert locked_versions_of(after).packages == locked_versions_of(before).packages


def test_the_cuda_of_a_locked_answer_stays() -> None:
    question = question_of("cupy==12.2.0", gpu="8.9", sources=(Source.CONDA_FORGE,))
    before = answer(question.changed(prefer=Policy.WIDEST_GPU))
    after = answer(question.changed(prefer=Policy.LOCKED, locked=locked_versions_of(before)))
    assert toolkit_of(after) == toolkit_of(before)


def test_the_second_package_of_a_locked_answer_stays() -> None:
    """CuPy's build strings on conda-forge do not name the CUDA, and jax must match the chosen build."""
    first, second = (question_of(name, gpu="8.9", sources=(Source.CONDA_FORGE,)) for name in ("cupy", "jax"))
    question = first.changed(frameworks=(*first.problem.frameworks, *second.problem.frameworks))
    before = answer(question.changed(prefer=Policy.WIDEST_GPU))
    after = answer(question.changed(prefer=Policy.LOCKED, locked=locked_versions_of(before)))
    assert versions(after) == versions(before)


def test_the_source_of_a_locked_answer_stays() -> None:
    question = question_of("jax", gpu="8.6", sources=())
    before = answer(question.changed(sources=(Source.CONDA_FORGE,)))
    after = answer(question.changed(prefer=Policy.LOCKED, locked=locked_versions_of(before)))
    assert builds(after) == builds(before)


def toolkit_of(solution: Solution) -> CudaVersion:
    """The toolkit of a GPU stack."""
    assert solution.toolkit is not None
    return solution.toolkit.version


def reach(solution: Solution) -> int:
    """How many compute capabilities the whole stack has code for."""
    toolkit, cudnn = solution.toolkit, solution.cudnn
    assert toolkit is not None
    (build,) = builds(solution)
    return len(
        [
            gpu
            for gpu in (row.capability for row in MATRIX.cuda.architectures)
            if reference.newest_sass(build.code.sass, gpu)
            or any(reference.serves_as_ptx(it, gpu) for it in build.code.ptx)
            if reference.toolkit_serves(toolkit, gpu)
            if cudnn is None or reference.cudnn_serves(cudnn, gpu, build.platform)
        ]
    )


# Two ways to the same answer


class _TooSlow(Exception):  # noqa: N818  # the question is given up, nothing is wrong
    """The plain search tries each build with each; questions with more than some hundred failures are skipped."""


class Patient(BaseReporter[Requirement, Candidate, str]):
    """Allows a search many dead ends before it gives up."""

    def __init__(self) -> None:
        self._left = 500

    def rejecting_candidate(self, criterion: Criterion[Requirement, Candidate], candidate: Candidate) -> None:
        """One more dead end."""
        self._left -= 1
        if self._left < 0:
            raise _TooSlow


def searched(provider: Provider) -> Mapping[str, Candidate] | None:
    """The answer of resolvelib without any help."""
    resolver: Resolver[Requirement, Candidate, str] = Resolver(provider, Patient())
    try:
        return resolver.resolve(provider.request_roots, max_rounds=100_000).mapping
    except ResolutionImpossible:
        return None


@pytest.mark.thorough
@law(70)
@given(questions(frameworks=(2, 3), most_machines=1, policies=POLICIES))
def test_frameworks_agree_on_the_builds_that_a_plain_search_finds(question: Question) -> None:
    for group in source_groups(question.request):
        provider = SOLVER.provider(group, *question)
        if not provider.roots_hold():
            continue
        try:
            found = searched(provider)
        except _TooSlow:
            continue
        agreed = best_combination(SOLVER.provider(group, *question))
        names = [framework_identifier(it.framework) for it in question.problem.frameworks]
        expected = None if found is None else [found[name].thing for name in names]
        assert (None if agreed is None else [candidate.thing for candidate in agreed]) == expected
