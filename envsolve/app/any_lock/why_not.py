"""Whether something else than an answer would fit: the requirement is added, and the request is solved again.

Either there is no stack, for the same reasons as in a refusal, or there is one that the policy ranks lower.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.any_lock.environment_file import stacks_with_locks
from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.request.channel_order import solver_of
from envsolve.app.request.command import command_of
from envsolve.app.request.network import Network
from envsolve.app.request.refusal import refusal
from envsolve.app.request.targets import Target
from envsolve.app.solve.solving import framework_names, framework_request, stacks_of
from envsolve.errors import Hint, UnsolvableError, UsageError
from envsolve.frameworks import DEPENDENT_FRAMEWORKS
from envsolve.lockfile.lock import Lock
from envsolve.matrix.load import Matrix
from envsolve.model.cuda_packages import CUDA_PACKAGES, CUDNN_PACKAGES
from envsolve.model.fact import Fact
from envsolve.model.names import normalized
from envsolve.model.need import parse_need
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.request import (
    FrameworkRequest,
    Policy,
    Request,
    parse_cuda_versions,
    parse_framework,
    parse_versions,
)
from envsolve.model.solution import Problem, Solution
from envsolve.resolve.solver import Solver

TOOLKIT_NAMES = ("cuda", "toolkit", "cuda-toolkit", *CUDA_PACKAGES)
CUDNN_NAMES = ("cudnn", *CUDNN_PACKAGES)
_SPEC = "a framework, CUDA or Python with a version, or a package with kernels, such as pytorch==2.15 or flash-attn"


class WhyNot(NamedTuple):
    """Whether something else would fit, in a sentence, with facts and what to type.

    ``constraints`` are those that conflict if it does not fit.
    """

    requirement: str
    fits: bool
    message: str
    facts: tuple[Fact, ...]
    constraints: tuple[str, ...]
    hints: tuple[Hint, ...]


class Stack(NamedTuple):
    """A stack, and for a dependent framework its ``lock``, with the notes of the lock on versions."""

    target: Target
    solution: Solution
    lock: Lock | None = None
    notes: tuple[Note, ...] = ()

    def pin_of(self, name: str) -> Pin | None:
        """The dependent framework ``name`` of the lock."""
        pins = () if self.lock is None else self.lock.pins
        return next((it for it in pins if it.name == name and name in DEPENDENT_FRAMEWORKS), None)

    @property
    def label(self) -> str:
        """The dependent frameworks and the stack in words."""
        pins = (self.pin_of(it) for it in DEPENDENT_FRAMEWORKS)
        dependent = "".join(f"{it.name} {it.version} with " for it in pins if it is not None)
        return f"{dependent}{solution_text(self.solution)}"

    def about(self, package: str) -> list[Fact]:
        """What the notes of the lock say of the version of ``package``."""
        return [Fact(it.text, "the lock of this request") for it in self.notes if it.fields.get("name") == package]


class Alternatives:
    """What else would fit on the target of ``stack``, which is the answer to ``request``."""

    def __init__(
        self,
        request: Request,
        stack: Stack,
        solver: Solver,
        matrix: Matrix,
        environ: Mapping[str, str],
        network: Network,
    ) -> None:
        self._original = request
        self._stack, self._solution = stack, stack.solution
        self._request, self._problem = stack.target.request, stack.target.problem
        self._solver, self._matrix, self._environ, self._network = solver, matrix, environ, network

    def why_not(self, text: str) -> WhyNot:
        """Whether ``text`` would fit. Raises UsageError if it is no such requirement; OutsideError."""
        _parsed(text)
        of_wheel = self._why_no_wheel(text)
        if of_wheel is not None:
            return of_wheel
        request, problem = self._with(text)
        if self._stack.lock is not None:
            return self._why_not_locked(text, request)
        solution = self._solver.solve(request, problem)
        if solution is None:
            return _refused(text, refusal(request, problem, self._solver))
        hint = Hint(f"to get {solution_text(solution)}", command_of(_typed(request, solution)))
        if solution_text(solution) == solution_text(self._solution):
            return WhyNot(text, True, f"the answer already contains it: {solution_text(solution)}", (), (), ())
        return WhyNot(text, True, self._liked_less(solution, _framework_of(text, self._matrix)), (), (), (hint,))

    def _why_no_wheel(self, text: str) -> WhyNot | None:
        """Whether a package with kernels has a wheel for the stack of a Python lock; None for other packages."""
        name = normalized(parse_framework(text)[0])
        if name in (*framework_names(self._matrix), "python", *TOOLKIT_NAMES):
            return None
        from envsolve.app.any_lock.request_lock import make_lock
        from envsolve.app.lock.locking import WHEELS_ELSEWHERE
        from envsolve.app.packages.compiling import HOW_TO_COMPILE
        from envsolve.app.packages.wheel_ways import are_published, stack_text

        if not are_published([name]):
            return None
        request = self._original._replace(platforms=(self._problem.platform,), format="requirements")
        _, (stack,), _ = stacks_of(request, self._matrix, self._environ, solver_of(request, self._matrix))
        if stack.problem.cpu:
            raise UsageError("contradictory-options", f"the answer is a CPU environment, and {name} has code for GPUs")
        frameworks = ((it.release.framework, str(it.release.version)) for it in stack.choices)
        if name in DEPENDENT_FRAMEWORKS:  # each of its releases requires one of the framework: both are chosen again
            others = (it for it in request.packages.requirements if _name_of(it) != name)
            packages = request.packages._replace(requirements=(*others, text))
            request = request._replace(packages=packages)
        else:
            packages = request.packages._replace(requirements=(*request.packages.requirements, text))
            pinned = tuple(FrameworkRequest(it, SpecifierSet(f"=={version}")) for it, version in frameworks)
            request = request._replace(frameworks=pinned, packages=packages)
        try:
            solved = make_lock(LockRequest(request, self._network), self._matrix, self._environ)
        except UnsolvableError as error:
            return _refused(text, error)
        locked = next(pin for pin in solved.locks[0].pins if pin.name == name)
        about = stack_text(solved.solutions[0])
        if locked.files[0].is_wheel:
            hint = Hint(f"to get {name} {locked.version}", command_of(request))
            return WhyNot(text, True, f"{name} {locked.version} has a wheel for {about}", (), (), (hint,))
        about_it = [it for it in solved.notes if it.code == WHEELS_ELSEWHERE or it.fields.get("name") == name]
        hints = tuple(
            Hint(str(it.fields.get("way", it.text)), it.command)
            for it in about_it
            if it.code in (WHEELS_ELSEWHERE, HOW_TO_COMPILE)
        )
        older = (f" ({it.text})" for it in about_it if it.code == "held-back")
        message = f"{name} {locked.version} has no wheel for {about}{next(older, '')}"
        return WhyNot(text, False, message, (), (), hints)

    def _why_not_locked(self, text: str, request: Request) -> WhyNot:
        """The same with a dependent framework: only a lock can tell what fits it."""
        changed = LockRequest(request._replace(platforms=(self._problem.platform,)), self._network)
        try:
            found = stacks_with_locks(changed, self._matrix, self._environ)
        except UnsolvableError as error:
            return _refused(text, error)
        other = None if found is None else Stack(*found.found[0], found.about_versions)
        if other is None or other.label == self._stack.label:
            return WhyNot(text, True, f"the answer already contains it: {self._stack.label}", (), (), ())
        message = f"{other.label} also fits; the answer has {self._stack.label}"
        hint = Hint(f"to get {other.label}", command_of(_typed(request, other.solution)))
        return WhyNot(text, True, message, (), (), (hint,))

    def _liked_less(self, other: Solution, about: str) -> str:
        """Why a stack that fits is not the answer. ``about`` is the framework in the question, if any."""
        policy = self._request.prefer
        here = {it.release.framework: it.release for it in self._solution.choices}
        there = {it.release.framework: it.release for it in other.choices}
        if about in there and about not in here:
            return f"{about} was not requested; {there[about].label} fits with the rest"
        paid = [name for name in here if there[name].version < here[name].version and name != about]
        if about not in there or (not paid and there[about].version == here[about].version):
            return f"{solution_text(other)} also fits; {policy} chooses {solution_text(self._solution)}"
        mine, its = here[about], there[about]
        if paid:
            return f"{its.label} also fits, with {there[paid[0]].label} instead of {here[paid[0]].version}"
        if mine.version > its.version:
            return f"{its.label} also fits; {policy} chooses {mine.label}, which is newer"
        if policy is Policy.NEWEST_FRAMEWORK and mine.source is not its.source:
            return f"{its.label} also fits; the answer has {mine.label}, from the preferred source"
        return f"{its.label} also fits; {policy} chooses {mine.label}"

    def _with(self, text: str) -> tuple[Request, Problem]:
        """The request with another requirement, which replaces earlier requirements on the same thing."""
        name, specifier = _parsed(text)
        if name == "python":
            python = specifier or SpecifierSet()
            return self._request._replace(python=python), self._problem._replace(python=python)
        if name == "cuda" and self._problem.cpu:
            raise UsageError("contradictory-options", f"the answer is a CPU environment, which has no {text}")
        if name == "cuda":
            return self._request._replace(cuda=specifier), self._problem._replace(cuda=specifier)
        requested = self._requested(text, name)
        frameworks = [requested if it.framework == requested.framework else it for it in self._problem.frameworks]
        if requested not in frameworks:
            frameworks.append(requested)
        changed = tuple(frameworks)
        return self._request._replace(frameworks=changed), self._problem._replace(frameworks=changed)

    def _requested(self, text: str, name: str) -> FrameworkRequest:
        """The framework in ``text``. Raises UsageError for other packages, which only a lock can answer."""
        try:
            return framework_request(text, self._matrix)
        except UsageError as error:
            packages = self._request.packages
            packages = packages._replace(requirements=(*packages.requirements, text))
            lock = self._request._replace(format="requirements", packages=packages)
            close = tuple(it for it in error.hints if it.command is None)
            hints = (*close, Hint("lock it to see whether it fits", command_of(lock)))
            cause = (f"it takes {_SPEC}", *error.cause)
            raise UsageError("unknown-framework", f"--why-not cannot explain {name!r}", cause, hints) from None


def _name_of(requirement: str) -> str:
    """The package that a requirement of the command line names; "" if it is an address alone."""
    try:
        return parse_need(requirement).name
    except ValueError:
        return ""


def _refused(text: str, error: UnsolvableError) -> WhyNot:
    facts = tuple(Fact(step.requirement, step.source or step.because) for step in error.conflict)
    return WhyNot(text, False, error.message, facts, error.constraints, error.hints)


def _parsed(text: str) -> tuple[str, SpecifierSet]:
    """A name with versions; for Python and CUDA as in their options: ``python==3.14``, ``cuda==13``."""
    try:
        name, specifier = parse_framework(text)
    except ValueError as error:
        raise UsageError("invalid-requirement", f"{text!r} is not {_SPEC}") from error
    if name.lower() in (*CUDNN_NAMES, "driver", "owner"):
        raise UsageError("invalid-requirement", f"--why-not takes {_SPEC}: {name} depends on these")
    if name.lower() not in ("python", *TOOLKIT_NAMES):
        return name, specifier
    read = parse_versions if name.lower() == "python" else parse_cuda_versions
    versions = str(specifier).removeprefix("==") if str(specifier).count("=") == 2 else str(specifier)  # noqa: PLR2004
    if not versions:
        raise UsageError("invalid-requirement", f"{name} needs a version, such as {name}==12")
    return "python" if name.lower() == "python" else "cuda", read(versions)


def _framework_of(text: str, matrix: Matrix) -> str:
    """The framework that ``text`` is about; "" if it is about Python or CUDA."""
    name, _ = _parsed(text)
    return "" if name in ("python", "cuda") else framework_request(text, matrix).framework


def solution_text(solution: Solution) -> str:
    """A stack in words: ``pytorch 2.14.1 (pytorch, cu126) on CUDA 12.6 and Python 3.14``."""
    frameworks = " with ".join(choice.release.label for choice in solution.choices)
    cuda = "" if solution.toolkit is None else f" on CUDA {solution.toolkit.version}"
    return f"{frameworks}{cuda} and Python {solution.python}"


def _typed(request: Request, solution: Solution) -> Request:
    """The request for exactly this stack: sources that are not the first choice must be named."""
    sources = tuple(dict.fromkeys(choice.release.source for choice in solution.choices))
    return request if request.sources else request._replace(sources=sources)
