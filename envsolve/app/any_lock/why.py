"""Questions about an answer: why it has something, and why not something else.

``why`` gives the requirements on a thing, and what decided between the remaining candidates; ``why not`` is
:mod:`envsolve.app.any_lock.why_not`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from envsolve.app.any_lock.environment_file import stacks_with_locks
from envsolve.app.any_lock.why_not import CUDNN_NAMES, TOOLKIT_NAMES, Alternatives, Stack, WhyNot
from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.request.channel_order import solver_of
from envsolve.app.request.network import Network
from envsolve.app.solve.solving import ExistingVersions, framework_request, stacks_of
from envsolve.errors import EnvsolveError, UsageError
from envsolve.frameworks import DEPENDENT_FRAMEWORKS
from envsolve.matrix.load import Matrix
from envsolve.model.fact import Fact
from envsolve.model.names import normalized
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.prose import sentence_list
from envsolve.model.release import Release, Toolkit
from envsolve.model.request import (
    Request,
)
from envsolve.model.solution import Choice
from envsolve.resolve.parts import CUDA, CUDNN, OWNER, PYTHON, Requirement, framework_identifier
from envsolve.resolve.solver import Solver
from envsolve.resolve.stack import passed_over

_NAMES = "python, cuda, cudnn, driver, owner"


class Why(NamedTuple):
    """What an answer has under a name, and the facts that led to it."""

    name: str
    value: str
    facts: tuple[Fact, ...]


class Answers(NamedTuple):
    """The answers on one platform, and notes on its machine."""

    platform: str
    notes: tuple[Note, ...]
    why: tuple[Why, ...]
    why_not: tuple[WhyNot, ...]


def answer_questions(
    request: Request,
    names: Sequence[str],
    others: Sequence[str],
    matrix: Matrix,
    environ: Mapping[str, str],
    existing: ExistingVersions | None,
    network: Network,
) -> tuple[Answers, ...]:
    """Why the answer to ``request`` has each of ``names``, and why not each of ``others``, on each platform.

    The network is used for a dependent framework, whose stack is that of a lock, and for a package with kernels among
    the ``others``.

    Raises UsageError for an unknown name; UnsolvableError if there is no answer to ask about; OutsideError if an index
    fails.
    """
    solver = solver_of(request, matrix)
    locked = stacks_with_locks(LockRequest(request, network), matrix, environ, existing)
    if locked is None:
        targets, solutions, _ = stacks_of(request, matrix, environ, solver, existing)
        stacks = [Stack(*it) for it in zip(targets, solutions, strict=True)]
    else:
        stacks = [Stack(*it, locked.about_versions) for it in locked.found]

    def answers(stack: Stack) -> Answers:
        alternatives = Alternatives(request, stack, solver, matrix, environ, network)
        return _Questions(stack, solver, matrix, alternatives).answers(names, others)

    return tuple(map(answers, stacks))


class _Questions:
    """Questions about the answer for one target."""

    def __init__(self, stack: Stack, solver: Solver, matrix: Matrix, alternatives: Alternatives) -> None:
        self._request, self._problem, self._notes = stack.target.request, stack.target.problem, stack.target.notes
        self._solver, self._matrix, self._alternatives = solver, matrix, alternatives
        self._stack, self._solution = stack, stack.solution
        self._requirements = solver.requirements(stack.solution)

    def answers(self, names: Sequence[str], others: Sequence[str]) -> Answers:
        """The answers, in the order of the questions."""
        why, why_not = tuple(map(self._why, names)), tuple(map(self._alternatives.why_not, others))
        return Answers(self._problem.platform.value, self._notes, why, why_not)

    def _why(self, name: str) -> Why:
        answers: Mapping[str, Callable[[str], Why]] = {
            "python": self._python,
            "driver": self._driver,
            "owner": self._owner,
            **dict.fromkeys(TOOLKIT_NAMES, self._toolkit),
            **dict.fromkeys(CUDNN_NAMES, self._cudnn),
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
        of = sentence_list(f"{it.name} {it.version}" for it in found if it is not None)
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
        other = self._alternatives.why_not(f"{release.framework}=={newest}")
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
            text = f"CUDA {toolkit.version} satisfies all of this, and {built[0]} was built with it"
        else:
            text = f"CUDA {toolkit.version} is the newest that satisfies all of this and that every driver supports"
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


def _is_floor(requirement: Requirement) -> bool:
    from envsolve.resolve.parts import DriverFloor

    return isinstance(requirement.limit, DriverFloor)
