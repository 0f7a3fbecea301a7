"""Python locks: the stack for the GPU, then everything it and the requirements need, from package indexes.

The stack is solved first, and bounds the packages around it (envsolve.solve.closure.bounds). Where the packages cannot
be had with it, the next best stack is tried: an older Python first, then an older framework. A framework that only
turns up as a dependency joins the stack, so that it is never one for another GPU or for none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve import __version__
from envsolve.app.asked_packages import COMMAND_LINE, Given, for_target, given
from envsolve.app.command import command_of
from envsolve.app.lock_indexes import OF_PYTORCH, Lines, Network, Places, places, settings_of
from envsolve.app.solving import Solved, matrix_date_of, request_without_credentials
from envsolve.app.targets import Target, targets_of
from envsolve.app.unchanged import Grounds
from envsolve.errors import Hint, UnsolvableError, UsageError
from envsolve.index.client import Indexes
from envsolve.index.configured import LOOKED_FOR
from envsolve.index.fitting import ASSUMED_GLIBC, Interpreter, platform_tags
from envsolve.lock.answer import Answer
from envsolve.lock.formats import write_python_lock
from envsolve.lock.held_pins import HeldPin
from envsolve.lock.python_lock import PythonLock
from envsolve.lock.wheels import PYTORCH_INDEX, find_links_of, goes_by_folder
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.model.need import Markers, Need
from envsolve.model.package import Closure, Pin
from envsolve.model.package import Target as LockTarget
from envsolve.model.release import Release, Source
from envsolve.model.request import FrameworkRequest, Held, Policy, Request, without_credentials
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.solve.closure.bounds import THE_STACK, Bounds, cuda_major_of
from envsolve.solve.closure.releases import Wanted
from envsolve.solve.closure.resolve import Conflict, Progress, Question, pins_of
from envsolve.solve.closure.told import contested, involved
from envsolve.solve.closure.world import Limit
from envsolve.solve.solver import Solver

FRAMEWORK_OF = {
    "torch": "pytorch",
    "tensorflow": "tensorflow",
    "jax": "jax",
    "onnxruntime-gpu": "onnxruntime",
    "paddlepaddle-gpu": "paddlepaddle",
    "cupy-cuda11x": "cupy",
    "cupy-cuda12x": "cupy",
    "cupy-cuda13x": "cupy",
}
"""Packages that are a GPU framework, however they come into a request."""
_RIVALS = {
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino"),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "intel-tensorflow"),
    "paddlepaddle": ("paddlepaddle", "paddlepaddle-gpu"),
    "cupy": ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"),
}
"""Packages that install the same module; an environment holds one of them."""
_WHOLE = {"tensorflow-cpu": "tensorflow"}
"""Builds for the CPU that go by a name of their own, and what all other packages ask for, which runs there as well."""
_CUDA_EXTRA = re.compile(r"and-cuda|cuda(\d\d)?(?:-pip)?")
_MOST_STACKS = 24
_FEW = 4
_PYTHONS = range(8, 20)
_PATCHES = 40


class LockRequest(NamedTuple):
    """A request for a Python lock. ``held`` are the pins of the lock that is there already, for a platform."""

    request: Request
    network: Network = Network()
    held: Callable[[Platform], tuple[tuple[HeldPin, ...], Held]] = lambda _: ((), Held())
    progress: Progress | None = None


class _Attempt(NamedTuple):
    """One stack, or none where no framework is involved, and the problem it solves."""

    request: Request
    problem: Problem
    solution: Solution | None


class Locked(NamedTuple):
    """The locks, and what they rest on; None where the same command may give others without a sign of it."""

    solved: Solved
    grounds: Grounds | None


def lock(asked: LockRequest, matrix: Matrix, environ: Mapping[str, str]) -> Locked:
    """The Python lock for each platform of the request, in its format.

    Raises UsageError, UnsolvableError where no stack or no set of packages fits, OutsideError where an index fails.
    """
    request, hidden = request_without_credentials(asked.request)
    wanted = given(request.packages)
    settings = settings_of(environ)
    where = places(asked.request, wanted, settings)
    lines = Lines(asked.network, settings, environ, builds=request.packages.allow_builds)
    try:
        lines.have_pages([need.name for need, _ in wanted.needs if not need.url], where)
        _require_wheels(request)
        targets = [_with_frameworks(target, wanted, where) for target in targets_of(request, matrix, environ)]
        locks = [_Lock(asked, matrix, target, wanted, where, lines).made() for target in targets]
    finally:
        lines.close()
    texts = tuple((made.platform, write_python_lock(made.lock, request.format)) for made in locks)
    solutions = tuple(made.solution for made in locks if made.solution is not None)
    notes = (*(note for made in locks for note in made.notes), *where.notes, *lines.notes, *hidden)
    solved = Solved(texts, tuple(dict.fromkeys(notes)), solutions)
    return Locked(solved, _grounds(asked.request, wanted, matrix, lines))


def _grounds(request: Request, wanted: Given, matrix: Matrix, lines: Lines) -> Grounds | None:
    if not wanted.is_fixed:
        return None
    tables = (str(path) for path in matrix.directory.glob("*.toml"))
    detected = not request.hosts and (not request.gpus or request.gpus == ("auto",))
    files = (*wanted.files, *request.hosts, *tables, *LOOKED_FOR)
    return Grounds(tuple(files), lines.pool.expires, detected)


def _with_frameworks(target: Target, wanted: Given, where: Places) -> Target:
    """``target`` with the frameworks among the requirements, and the wheels that its indexes can have.

    What constraints say of a framework counts for the stack, which is solved before the packages around it.
    """
    request, problem = target.request, target.problem
    asked = {it.framework: it.specifier for it in request.frameworks}
    cuda = request.cuda
    for need, _ in wanted.needs:
        framework = FRAMEWORK_OF.get(need.name)
        if framework is None or need.url or not _may_hold(need.marker, problem):
            continue
        asked[framework] = asked.get(framework, SpecifierSet()) & SpecifierSet(need.specifier)
        cuda = _with_extras(need, request, cuda)
    frameworks = tuple(
        FrameworkRequest(name, specifier & _constraint(wanted, name, problem)) for name, specifier in asked.items()
    )
    sources = request.sources or _sources(request, where)
    return target._replace(
        request=request._replace(frameworks=frameworks, cuda=cuda, sources=sources),
        problem=problem._replace(frameworks=frameworks, cuda=cuda),
    )


def _with_extras(need: Need, request: Request, cuda: SpecifierSet | None) -> SpecifierSet | None:
    """``cuda`` with what a framework's extras, or its name, say of it. Raises UsageError where CPU is asked for."""
    for major in _cuda_asked_by(need):
        cuda = _and_major(cuda, major)
        if request.wants_cpu:
            message = f"--gpu none asks for CPU and {need} for CUDA: give one of them"
            raise UsageError("contradictory-options", message)
    return cuda


