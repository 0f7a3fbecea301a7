"""The frameworks in a request for a lock: which packages are frameworks, and which CUDA and versions are required."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.packages.lock_indexes import Places
from envsolve.app.packages.mistaken_names import require_names_of_packages
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
from envsolve.model.request import FrameworkRequest, Request, versions_text
from envsolve.model.solution import Problem
from envsolve.resolve.closure.bounds import cuda_major_of

_CUDA_EXTRA = re.compile(r"and-cuda|cuda(\d\d)?(?:-pip)?")
_CPU_LABEL = "+cpu"
_PYTHONS = range(8, 20)


def with_frameworks(target: Target, wanted: Requirements, where: Places) -> Target:
    """``target`` with the frameworks in the requirements, and with the sources that its indexes can have.

    Constraints on a framework apply to the stack. An override replaces the requested versions. If markers require a
    framework only on some Pythons, the stack is for one of these. Versions that markers require only on some of the
    Pythons apply there, in the search (lock_worlds), and not to the stack on each of them. Raises UnsolvableError for a
    dependent framework without a wheel for the platform, or for the CPU, and for a name that is not the package of its
    framework.
    """
    python, holds = pythons_of_stack(wanted, {it.framework for it in target.request.frameworks}, target.problem)
    require_names_of_packages(wanted, target.request, holds)
    target = target.with_bounds(python=python)
    request, problem = target.request, target.problem
    require_wheels_of_dependents(target, wanted, holds)
    replaced = {FRAMEWORK_OF_WHEEL.get(it.name) for it in wanted.overrides}
    requested = {it.framework: ["" if it.framework in replaced else str(it.specifier)] for it in request.frameworks}
    cuda, pythons = request.cuda, _Pythons(problem)
    for need in _of_frameworks(wanted):
        if holds(need.marker):
            specifier = need.specifier if pythons.all_in(need.marker) else ""
            requested.setdefault(FRAMEWORK_OF_WHEEL[need.name], []).append(specifier)
            cuda = _with_extras(need, request, cuda)
    frameworks = tuple(
        FrameworkRequest(name, _all_of(specifiers) & constraint_on(wanted, name, problem))
        for name, specifiers in sorted(requested.items())
    )
    sources = request.sources or _sources(request, where)
    return target._replace(request=request._replace(sources=sources)).with_bounds(frameworks=frameworks, cuda=cuda)


def with_versions(problem: Problem, wanted: Requirements) -> Problem:
    """``problem`` with the versions of its frameworks that are required on every one of its Pythons."""
    pythons = _Pythons(problem)
    needs = [need for need in _of_frameworks(wanted) if need.marker and pythons.all_in(need.marker)]
    frameworks = tuple(
        it._replace(
            specifier=it.specifier
            & _all_of(need.specifier for need in needs if FRAMEWORK_OF_WHEEL[need.name] == it.framework)
            & constraint_on(wanted, it.framework, problem)
        )
        for it in problem.frameworks
    )
    return problem._replace(frameworks=frameworks)


def pythons_of_stack(
    wanted: Requirements, anyway: AbstractSet[str], problem: Problem
) -> tuple[SpecifierSet | None, Callable[[str], bool]]:
    """The allowed Pythons of the stack of ``problem``, and a function that says whether a marker holds on any of them.

    ``anyway`` are the frameworks that are requested for every Python in addition to ``wanted``.
    """
    python = _Pythons(problem).with_most(anyway, wanted)
    pythons = _Pythons(problem._replace(python=python))
    return python, lambda marker: bool(pythons.holding(marker))


def left_out(wanted: Requirements, pins: Sequence[Pin], interpreter: Interpreter) -> Iterator[Note]:
    """Notes on frameworks that are requested only for other Pythons, so that the lock does not have them."""
    there = {FRAMEWORK_OF_WHEEL[pin.name] for pin in pins if pin.name in FRAMEWORK_OF_WHEEL}
    yield from left_out_of_stack(wanted, there, interpreter)


def left_out_of_stack(wanted: Requirements, there: AbstractSet[str], interpreter: Interpreter) -> Iterator[Note]:
    """The same notes if the stack has the frameworks ``there``."""
    markers = Markers(interpreter.marker_values())
    version = interpreter.minor_version
    for need in _of_frameworks(wanted):
        if FRAMEWORK_OF_WHEEL[need.name] in there or not _is_about_python(need.marker) or markers.holds(need.marker):
            continue
        text = f"{need} is left out: its marker is {need.marker}, and the lock is for Python {version}"
        yield Note("left-out", text)


def _of_frameworks(wanted: Requirements) -> Iterator[Need]:
    """The requirements on frameworks by the names of their packages, each once."""
    yield from dict.fromkeys(need for need, _ in wanted.needs if need.name in FRAMEWORK_OF_WHEEL and not need.url)


def _all_of(specifiers: Iterable[str]) -> SpecifierSet:
    return SpecifierSet(",".join(dict.fromkeys(filter(None, specifiers))))


def _with_extras(need: Need, request: Request, cuda: SpecifierSet | None) -> SpecifierSet | None:
    """``cuda`` limited by the extras or the name of a framework's package. Raises UsageError for a contradiction."""
    for major in cuda_majors_in(need):
        cuda = with_major(cuda, major)
        if request.cuda and major and (request.cuda & SpecifierSet(f"=={major}.*")).is_unsatisfiable():
            setting = request.requester.setting("cuda", versions_text(request.cuda))
            message = f"{setting} and {need} request different versions of CUDA: give one of them"
            raise UsageError("contradictory-options", message)
        if request.wants_cpu:
            message = f"{request.requester.setting('gpus', 'none')} requests the CPU and {need} CUDA: give one of them"
            raise UsageError("contradictory-options", message)
    return cuda


