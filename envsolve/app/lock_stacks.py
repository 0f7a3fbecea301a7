"""Which stacks a lock is tried with, best first: where its packages cannot be had, another stack may have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.asked_packages import Given
from envsolve.app.lock_frameworks import asks_for_cuda, constraint_on, depends_on_python, python_of, whole, with_major
from envsolve.app.targets import Target, glibc_for
from envsolve.errors import Hint
from envsolve.frameworks import FRAMEWORK_OF_WHEEL, needs_gpu
from envsolve.index.fitting import Interpreter
from envsolve.matrix.load import FrameworkTable, Matrix
from envsolve.model.names import normalized
from envsolve.model.package import Pin
from envsolve.model.release import Release, Source
from envsolve.model.request import FrameworkRequest, Held, Packages, Policy, Request
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.resolve.closure.bounds import cuda_major_of
from envsolve.resolve.closure.resolve import Conflict
from envsolve.resolve.closure.told import contested, involved
from envsolve.resolve.solver import Solver


class Attempt(NamedTuple):
    """One stack, or none where no framework is involved, and the problem it solves."""

    request: Request
    problem: Problem
    solution: Solution | None

    @property
    def interpreter(self) -> Interpreter:
        """The Python and the system that the packages have to suit."""
        return interpreter_of(self.problem, self.solution)


def interpreter_of(problem: Problem, solution: Solution | None) -> Interpreter:
    """The Python and the system that the packages around a stack, if there is one, have to suit."""
    python = python_of(problem.python, None if solution is None else solution.python)
    return Interpreter(python, problem.platform, glibc_for(problem, solution))


class Stacks:
    """The stacks for one target. ``only_index`` says that one index stands for all, whose default builds may do.

    A build that turned out to be on no index counts for none of the stacks that follow.
    """

    def __init__(self, target: Target, wanted: Given, matrix: Matrix, typed: Request, *, only_index: bool) -> None:
        self._target, self._wanted, self._matrix, self._typed = target, wanted, matrix, typed
        self._only_index = only_index
        self._solver = Solver(matrix)
        self._absent: frozenset[str] = frozenset()

    @property
    def solver(self) -> Solver:
        """The solver, without the builds that turned out to be on no index."""
        return self._solver

    def first(self, held_by_lock: Held) -> Attempt:
        """The best stack, near to what an existing lock holds. Raises UnsolvableError where there is none."""
        request, problem = self._target.request, self._target.problem
        held = held_by_lock._replace(
            packages=tuple(it for it in held_by_lock.packages if stays(self._typed.packages, it[0]))
        )
        if any(
            name in FRAMEWORK_OF_WHEEL and not stays(self._typed.packages, name) for name, _, _ in held_by_lock.packages
        ):
            others = tuple(it for it in held.packages if it[0] in FRAMEWORK_OF_WHEEL)
            held = held._replace(packages=others, cuda=None)  # its libraries would hold the framework back
        if held.packages and request.prefer is Policy.NEWEST_FRAMEWORK:
            request = request._replace(prefer=Policy.LOCKED, held=held)
        return self.solved(request, problem)

    def solved(self, request: Request, problem: Problem) -> Attempt:
        """The best stack for ``problem``. Raises UnsolvableError where there is none."""
        if not problem.frameworks:
            return Attempt(request, problem, None)
        if problem.cpu and self._target.fell_to_cpu and asks_for_cuda(self._wanted):
            machine = Machine(None, (), problem.machines[0].glibc)
            problem = problem._replace(cpu=False, machines=(machine,))
        solution = self._solver.solve(request, problem)
        if solution is not None:
            return Attempt(request, problem, self._named_as_asked(solution))
        only_gpu = any(needs_gpu(it.framework) for it in problem.frameworks)
        if problem.cpu and self._target.fell_to_cpu and self._only_index and not only_gpu:
            return Attempt(request, problem, None)
        from envsolve.app.lock_refusal import stack_refusal

        asked = self._target.request  # nobody typed that a lock is to be kept, so that no way out is to say so
        plain = request._replace(prefer=asked.prefer, held=asked.held)
        error = stack_refusal(plain, problem, self._solver, typed=self._typed)
        if depends_on_python(self._wanted) and self._typed.python is None:
            named = self._typed.asker.named("python")
            error.hints = (Hint(f"what is asked of a framework depends on the Python: name one with {named}"),)
        raise error

    def after(self, attempt: Attempt, conflict: Conflict) -> Attempt | None:
        """The next best stack after one whose packages conflict; None where another stack would change nothing."""
        solution = attempt.solution
        if solution is None:
            return None
        by_its_name = whole(solution)
        packages = {choice.release.package for choice in (*solution.choices, *by_its_name.choices)}
        if by_its_name != solution and packages & involved(conflict):
            return attempt._replace(solution=by_its_name)
        for request, problem in self._others(attempt, solution, conflict):
            found = self._solver.solve(request, problem)
            if found is not None:
                return Attempt(request, problem, self._named_as_asked(found))
        return None

    def without_folder(self, attempt: Attempt, release: Release) -> Attempt | None:
        """The next best stack without ``release`` and all that is in its folder; None where there is none."""
        table = self._matrix.framework(release.framework, release.platform)
        self._leave_out(it.label for it in table.releases if _folder(it) == _folder(release))
        python = self._target.problem.python
        request, problem = attempt.request._replace(python=python), attempt.problem._replace(python=python)
        found = self._solver.solve(request, problem)
        return None if found is None else Attempt(request, problem, self._named_as_asked(found))

    def joined(self, attempt: Attempt, pins: Sequence[Pin]) -> tuple[Request, Problem] | None:
        """The request with the frameworks that came in as dependencies; None where there are none."""
        known = {it.framework for it in attempt.problem.frameworks}
        if attempt.solution is None and known:
            return None
        new = dict.fromkeys(FRAMEWORK_OF_WHEEL[pin.name] for pin in pins if pin.name in FRAMEWORK_OF_WHEEL)
        added = tuple(
            FrameworkRequest(name, constraint_on(self._wanted, name, attempt.problem))
            for name in new
            if name not in known
        )
        if not added:
            return None
        frameworks = tuple(sorted((*attempt.problem.frameworks, *added), key=lambda it: it.framework))
        return attempt.request._replace(frameworks=frameworks), attempt.problem._replace(frameworks=frameworks)

    def _named_as_asked(self, solution: Solution) -> Solution:
        """``solution`` with the packages that requirements name: only ``--framework`` leaves it to the stack."""
        named = {need.name for need, _ in self._wanted.needs}
        by_its_name = whole(solution)
        return by_its_name if named & {choice.release.package for choice in by_its_name.choices} else solution

    def _others(self, attempt: Attempt, solution: Solution, conflict: Conflict) -> Iterator[tuple[Request, Problem]]:
        request, problem = attempt.request, attempt.problem
        if self._leave_out_absent(solution, conflict):
            python = self._target.problem.python
            yield request._replace(python=python), problem._replace(python=python)
            return
        for cuda in self._other_majors(solution, problem, involved(conflict)):
            yield request._replace(cuda=cuda), problem._replace(cuda=cuda)
        if _is_about_python(conflict):
            older = (problem.python or SpecifierSet()) & SpecifierSet(f"<{solution.python}")
            yield request._replace(python=older), problem._replace(python=older)
        names = involved(conflict)
        of_stack = {choice.release.package for choice in solution.choices}
        limits = conflict.provider.world.limits
        if not any(name in of_stack or any(not limit.origin for limit in limits(name)) for name in names):
            return
        for choice in solution.choices:
            others = SpecifierSet(f"!={choice.release.version}")
            frameworks = tuple(
                it._replace(specifier=it.specifier & others) if it.framework == choice.release.framework else it
                for it in problem.frameworks
            )
            python = self._target.problem.python
            yield (
                request._replace(frameworks=frameworks, python=python),
                problem._replace(frameworks=frameworks, python=python),
            )

    def _leave_out_absent(self, solution: Solution, conflict: Conflict) -> bool:
        """Let builds that their indexes lack count for nothing; whether ``solution`` has one of them.

        An index of PyTorch has a folder for each CUDA, and what one lacks another may have.
        """
        world, names = conflict.provider.world, contested(conflict)
        absent: set[str] = set()
        for release in (it.release for it in solution.choices if it.release.package in names):
            found = world.releases(release.package)
            if found is not None and found.position(str(release.full_version)) is not None:
                continue
            table = self._matrix.framework(release.framework, release.platform)
            alike = (it for it in table.releases if it.package == release.package and _folder(it) == _folder(release))
            absent |= {it.label for it in alike if found is None or found.position(str(it.full_version)) is None}
        if absent:
            self._leave_out(absent)
        return bool(absent)

    def _leave_out(self, labels: Iterable[str]) -> None:
        self._absent = self._absent.union(labels)
        self._solver = Solver(self._matrix, self._there)

    def _there(self, table: FrameworkTable) -> FrameworkTable:
        return table._replace(releases=tuple(it for it in table.releases if it.label not in self._absent))

    def _other_majors(
        self, solution: Solution, problem: Problem, names: frozenset[str]
    ) -> Iterator[SpecifierSet | None]:
        """The CUDA majors that packages in a conflict are for; where that is the stack's own, the one before it."""
        if solution.toolkit is None:
            return
        own = solution.toolkit.version.major
        majors = {major for name in names if (major := cuda_major_of(name)) is not None}
        for major in sorted(majors - {own} | ({own - 1} if own in majors else set()), reverse=True):
            yield with_major(problem.cuda, str(major))


def _folder(release: Release) -> tuple[Source, str]:
    return release.source, release.build if release.source is Source.PYTORCH else ""


def stays(packages: Packages, name: str) -> bool:
    """Whether the pin of a package in an existing lock is kept; ``-P`` may name a framework as ``-f`` does."""
    names = {normalized(it) for it in packages.upgraded}
    return not packages.upgrade and not names & {name, FRAMEWORK_OF_WHEEL.get(name, name)}


def _is_about_python(conflict: Conflict) -> bool:
    """Whether another Python might have what is missing: some project has files, and none for this one."""
    from envsolve.resolve.closure.releases import Unfit
    from envsolve.resolve.closure.told import reasons_of

    about = {Unfit.OTHER_PLATFORM, Unfit.OTHER_PYTHON}
    return any(about & set(reasons_of(name, conflict)) for name in contested(conflict))