def _cuda_asked_by(need: Need) -> Iterator[str | None]:
    """The CUDA majors in the extras of a framework and in its name; None for CUDA of any major."""
    for word in (*need.extras, need.name.removeprefix("cupy-").removesuffix("x")):
        found = _CUDA_EXTRA.fullmatch(word)
        if found is not None:
            yield found[1]


def _may_hold(marker: str, problem: Problem) -> bool:
    """Whether a marker holds on the platform for some Python of the request: which one, the stack decides later."""
    return not marker or any(
        Markers(Interpreter(_python(admitted, Version(f"3.{minor}")), problem.platform).marker_values()).holds(marker)
        for minor in _PYTHONS
        if (admitted := problem.python) is None or _admits(admitted, minor)
    )


def _admits(python: SpecifierSet, minor: int) -> bool:
    return any(python.contains(f"3.{minor}.{patch}") for patch in range(_PATCHES))


def _constraint(wanted: Given, framework: str, problem: Problem) -> SpecifierSet:
    """What constraint files say of the versions of a framework."""
    found = [
        need.specifier
        for need, _ in wanted.constraints
        if FRAMEWORK_OF.get(need.name) == framework and _may_hold(need.marker, problem)
    ]
    return SpecifierSet(",".join(filter(None, found)))


def _asks_for_cuda(wanted: Given) -> bool:
    """Whether a requirement names CUDA, as ``tensorflow[and-cuda]`` does: a GPU is wanted, there or not."""
    return any(True for need, _ in wanted.needs if need.name in FRAMEWORK_OF for _ in _cuda_asked_by(need))