def cuda_majors_in(need: Need) -> Iterator[str | None]:
    """The CUDA major versions in the extras and the name of a framework's package; None for any CUDA."""
    named = cuda_major_of(need.name)
    if named is not None:
        yield str(named)
    for word in need.extras:
        found = _CUDA_EXTRA.fullmatch(word)
        if found is not None:
            yield found[1]


class _Pythons:
    """The minor versions of Python 3 that a request allows, and those for which a marker holds on its platform."""

    def __init__(self, problem: Problem) -> None:
        self._requested = problem.python
        self._markers = {
            minor: Markers(
                Interpreter(python_of(problem.python, Version(f"3.{minor}")), problem.platform).marker_values()
            )
            for minor in _PYTHONS
            if _first_patch(problem.python, minor) is not None
        }
        self._known: dict[str, frozenset[int]] = {}

    def holding(self, marker: str) -> frozenset[int]:
        """The minor versions for which a marker holds; all without a marker."""
        if marker not in self._known:
            found = (minor for minor, markers in self._markers.items() if markers.holds(marker))
            self._known[marker] = frozenset(found) if marker else frozenset(_PYTHONS)
        return self._known[marker]

    def all_in(self, marker: str) -> bool:
        """Whether a marker holds for every allowed Python."""
        return self._markers.keys() <= self.holding(marker)

    def with_most(self, anyway: AbstractSet[str], wanted: Requirements) -> SpecifierSet | None:
        """The Pythons of the request for which the most frameworks are requested, if possible all.

        ``anyway`` are the frameworks requested for every Python. Of several equally large sets of frameworks, the set
        for the newest Python counts.
        """
        requested: dict[int, set[str]] = {minor: set(anyway) for minor in self._markers}
        for need in _of_frameworks(wanted):
            for minor in self.holding(need.marker) & requested.keys():
                requested[minor].add(FRAMEWORK_OF_WHEEL[need.name])
        if not requested:
            return self._requested
        best = max(sorted(requested, reverse=True), key=lambda minor: len(requested[minor]))
        return self._only({minor for minor, names in requested.items() if names == requested[best]})

    def _only(self, minors: AbstractSet[int]) -> SpecifierSet | None:
        """The Pythons of the request limited to ``minors``, with as few clauses as possible."""
        first, last = min(minors), max(minors)
        others = self._markers.keys() - minors
        clauses = [f">=3.{first}"] if min(others, default=first) < first else []
        clauses += [f"<3.{last + 1}"] if max(others, default=last) > last else []
        clauses += [f"!=3.{it}.*" for it in sorted(others) if first < it < last]
        return (self._requested or SpecifierSet()) & SpecifierSet(",".join(clauses)) if clauses else self._requested


def holding_on(problems: Iterable[Problem]) -> Callable[[str], bool]:
    """A function that says whether a marker holds on any Python and platform of ``problems``."""
    pythons = [_Pythons(it) for it in problems]
    return lambda marker: any(it.holding(marker) for it in pythons)


