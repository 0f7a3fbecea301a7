"""The frameworks in a request for a lock: which packages are one, and what requirements say of CUDA and versions."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.packages.lock_indexes import Places
from envsolve.app.packages.requirements import Requirements
from envsolve.app.request.targets import Target
from envsolve.errors import Hint, Refused, UnsolvableError, UsageError
from envsolve.frameworks import DEPENDENT_FRAMEWORKS, FRAMEWORK_OF_WHEEL, DependentFramework
from envsolve.index.fitting import Interpreter
from envsolve.index.requirement_file import place_of
from envsolve.model.need import Markers, Need
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Problem
from envsolve.resolve.closure.bounds import cuda_major_of

_CUDA_EXTRA = re.compile(r"and-cuda|cuda(\d\d)?(?:-pip)?")
_CPU_LABEL = "+cpu"
_PYTHONS = range(8, 20)


def with_frameworks(target: Target, wanted: Requirements, where: Places) -> Target:
    """``target`` with the frameworks among the requirements, and the wheels that its indexes can have.

    What constraints say of a framework counts for the stack, which is solved before the packages around it; an
    override replaces the versions that are requested. Where
    markers ask for a framework on some Pythons alone, the stack is for one of them. Raises UnsolvableError for a
    dependent framework that has no wheel for the platform, or for the CPU.
    """
    python, holds = pythons_of_stack(wanted, {it.framework for it in target.request.frameworks}, target.problem)
    target = target.asking(python=python)
    request, problem = target.request, target.problem
    require_wheels_of_dependents(target, wanted, holds)
    replaced = {FRAMEWORK_OF_WHEEL.get(it.name) for it in wanted.overrides}
    asked = {it.framework: ["" if it.framework in replaced else str(it.specifier)] for it in request.frameworks}
    cuda = request.cuda
    for need in _of_frameworks(wanted):
        if holds(need.marker):
            asked.setdefault(FRAMEWORK_OF_WHEEL[need.name], []).append(need.specifier)
            cuda = _with_extras(need, request, cuda)
    frameworks = tuple(
        FrameworkRequest(name, _all_of(specifiers) & constraint_on(wanted, name, problem))
        for name, specifiers in sorted(asked.items())
    )
    sources = request.sources or _sources(request, where)
    return target._replace(request=request._replace(sources=sources)).asking(frameworks=frameworks, cuda=cuda)


def pythons_of_stack(
    wanted: Requirements, anyway: AbstractSet[str], problem: Problem
) -> tuple[SpecifierSet | None, Callable[[str], bool]]:
    """The Pythons that the stack of ``problem`` may be for, and whether a marker holds on any of them.

    ``anyway`` are the frameworks that are requested beside ``wanted``, whatever the Python.
    """
    python = _Pythons(problem).with_most(anyway, wanted)
    pythons = _Pythons(problem._replace(python=python))
    return python, lambda marker: bool(pythons.holding(marker))


def left_out(wanted: Requirements, pins: Sequence[Pin], interpreter: Interpreter) -> Iterator[Note]:
    """The frameworks that are requested on other Pythons alone and that a lock therefore has not."""
    there = {FRAMEWORK_OF_WHEEL[pin.name] for pin in pins if pin.name in FRAMEWORK_OF_WHEEL}
    yield from left_out_of_stack(wanted, there, interpreter)


def left_out_of_stack(wanted: Requirements, there: AbstractSet[str], interpreter: Interpreter) -> Iterator[Note]:
    """The same where ``there`` are the frameworks of the stack."""
    markers = Markers(interpreter.marker_values())
    version = ".".join(map(str, interpreter.python[:2]))
    for need in _of_frameworks(wanted):
        if FRAMEWORK_OF_WHEEL[need.name] in there or not _is_about_python(need.marker) or markers.holds(need.marker):
            continue
        text = f"{need} is left out: its marker is {need.marker}, and the lock is for Python {version}"
        yield Note("left-out", text)


def _of_frameworks(wanted: Requirements) -> Iterator[Need]:
    """What is asked of frameworks by the names of their packages, each once."""
    yield from dict.fromkeys(need for need, _ in wanted.needs if need.name in FRAMEWORK_OF_WHEEL and not need.url)


def _all_of(specifiers: Iterable[str]) -> SpecifierSet:
    return SpecifierSet(",".join(dict.fromkeys(filter(None, specifiers))))


def _with_extras(need: Need, request: Request, cuda: SpecifierSet | None) -> SpecifierSet | None:
    """``cuda`` with what a framework's extras, or its name, say of it. Raises UsageError if CPU is requested."""
    for major in _cuda_asked_by(need):
        cuda = with_major(cuda, major)
        if request.wants_cpu:
            message = f"{request.asker.saying('gpus', 'none')} requests the CPU and {need} CUDA: give one of them"
            raise UsageError("contradictory-options", message)
    return cuda