def _and_major(cuda: SpecifierSet | None, major: str | None) -> SpecifierSet | None:
    return cuda if major is None else SpecifierSet(f"=={major}.*") & (cuda or SpecifierSet())


def _require_wheels(request: Request) -> None:
    for source in request.sources:
        if not source.is_wheel:
            hint = Hint("for conda packages write an environment: --format environment")
            message = f"the source {source} has conda packages, which a Python lock cannot hold"
            raise UsageError("contradictory-options", message, hints=(hint,))


def _sources(request: Request, where: Places) -> tuple[Source, ...]:
    """An index that is named stands for all: PyTorch's own is then asked only where it has an address of its own."""
    if where.is_plain or request.packages.pytorch_index_url is not None:
        return ()
    return (Source.PYPI,)


class _Made(NamedTuple):
    platform: Platform
    lock: PythonLock
    solution: Solution | None
    notes: tuple[str, ...]


class _Lock:
    """The lock for one target: tries stacks until the packages around one can be had."""

    def __init__(
        self, asked: LockRequest, matrix: Matrix, target: Target, wanted: Given, where: Places, lines: Lines
    ) -> None:
        self._asked, self._matrix, self._target = asked, matrix, target
        self._wanted, self._where, self._lines = wanted, where, lines
        self._solver = Solver(matrix)
        self._pins, self._held = asked.held(target.problem.platform)

    def made(self) -> _Made:
        """The lock. Raises UnsolvableError, OutsideError."""
        first: UnsolvableError | None = None
        attempt: _Attempt | None = self._first()
        for _ in range(_MOST_STACKS):
            if attempt is None:
                break
            try:
                pins = self._packages(attempt)
            except Conflict as conflict:
                from envsolve.app.lock_refusal import NOT_ON_INDEX, packages_refusal

                stack = attempt.request, attempt.solution, self._interpreter(attempt)
                refused = packages_refusal(conflict, *stack)
                if first is None or (first.code == NOT_ON_INDEX != refused.code):
                    first = refused
                attempt = self._next(attempt, conflict)
                continue
            except UnsolvableError as error:
                raise first or error from None
            joined = self._joined(attempt, pins)
            if joined is None:
                return self._finished(attempt, pins, first)
            attempt = self._solved(*joined)
        assert first is not None
        raise first

    def _first(self) -> _Attempt:
        request, problem = self._target.request, self._target.problem
        held = self._held._replace(packages=tuple(it for it in self._held.packages if self._stays(it[0])))
        if any(name in FRAMEWORK_OF and not self._stays(name) for name, _, _ in self._held.packages):
            others = tuple(it for it in held.packages if it[0] in FRAMEWORK_OF)
            held = held._replace(packages=others, cuda=None)  # its libraries would hold the framework back
        if held.packages and request.prefer is Policy.NEWEST_FRAMEWORK:
            request = request._replace(prefer=Policy.LOCKED, held=held)
        return self._solved(request, problem)

    def _stays(self, name: str) -> bool:
        """Whether the pin of a package is kept; ``-P`` may name a framework as ``-f`` does."""
        packages = self._asked.request.packages
        names = {normalized(it) for it in packages.upgraded}
        return not packages.upgrade and not names & {name, FRAMEWORK_OF.get(name, name)}

    def _solved(self, request: Request, problem: Problem) -> _Attempt:
        """The best stack for ``problem``. Raises UnsolvableError where there is none."""
        if not problem.frameworks:
            return _Attempt(request, problem, None)
        if problem.cpu and self._target.fell_to_cpu and _asks_for_cuda(self._wanted):
            machine = Machine(None, (), problem.machines[0].glibc)
            problem = problem._replace(cpu=False, machines=(machine,))
        solution = self._solver.solve(request, problem)
        if solution is not None:
            return _Attempt(request, problem, self._named_as_asked(solution))
        if problem.cpu and self._target.fell_to_cpu and not self._where.is_plain:
            return _Attempt(request, problem, None)
        from envsolve.app.lock_refusal import stack_refusal

        raise stack_refusal(request, problem, self._solver, typed=self._asked.request)

    def _next(self, attempt: _Attempt, conflict: Conflict) -> _Attempt | None:
        """The next best stack after one whose packages conflict; None where another stack would change nothing."""
        solution = attempt.solution
        if solution is None:
            return None
        whole = _whole(solution)
        packages = {choice.release.package for choice in (*solution.choices, *whole.choices)}
        if whole != solution and packages & involved(conflict):
            return attempt._replace(solution=whole)
        for request, problem in self._others(attempt, solution, conflict):
            found = self._solver.solve(request, problem)
            if found is not None:
                return _Attempt(request, problem, self._named_as_asked(found))
        return None

    def _named_as_asked(self, solution: Solution) -> Solution:
        """``solution`` with the packages that requirements name: only ``--framework`` leaves it to the stack."""
        named = {need.name for need, _ in self._wanted.needs}
        whole = _whole(solution)
        return whole if named & {choice.release.package for choice in whole.choices} else solution

    def _others(self, attempt: _Attempt, solution: Solution, conflict: Conflict) -> Iterator[tuple[Request, Problem]]:
        request, problem = attempt.request, attempt.problem
        for cuda in self._other_majors(solution, problem, involved(conflict)):
            yield request._replace(cuda=cuda), problem._replace(cuda=cuda)
        if _is_about_python(conflict):
            older = (problem.python or SpecifierSet()) & SpecifierSet(f"<{solution.python}")
            yield request._replace(python=older), problem._replace(python=older)
        names = involved(conflict)
        bounded = {it.name for it, _ in self._stack_needs(solution)} | {
            name for name in names if self._bounds(solution).of(name)
        }
        if not names & bounded:
            return
        for choice in solution.choices:
            others = self._without(choice.release, conflict)
            frameworks = tuple(
                it._replace(specifier=it.specifier & others) if it.framework == choice.release.framework else it
                for it in problem.frameworks
            )
            python = self._target.problem.python
            yield (
                request._replace(frameworks=frameworks, python=python),
                problem._replace(frameworks=frameworks, python=python),
            )

    def _without(self, release: Release, conflict: Conflict) -> SpecifierSet:
        """The versions beside that of ``release``; where its index lacks it, those that the index lacks as well."""
        left_out = {release.version}
        found = conflict.provider.world.releases(release.package)
        if found is not None and found.position(str(release.full_version)) is None:
            table = self._matrix.framework(release.framework, release.platform)
            alike = (it for it in table.releases if it.package == release.package and it.source is release.source)
            left_out |= {it.version for it in alike if found.position(str(it.full_version)) is None}
        return SpecifierSet(",".join(f"!={version}" for version in sorted(left_out)))

    def _other_majors(
        self, solution: Solution, problem: Problem, names: frozenset[str]
    ) -> Iterator[SpecifierSet | None]:
        """The CUDA majors that packages in a conflict are for, where they are not the stack's."""
        if solution.toolkit is None:
            return
        majors = {major for name in names if (major := cuda_major_of(name)) is not None}
        majors.discard(solution.toolkit.version.major)
        for major in sorted(majors, reverse=True):
            yield _and_major(problem.cuda, str(major))

    def _packages(self, attempt: _Attempt) -> tuple[Pin, ...]:
        """Every package that goes with a stack. Raises Conflict, OutsideError, UnsolvableError."""
        solution = attempt.solution
        interpreter = self._interpreter(attempt)
        wanted = for_target(self._wanted, Markers(interpreter.marker_values()))
        stack = list(self._named(attempt) if solution is None else self._stack_needs(solution))
        limits = _Limits(None if solution is None else self._bounds(solution), wanted)
        question = Question(
            asked=(*stack, *wanted.needs),
            wanted=Wanted(
                interpreter,
                attempt.request.packages.exclude_newer,
                attempt.request.packages.allow_builds,
            ),
            limits=limits,
            held={it.name: it.version for it in self._pins if self._stays(it.name)},
        )
        return pins_of(question, self._indexes(solution, wanted), self._asked.progress)

    def _indexes(self, solution: Solution | None, wanted: Given) -> Indexes:
        mapped = dict(self._where.mapped)
        for choice in [] if solution is None else solution.choices:
            index = self._index_of(choice.release)
            if index is not None:
                mapped |= dict.fromkeys(OF_PYTORCH, index)
        urls = (*self._where.extra, self._where.default)
        return Indexes(urls, self._lines.pool, mapped, wanted.direct)

    def _index_of(self, release: Release) -> str | None:
        """PyTorch's own index with the folder of the build; None for a wheel of the default index."""
        if find_links_of(release) is not None or goes_by_folder(release):
            raise UnsolvableError(
                "source-not-lockable",
                f"{release.label} is on a page of links or in a folder without a version of its own, "
                "which a lock with hashes cannot ask for",
                hints=(Hint("an environment file can: --format environment"),),
            )
        if release.source is not Source.PYTORCH:
            return None
        base = self._target.request.packages.pytorch_index_url or PYTORCH_INDEX
        return f"{base.rstrip('/')}/{release.build}/"

    def _stack_needs(self, solution: Solution) -> Iterator[tuple[Need, str]]:
        for choice in solution.choices:
            release = choice.release
            extras = tuple(sorted(release.extras))
            exactly = f"==={release.full_version}"  # another local version would be another build, for the CPU perhaps
            yield Need(release.package, extras, exactly, ""), THE_STACK

    def _named(self, attempt: _Attempt) -> Iterator[tuple[Need, str]]:
        """The frameworks of --framework as packages, where no stack is solved."""
        asked = {it.framework for it in self._asked.request.frameworks}
        for it in attempt.problem.frameworks:
            if it.framework in asked:
                package = next(name for name, framework in FRAMEWORK_OF.items() if framework == it.framework)
                yield Need(package, (), str(it.specifier), ""), COMMAND_LINE

    def _bounds(self, solution: Solution) -> Bounds:
        cudnn = () if solution.problem.cpu else self._matrix.cudnn
        rivals = {
            it.release.package: frozenset(_RIVALS.get(it.release.framework, ())) - {it.release.package}
            for it in solution.choices
        }
        return Bounds(solution, self._matrix.components, cudnn, rivals)

    def _joined(self, attempt: _Attempt, pins: Sequence[Pin]) -> tuple[Request, Problem] | None:
        """The request with the frameworks that came in as dependencies; None where there are none."""
        known = {it.framework for it in attempt.problem.frameworks}
        if attempt.solution is None and known:
            return None
        new = dict.fromkeys(FRAMEWORK_OF[pin.name] for pin in pins if pin.name in FRAMEWORK_OF)
        added = tuple(
            FrameworkRequest(name, _constraint(self._wanted, name, attempt.problem))
            for name in new
            if name not in known
        )
        if not added:
            return None
        frameworks = (*attempt.problem.frameworks, *added)
        return attempt.request._replace(frameworks=frameworks), attempt.problem._replace(frameworks=frameworks)

    def _interpreter(self, attempt: _Attempt) -> Interpreter:
        problem, solution = attempt.problem, attempt.solution
        python = _python(problem.python, None if solution is None else solution.python)
        if problem.platform not in (Platform.LINUX_64, Platform.LINUX_AARCH64):
            return Interpreter(python, problem.platform)
        known = [machine.glibc for machine in problem.machines if machine.glibc is not None]
        asked = [it.release.glibc for it in (solution.choices if solution else ()) if it.release.glibc is not None]
        return Interpreter(python, problem.platform, min(known) if known else max([ASSUMED_GLIBC, *asked]))

    def _finished(self, attempt: _Attempt, pins: tuple[Pin, ...], better: UnsolvableError | None) -> _Made:
        solution, interpreter = attempt.solution, self._interpreter(attempt)
        request = self._asked.request
        bare, _ = request_without_credentials(request)
        asked = [str(it) for it in request.frameworks] + [str(need) for need, _ in self._wanted.needs]
        answer = matrix_date = None
        if solution is not None:
            matrix_date = matrix_date_of(solution.problem, self._matrix)
            answer = Answer(
                solution,
                self._target.hosts,
                command_of(bare),
                matrix_date,
                __version__,
                own_matrix=not self._matrix.is_shipped,
            )
        default = without_credentials(self._where.default).rstrip("/")
        used = {pin.index_url.rstrip("/") for pin in pins if pin.index_url is not None}
        others = tuple(url for url in self._in_order(solution) if url != default and url in used)
        made = PythonLock(
            closure=Closure(pins, _lock_target(interpreter), default, others),
            answer=answer,
            command=command_of(bare),
            envsolve_version=__version__,
            matrix_date=matrix_date,
            request=tuple(asked),
            exclude_newer=request.packages.exclude_newer,
            default_is_plain=self._where.is_plain,
        )
        notes = (*self._notes(attempt), *(note for pin in pins for note in _notes_of(pin)))
        if better is not None:
            notes = (f"this is not the newest stack: {better.message} ({'; '.join(better.cause[:_FEW])})", *notes)
        return _Made(attempt.problem.platform, made, solution, notes)

    def _in_order(self, solution: Solution | None) -> list[str]:
        own = [self._index_of(choice.release) for choice in (solution.choices if solution else ())]
        urls = (*filter(None, own), *self._where.mapped.values(), *self._where.extra)
        return list(dict.fromkeys(without_credentials(url).rstrip("/") for url in urls))

    def _notes(self, attempt: _Attempt) -> tuple[str, ...]:
        solution = attempt.solution
        if solution is None:
            none = (
                "no NVIDIA GPU was found, and the index that is named has no CPU build: the default builds, which run"
            )
            return (f"{none} without a GPU as well",) if attempt.problem.frameworks else ()
        notes = [] if self._target.fell_to_cpu and not attempt.problem.cpu else list(self._target.notes)
        if self._asked.request.python is None:
            notes.append(f"the lock is for Python {solution.python}; --python names another one")
        return (*notes, *(note for note in solution.notes if "NCCL" not in note))