def constraint_on(wanted: Requirements, framework: str, problem: Problem) -> SpecifierSet:
    """The constraints on a framework that apply on every Python of ``problem``."""
    pythons = _Pythons(problem)
    return _all_of(
        need.specifier
        for need, _ in wanted.constraints
        if FRAMEWORK_OF_WHEEL.get(need.name) == framework and pythons.all_in(need.marker)
    )


def requires_cuda(wanted: Requirements, problem: Problem) -> bool:
    """Whether a requirement names CUDA, as ``tensorflow[and-cuda]``, or is only for GPUs, as ``vllm``.

    If so, the user wants a GPU even if this machine has none.
    """
    holds = holding_on([problem])
    needs = [need for need, _ in wanted.needs if holds(need.marker)]
    dependent = (it for it in map(dependent_of, needs) if it is not None)
    if any(problem.platform in it.platforms for it in dependent):
        return True
    return any(True for it in needs if it.name in FRAMEWORK_OF_WHEEL for _ in cuda_majors_in(it))


def dependent_of(need: Need) -> DependentFramework | None:
    """The dependent framework whose GPU wheels a requirement allows; None for an address or a CPU build."""
    return None if need.url or _CPU_LABEL in need.specifier else DEPENDENT_FRAMEWORKS.get(need.name)


def require_wheels_of_dependents(target: Target, wanted: Requirements, holds: Callable[[str], bool]) -> None:
    """Raise UnsolvableError for a dependent framework without a wheel for the platform, or for the CPU."""
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
            hints = [Hint(f"name the GPU with {request.requester.name_of('gpus')}")]
            if known.cpu_index is not None:
                index = request.requester.setting("extra-index-urls", known.cpu_index)
                build = f"{known.name}==VERSION{_CPU_LABEL}"
                hints.append(Hint(f"{known.title} has builds for the CPU elsewhere: '{build}' with {index}"))
        else:
            continue
        cause = f"{need} was requested by {origin}"
        refused = (Refused(known.name, place_of(origin, known.name), message),)
        raise UnsolvableError("no-wheel", message, (cause,), tuple(hints), refused=refused)


def depends_on_python(wanted: Requirements) -> bool:
    """Whether a framework is required by markers on the Python. If so, the Python depends on the stack."""
    requested = (need for need, _ in (*wanted.needs, *wanted.constraints) if need.name in FRAMEWORK_OF_WHEEL)
    return any(_is_about_python(need.marker) for need in requested)


def _is_about_python(marker: str) -> bool:
    return re.search("python_(full_)?version", marker) is not None


def with_major(cuda: SpecifierSet | None, major: str | None) -> SpecifierSet | None:
    """``cuda`` limited to one major version; unchanged for None."""
    return cuda if major is None else SpecifierSet(f"=={major}.*") & (cuda or SpecifierSet())


def require_wheels(request: Request) -> None:
    """Raise UsageError if a requested source has no wheels."""
    for source in request.sources:
        if not source.is_wheel:
            hint = Hint("to use conda packages, write an environment: --format environment")
            message = f"the source {source} has conda packages, which a Python lock cannot contain"
            raise UsageError("contradictory-options", message, hints=(hint,))


def _sources(request: Request, where: Places) -> tuple[Source, ...]:
    """The sources to use. A named index replaces all others; PyTorch's is used only if its address is set, too."""
    if where.is_plain or request.packages.pytorch_index_url is not None:
        return ()
    return (Source.PYPI,)


def python_of(requested: SpecifierSet | None, minor: Version | None) -> tuple[int, int, int]:
    """The full Python version of a lock: the requested one, or else the first patch of the minor version.

    If no stack decides the minor version, it is that of the Python that runs envsolve if it is allowed, or else the
    oldest allowed one. Without a request it is the running Python itself. Raises UsageError if no version is allowed.
    """
    running = sys.version_info
    if minor is not None:
        return minor.major, minor.minor, _first_patch(requested, minor.minor) or 0
    if requested is None:
        return running[0], running[1], running[2]
    for number in (running[1], *_PYTHONS):
        patch = _first_patch(requested, number)
        if patch is not None:
            return 3, number, patch
    raise UsageError("python-not-supported", f"no CPython 3 satisfies {requested}")


def _first_patch(requested: SpecifierSet | None, minor: int) -> int | None:
    """The first requested patch of a minor version. Only named patches and those after them need a check."""
    if requested is None:
        return 0
    named = {Version(clause.version.removesuffix(".*")).micro for clause in requested}
    return next(
        (it for it in sorted({0, *named, *(it + 1 for it in named)}) if requested.contains(f"3.{minor}.{it}")), None
    )