def _cuda_asked_by(need: Need) -> Iterator[str | None]:
    """The CUDA majors in the extras of a framework and in its name; None for CUDA of any major."""
    named = cuda_major_of(need.name)
    if named is not None:
        yield str(named)
    for word in need.extras:
        found = _CUDA_EXTRA.fullmatch(word)
        if found is not None:
            yield found[1]


class _Pythons:
    """The minors of Python 3 that a request admits, and which of them markers hold for on its platform."""

    def __init__(self, problem: Problem) -> None:
        self._asked = problem.python
        self._markers = {
            minor: Markers(
                Interpreter(python_of(problem.python, Version(f"3.{minor}")), problem.platform).marker_values()
            )
            for minor in _PYTHONS
            if _first_patch(problem.python, minor) is not None
        }
        self._known: dict[str, frozenset[int]] = {}

    def holding(self, marker: str) -> frozenset[int]:
        """The minors that a marker holds for; all that there are for none."""
        if marker not in self._known:
            found = (minor for minor, markers in self._markers.items() if markers.holds(marker))
            self._known[marker] = frozenset(found) if marker else frozenset(_PYTHONS)
        return self._known[marker]

    def with_most(self, anyway: AbstractSet[str], wanted: Requirements) -> SpecifierSet | None:
        """The Pythons of the request on which the most frameworks are requested, all of them where that can be.

        ``anyway`` are the frameworks requested whatever the Python. Among several sets of as many frameworks it is the
        one that the newest Python has.
        """
        asked: dict[int, set[str]] = {minor: set(anyway) for minor in self._markers}
        for need in _of_frameworks(wanted):
            for minor in self.holding(need.marker) & asked.keys():
                asked[minor].add(FRAMEWORK_OF_WHEEL[need.name])
        if not asked:
            return self._asked
        best = max(sorted(asked, reverse=True), key=lambda minor: len(asked[minor]))
        return self._only({minor for minor, names in asked.items() if names == asked[best]})

    def _only(self, minors: AbstractSet[int]) -> SpecifierSet | None:
        """The Pythons of the request that are of ``minors``, as few clauses as say so."""
        first, last = min(minors), max(minors)
        others = self._markers.keys() - minors
        clauses = [f">=3.{first}"] if min(others, default=first) < first else []
        clauses += [f"<3.{last + 1}"] if max(others, default=last) > last else []
        clauses += [f"!=3.{it}.*" for it in sorted(others) if first < it < last]
        return (self._asked or SpecifierSet()) & SpecifierSet(",".join(clauses)) if clauses else self._asked


def holding_on(problems: Iterable[Problem]) -> Callable[[str], bool]:
    """Whether a marker holds on any Python and platform of ``problems``."""
    pythons = [_Pythons(it) for it in problems]
    return lambda marker: any(it.holding(marker) for it in pythons)


def constraint_on(wanted: Requirements, framework: str, problem: Problem) -> SpecifierSet:
    """What constraint files say of the versions of a framework."""
    pythons = _Pythons(problem)
    return _all_of(
        need.specifier
        for need, _ in wanted.constraints
        if FRAMEWORK_OF_WHEEL.get(need.name) == framework and pythons.holding(need.marker)
    )


def asks_for_cuda(wanted: Requirements, problem: Problem) -> bool:
    """Whether a requirement names CUDA, as ``tensorflow[and-cuda]`` does, or is for GPUs alone, as ``vllm`` is.

    Then a GPU is wanted, there or not.
    """
    holds = holding_on([problem])
    needs = [need for need, _ in wanted.needs if holds(need.marker)]
    dependent = (it for it in map(dependent_of, needs) if it is not None)
    if any(problem.platform in it.platforms for it in dependent):
        return True
    return any(True for it in needs if it.name in FRAMEWORK_OF_WHEEL for _ in _cuda_asked_by(it))


