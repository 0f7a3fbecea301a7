"""Questions about an answer: why it has something, and why not something else.

``why`` gives the requirements on a thing, and what decided between the remaining candidates. ``why not`` adds a
requirement and solves again: either there is no stack, for the same reasons as in a refusal, or there is one that the
policy ranks lower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.any_lock.environment_file import stacks_with_locks
from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.request.channel_order import solver_of
from envsolve.app.request.command import command_of
from envsolve.app.request.network import Network
from envsolve.app.request.refusal import refusal
from envsolve.app.request.targets import Target
from envsolve.app.solve.solving import ExistingVersions, framework_names, framework_request, stacks_of
from envsolve.errors import EnvsolveError, Hint, UnsolvableError, UsageError
from envsolve.frameworks import DEPENDENT_FRAMEWORKS
from envsolve.lockfile.lock import Lock
from envsolve.matrix.load import Matrix
from envsolve.model.cuda_packages import CUDA_PACKAGES, CUDNN_PACKAGES
from envsolve.model.fact import Fact
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.model.need import parse_need
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.release import Release, Toolkit
from envsolve.model.request import (
    FrameworkRequest,
    Policy,
    Request,
    parse_cuda_versions,
    parse_framework,
    parse_versions,
)
from envsolve.model.solution import Choice, Problem, Solution
from envsolve.resolve.parts import CUDA, CUDNN, OWNER, PYTHON, Requirement, framework_identifier
from envsolve.resolve.solver import Solver
from envsolve.resolve.stack import passed_over

_TOOLKIT_NAMES = ("cuda", "toolkit", "cuda-toolkit", *CUDA_PACKAGES)
_CUDNN_NAMES = ("cudnn", *CUDNN_PACKAGES)
_NAMES = "python, cuda, cudnn, driver, owner"
_SPEC = "a framework, CUDA or Python with a version, or a package with kernels, such as pytorch==2.15 or flash-attn"


class Why(NamedTuple):
    """What an answer has under a name, and the facts that led to it."""

    name: str
    value: str
    facts: tuple[Fact, ...]


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


class Answers(NamedTuple):
    """The answers on one platform, and notes on its machine."""

    platform: str
    notes: tuple[Note, ...]
    why: tuple[Why, ...]
    why_not: tuple[WhyNot, ...]


class _Stack(NamedTuple):
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
        return f"{dependent}{_solution_text(self.solution)}"

    def about(self, package: str) -> list[Fact]:
        """What the notes of the lock say of the version of ``package``."""
        return [Fact(it.text, "the lock of this request") for it in self.notes if it.fields.get("name") == package]


def answer_questions(
    request: Request,
    names: Sequence[str],
    others: Sequence[str],
    matrix: Matrix,
    environ: Mapping[str, str],
    existing: ExistingVersions | None = None,
    network: Network | None = None,
) -> tuple[Answers, ...]:
    """Why the answer to ``request`` has each of ``names``, and why not each of ``others``, on each platform.

    The network is used for a dependent framework, whose stack is that of a lock, and for a package with kernels among
    the ``others``.

    Raises UsageError for a name that means nothing, UnsolvableError where there is no answer to ask about, OutsideError
    where an index fails.
    """
    solver = solver_of(request, matrix)
    network = network or Network()
    locked = stacks_with_locks(LockRequest(request, network), matrix, environ, existing)
    if locked is None:
        targets, solutions, _ = stacks_of(request, matrix, environ, solver, existing)
        stacks = [_Stack(*it) for it in zip(targets, solutions, strict=True)]
    else:
        stacks = [_Stack(*it, locked.about_versions) for it in locked.found]

    def why_no_wheel(text: str, platform: Platform) -> WhyNot | None:
        return _why_no_wheel(text, request._replace(platforms=(platform,)), matrix, environ, network)

    def locked_with(changed: Request) -> _Stack | None:
        found = stacks_with_locks(LockRequest(changed, network), matrix, environ)
        return None if found is None else _Stack(*found.found[0], found.about_versions)

    return tuple(_Questions(it, solver, matrix, why_no_wheel, locked_with).answers(names, others) for it in stacks)


def _why_no_wheel(
    text: str, request: Request, matrix: Matrix, environ: Mapping[str, str], network: Network
) -> WhyNot | None:
    """Whether a package with kernels has a wheel for the stack of a Python lock; None for other packages."""
    name = normalized(parse_framework(text)[0])
    if name in (*framework_names(matrix), "python", *_TOOLKIT_NAMES):
        return None
    from envsolve.app.any_lock.request_lock import make_lock
    from envsolve.app.lock.locking import WHEELS_ELSEWHERE
    from envsolve.app.packages.compiling import HOW_TO_COMPILE
    from envsolve.app.packages.wheel_ways import are_published, stack_text

    if not are_published([name]):
        return None
    request = request._replace(format="requirements")
    _, (stack,), _ = stacks_of(request, matrix, environ, solver_of(request, matrix))
    if stack.problem.cpu:
        raise UsageError("contradictory-options", f"the answer is a CPU environment, and {name} has code for GPUs")
    frameworks = ((it.release.framework, str(it.release.version)) for it in stack.choices)
    if name in DEPENDENT_FRAMEWORKS:  # each of its releases requires one of the framework: both are chosen anew
        others = (it for it in request.packages.requirements if _name_of(it) != name)
        packages = request.packages._replace(requirements=(*others, text))
        request = request._replace(packages=packages)
    else:
        packages = request.packages._replace(requirements=(*request.packages.requirements, text))
        pinned = tuple(FrameworkRequest(it, SpecifierSet(f"=={version}")) for it, version in frameworks)
        request = request._replace(frameworks=pinned, packages=packages)
    try:
        solved = make_lock(LockRequest(request, network), matrix, environ)
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


def _name_of(requirement: str) -> str:
    """The package that a requirement of the command line names; "" if it is an address alone."""
    try:
        return parse_need(requirement).name
    except ValueError:
        return ""


def _refused(text: str, error: UnsolvableError) -> WhyNot:
    facts = tuple(Fact(step.requirement, step.source or step.because) for step in error.conflict)
    return WhyNot(text, False, error.message, facts, error.constraints, error.hints)


class _Questions:
    """Questions about the answer for one target."""

    def __init__(
        self,
        stack: _Stack,
        solver: Solver,
        matrix: Matrix,
        why_no_wheel: Callable[[str, Platform], WhyNot | None],
        locked_with: Callable[[Request], _Stack | None],
    ) -> None:
        self._why_no_wheel, self._locked_with = why_no_wheel, locked_with
        target = stack.target
        self._request, self._problem, self._notes = target.request, target.problem, target.notes
        self._solver = solver
        self._matrix = matrix
        self._stack = stack
        self._solution = stack.solution
        self._requirements = solver.requirements(stack.solution)

    def answers(self, names: Sequence[str], others: Sequence[str]) -> Answers:
        """The answers, in the order of the questions."""
        why, why_not = tuple(map(self._why, names)), tuple(map(self._why_not, others))
        return Answers(self._problem.platform.value, self._notes, why, why_not)

    def _why(self, name: str) -> Why:
        answers: Mapping[str, Callable[[str], Why]] = {
            "python": self._python,
            "driver": self._driver,
            "owner": self._owner,
            **dict.fromkeys(_TOOLKIT_NAMES, self._toolkit),
            **dict.fromkeys(_CUDNN_NAMES, self._cudnn),
        }
        pin = self._stack.pin_of(normalized(name))
        if pin is not None:
            return self._dependent(name, pin)
        known = answers.get(name.lower())
        return known(name) if known is not None else self._framework(name, self._choice(name))

    def _choice(self, name: str) -> Choice:
        """The choice for ``name``: a framework, an alias, or the name of its package."""
        found = next((it for it in self._solution.choices if name.lower() == it.release.package), None)
        if found is not None:
            return found
        try:
            framework = framework_request(name, self._matrix).framework
        except EnvsolveError:
            raise self._unknown(name) from None
        found = next((it for it in self._solution.choices if it.release.framework == framework), None)
        if found is None:
            raise self._unknown(name)
        return found

    def _unknown(self, name: str) -> UsageError:
        dependent = (it for it in DEPENDENT_FRAMEWORKS if self._stack.pin_of(it) is not None)
        names = ", ".join((*dependent, *(choice.release.framework for choice in self._solution.choices)))
        return UsageError("unknown-name", f"the answer contains no {name!r}", (f"it contains: {names}, {_NAMES}",))

    def _facts(self, identifier: str) -> Iterator[Fact]:
        return (requirement.because for requirement in self._requirements.get(identifier, ()))

    def _framework(self, name: str, choice: Choice) -> Why:
        release = choice.release
        facts = [*self._facts(framework_identifier(release.framework))]
        facts += [
            Fact(f"it contains {runs_as}, which runs on compute capability {gpu}", release.reference)
            for gpu, runs_as in choice.runs_as.items()
        ]
        if self._stack.lock is not None:
            return Why(name, release.label, (*facts, *self._required_by_dependent(release)))
        facts += self._newer_than(release)
        elsewhere = [it.note.text for it in self._solution.newer_elsewhere if it.framework == release.framework]
        facts += [Fact(text, "an environment.yml prefers conda-forge") for text in elsewhere]
        return Why(name, release.label, tuple(facts))

    def _required_by_dependent(self, release: Release) -> Iterator[Fact]:
        """Which version of the framework a dependent one of the lock requires, as the lock says it."""
        about = self._stack.about(release.package)
        found = (self._stack.pin_of(it) for it in DEPENDENT_FRAMEWORKS)
        of = " and ".join(f"{it.name} {it.version}" for it in found if it is not None)
        yield from about or [Fact(f"it is the newest that {of} runs with", "the lock of this request")]

    def _dependent(self, name: str, pin: Pin) -> Why:
        labels = ", ".join(it.release.label for it in self._solution.choices)
        about = self._stack.about(pin.name)
        newest = Fact(f"{pin.version} is the newest {pin.name} that fits", f"--prefer {self._request.prefer}")
        facts = (Fact(f"{pin.name} was requested", "the request"), *(about or [newest]))
        return Why(name, f"{pin.name} {pin.version}", (*facts, Fact(f"it runs with {labels}", "the lock")))

    def _newer_than(self, release: Release) -> Iterator[Fact]:
        """Why the newest requested release was not chosen, or that it was."""
        requested = next(it for it in self._problem.frameworks if it.framework == release.framework)
        builds = self._solver.catalogue(self._problem).builds[release.framework]
        newest = next((it for it, _ in builds.by_version if requested.specifier.contains(it)), release.version)
        policy = f"--prefer {self._request.prefer}"
        if newest <= release.version:
            yield Fact(f"{release.version} is the newest {requested} in the matrix for this target", policy)
            return
        other = self._why_not(f"{release.framework}=={newest}")
        if other.fits:
            yield Fact(f"the newest is {newest}: {other.message}", policy)
        else:
            yield Fact(f"the newest, {newest}, does not fit: {other.message}", "a separate solve")

    def _toolkit(self, name: str) -> Why:
        toolkit = self._solution.toolkit
        if toolkit is None:
            return Why(name, "none", (self._cpu_fact(),))
        return Why(name, f"CUDA {toolkit.version}", (*self._facts(CUDA), self._choice_of_toolkit(toolkit)))

    def _choice_of_toolkit(self, toolkit: Toolkit) -> Fact:
        built = [it.release.label for it in self._solution.choices if it.release.cuda == toolkit.version]
        if built:
            text = f"of the toolkits that satisfy all of this, {built[0]} was built with {toolkit.version}"
        else:
            text = (
                f"of the toolkits that satisfy all of this, {toolkit.version} is the newest that every driver supports"
            )
        return Fact(text, f"--prefer {self._request.prefer}")

    def _cudnn(self, name: str) -> Why:
        solution = self._solution
        if solution.cudnn is None:
            none = Fact("no framework in the answer requires cuDNN", "the compatibility matrix")
            return Why(name, "none", (none if solution.toolkit is not None else self._cpu_fact(),))
        facts = [*self._facts(CUDNN)]
        bound = solution.cudnn_bound
        if bound is not None and bound.dropped is not None:
            text = f"cuDNN {bound.below} has no code for compute capability {bound.dropped}"
            facts.append(Fact(text, "; ".join(item.reference for item in solution.cudnn.evidence)))
        facts.append(Fact(f"{solution.cudnn.version} is the newest that fits", f"--prefer {self._request.prefer}"))
        return Why(name, f"cuDNN {solution.cudnn.version}", tuple(facts))

    def _python(self, name: str) -> Why:
        day = self._solver.catalogue(self._problem).day_of(self._request)
        young = passed_over(self._solution.choices, self._solution.python, day)
        last = Fact(f"{self._solution.python} is the newest of these{young}", f"--prefer {self._request.prefer}")
        return Why(name, f"Python {self._solution.python}", (*self._facts(PYTHON), last))

    def _driver(self, name: str) -> Why:
        floor = self._solution.minimum_driver
        if floor is None:
            return Why(name, "none", (self._cpu_fact(),))
        facts = [
            requirement for limits in self._requirements.values() for requirement in limits if _is_floor(requirement)
        ]
        return Why(name, f"NVIDIA driver {floor} or newer", tuple(dict.fromkeys(it.because for it in facts)))

    def _owner(self, name: str) -> Why:
        owner = self._solution.owner
        return Why(name, "none" if owner is None else owner.value, tuple(self._facts(OWNER)) or (self._cpu_fact(),))

    def _cpu_fact(self) -> Fact:
        return Fact("the answer is a CPU environment", "the request")

    def _why_not(self, text: str) -> WhyNot:
        _parsed(text)
        of_wheel = self._why_no_wheel(text, self._problem.platform)
        if of_wheel is not None:
            return of_wheel
        request, problem = self._with(text)
        if self._stack.lock is not None:
            return self._why_not_locked(text, request)
        solution = self._solver.solve(request, problem)
        if solution is None:
            return _refused(text, refusal(request, problem, self._solver))
        hint = Hint(f"to get {_solution_text(solution)}", command_of(_typed(request, solution)))
        if _solution_text(solution) == _solution_text(self._solution):
            return WhyNot(text, True, f"the answer already contains it: {_solution_text(solution)}", (), (), ())
        return WhyNot(text, True, self._liked_less(solution, _framework_of(text, self._matrix)), (), (), (hint,))

    def _why_not_locked(self, text: str, request: Request) -> WhyNot:
        """The same where a dependent framework has to go with the stack: only a lock knows that."""
        try:
            other = self._locked_with(request._replace(platforms=(self._problem.platform,)))
        except UnsolvableError as error:
            return _refused(text, error)
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
            return f"{_solution_text(other)} also fits; {policy} chooses {_solution_text(self._solution)}"
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


def _parsed(text: str) -> tuple[str, SpecifierSet]:
    """A name with versions; for Python and CUDA as in their options: ``python==3.14``, ``cuda==13``."""
    try:
        name, specifier = parse_framework(text)
    except ValueError as error:
        raise UsageError("invalid-requirement", f"{text!r} is not {_SPEC}") from error
    if name.lower() in (*_CUDNN_NAMES, "driver", "owner"):
        raise UsageError("invalid-requirement", f"--why-not takes {_SPEC}: {name} depends on these")
    if name.lower() not in ("python", *_TOOLKIT_NAMES):
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


def _is_floor(requirement: Requirement) -> bool:
    from envsolve.resolve.parts import DriverFloor

    return isinstance(requirement.limit, DriverFloor)


def _solution_text(solution: Solution) -> str:
    frameworks = " with ".join(choice.release.label for choice in solution.choices)
    cuda = "" if solution.toolkit is None else f" on CUDA {solution.toolkit.version}"
    return f"{frameworks}{cuda} and Python {solution.python}"


def _typed(request: Request, solution: Solution) -> Request:
    """The request for exactly this stack: sources that are not the first choice must be named."""
    sources = tuple(dict.fromkeys(choice.release.source for choice in solution.choices))
    return request if request.sources else request._replace(sources=sources)