def _whole(solution: Solution) -> Solution:
    """``solution`` with the framework's own package where it has one for the CPU alone."""
    choices = (
        choice._replace(release=release._replace(package=_WHOLE.get(release.package, release.package)))
        for choice in solution.choices
        for release in [choice.release]
    )
    return solution._replace(choices=tuple(choices))


def _notes_of(pin: Pin) -> Iterator[str]:
    """What the user should know of one pin, as pip and uv tell it."""
    yield from (f"{pin.name} {pin.version} has no extra {extra}" for extra in pin.unknown_extras)
    if all(file.yanked is not None for file in pin.files):
        reason = pin.files[0].yanked
        yield f"{pin.name} {pin.version} was withdrawn (yanked){f': {reason}' if reason else ''}"


class _Limits:
    """The limits of a package: those of the stack, then those in the user's constraint files."""

    def __init__(self, bounds: Bounds | None, wanted: Given) -> None:
        self._bounds = bounds
        self._constraints: dict[str, list[Limit]] = {}
        for need, origin in wanted.constraints:
            self._constraints.setdefault(need.name, []).append(Limit(need.specifier, "", origin))
        self._known: dict[str, tuple[Limit, ...]] = {}

    def __call__(self, name: str) -> tuple[Limit, ...]:
        if name not in self._known:
            bounds = () if self._bounds is None else self._bounds.of(name)
            self._known[name] = (*bounds, *self._constraints.get(name, ()))
        return self._known[name]