def dependent_of(need: Need) -> DependentFramework | None:
    """The dependent framework whose wheels for GPUs a requirement admits; none for an address or a CPU build."""
    return None if need.url or _CPU_LABEL in need.specifier else DEPENDENT_FRAMEWORKS.get(need.name)


def require_wheels_of_dependents(target: Target, wanted: Requirements, holds: Callable[[str], bool]) -> None:
    """Raise UnsolvableError for a dependent framework that has no wheel for the platform, or for the CPU."""
    request, problem = target.request, target.problem
    for need, origin in wanted.needs:
        known = dependent_of(need) if holds(need.marker) else None
        if known is None:
            continue
        if problem.platform not in known.platforms:
            if request.packages.allow_builds:
                continue
            message = f"{known.name} has no wheel for {problem.platform}, only for {' and '.join(known.platforms)}"
            hints = [Hint("lock it in WSL2, where it is Linux")] if problem.platform.is_windows else []
        elif problem.cpu and not target.fell_to_cpu:
            message = f"the wheels of {known.name} on the Python index need an NVIDIA GPU"
            hints = [Hint(f"name the GPU with {request.asker.named('gpus')}")]
            if known.cpu_index is not None:
                index = request.asker.saying("extra-index-urls", known.cpu_index)
                build = f"{known.name}==VERSION{_CPU_LABEL}"
                hints.append(Hint(f"{known.title} has builds for the CPU elsewhere: '{build}' with {index}"))
        else:
            continue
        cause = f"{need} was requested by {origin}"
        refused = (Refused(known.name, place_of(origin, known.name), message),)
        raise UnsolvableError("no-wheel", message, (cause,), tuple(hints), refused=refused)


def depends_on_python(wanted: Requirements) -> bool:
    """Whether markers ask for a framework by the Python, which the stack decides on: all of them count for it."""
    asked = (need for need, _ in (*wanted.needs, *wanted.constraints) if need.name in FRAMEWORK_OF_WHEEL)
    return any(_is_about_python(need.marker) for need in asked)


def _is_about_python(marker: str) -> bool:
    return re.search("python_(full_)?version", marker) is not None


def with_major(cuda: SpecifierSet | None, major: str | None) -> SpecifierSet | None:
    """``cuda`` with one major alone; None leaves it as it is."""
    return cuda if major is None else SpecifierSet(f"=={major}.*") & (cuda or SpecifierSet())


def require_wheels(request: Request) -> None:
    """Raise UsageError if a source is named that has no wheels."""
    for source in request.sources:
        if not source.is_wheel:
            hint = Hint("to use conda packages, write an environment: --format environment")
            message = f"the source {source} has conda packages, which a Python lock cannot contain"
            raise UsageError("contradictory-options", message, hints=(hint,))


def _sources(request: Request, where: Places) -> tuple[Source, ...]:
    """An index that is named stands for all: PyTorch's own is then asked only where it has an address of its own."""
    if where.is_plain or request.packages.pytorch_index_url is not None:
        return ()
    return (Source.PYPI,)


def python_of(asked: SpecifierSet | None, minor: Version | None) -> tuple[int, int, int]:
    """The full version a lock is for: the one that is named, or the first of the minor, which every later one follows.

    Without a stack to decide on the minor it is that of the Python that runs envsolve, where that is requested, else
    the oldest that is; where nothing is requested, it is this Python itself. Raises UsageError if there is none.
    """
    running = sys.version_info
    if minor is not None:
        return minor.major, minor.minor, _first_patch(asked, minor.minor) or 0
    if asked is None:
        return running[0], running[1], running[2]
    for number in (running[1], *_PYTHONS):
        patch = _first_patch(asked, number)
        if patch is not None:
            return 3, number, patch
    raise UsageError("python-not-supported", f"no CPython 3 satisfies {asked}")


def _first_patch(asked: SpecifierSet | None, minor: int) -> int | None:
    """The first patch of a minor that is requested: only at those that are named can a range begin or go on."""
    if asked is None:
        return 0
    named = {Version(clause.version.removesuffix(".*")).micro for clause in asked}
    return next(
        (it for it in sorted({0, *named, *(it + 1 for it in named)}) if asked.contains(f"3.{minor}.{it}")), None
    )