def _is_about_python(conflict: Conflict) -> bool:
    """Whether another Python might have what is missing: some project has files, and none for this one."""
    from envsolve.solve.closure.releases import Unfit
    from envsolve.solve.closure.told import reasons_of

    about = {Unfit.OTHER_PLATFORM, Unfit.OTHER_PYTHON, Unfit.SOURCE_ONLY}
    return any(about & set(reasons_of(name, conflict)) for name in contested(conflict))


def _python(asked: SpecifierSet | None, minor: Version | None) -> tuple[int, int, int]:
    """The full version a lock is for: the one that is named, or the first of the minor, which every later one follows.

    Without a stack it is the Python that runs envsolve, where nothing else is asked for.
    """
    if minor is None:
        running = sys.version_info[:3]
        if asked is None or asked.contains(".".join(map(str, running))):
            return running[0], running[1], running[2]
        for number in reversed(_PYTHONS):
            for patch in range(_PATCHES):
                if asked.contains(f"3.{number}.{patch}"):
                    return 3, number, patch
        raise UsageError("python-not-supported", f"no CPython 3 lies in {asked}")
    patch = next((it for it in range(_PATCHES) if asked is None or asked.contains(f"{minor}.{it}")), 0)
    return minor.major, minor.minor, patch


def _lock_target(interpreter: Interpreter) -> LockTarget:
    return LockTarget(
        python=interpreter.full_version,
        platform=interpreter.platform,
        tags=tuple(platform_tags(interpreter)),
        environment=tuple(sorted(interpreter.marker_values().items())),
    )
