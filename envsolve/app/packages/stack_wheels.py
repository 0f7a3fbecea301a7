"""What a stack needs from package indexes: its wheels, the index of each, and the limits on other packages.

Locks of only wheels and wheels next to conda packages both use this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

from packaging.version import Version

from envsolve.app.packages.lock_indexes import Connection, Places
from envsolve.app.packages.requirements import Requirements
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UnsolvableError
from envsolve.frameworks import BUILT_WITH, FRAMEWORK_OF_WHEEL, FRAMEWORKS, OWN_INDEX, rivals_of
from envsolve.index.client import Indexes
from envsolve.index.extended import More
from envsolve.index.fitting import Interpreter
from envsolve.lockfile.wheels import find_links_of, needs_direct_url
from envsolve.matrix.load import Matrix
from envsolve.model.build_facts import BuildFacts
from envsolve.model.host import Platform
from envsolve.model.need import Need, is_pin
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.reference import kind_of
from envsolve.model.release import PYTORCH_INDEX, Release, Source
from envsolve.model.request import FrameworkRequest, Packages
from envsolve.model.solution import Solution
from envsolve.resolve.closure.bounds import THE_STACK, Bounds
from envsolve.resolve.closure.releases import Sources, Wanted
from envsolve.resolve.closure.resolve import Question
from envsolve.resolve.closure.virtual import Virtual, among
from envsolve.resolve.closure.world import Judge, Limit

_PURE = "-none-any.whl"
_SOURCE = (".tar.gz", ".zip")


def needs_of(solution: Solution) -> Iterator[tuple[Need, str]]:
    """The wheels of a stack, each pinned to its build."""
    for choice in solution.choices:
        release = choice.release
        if release.source.is_wheel:
            extras = tuple(sorted(release.extras))
            exactly = f"==={release.full_version}"  # another local version would be another build, maybe for the CPU
            yield Need(release.package, extras, exactly, ""), THE_STACK


def is_lockable(release: Release) -> bool:
    """Whether an index has the wheel under a version of its own. A lock with hashes can only require such wheels."""
    return find_links_of(release) is None and not needs_direct_url(release)


def index_of(release: Release, packages: Packages) -> str | None:
    """The folder of PyTorch's own index that has the build; None for a wheel of the default index.

    Raises UnsolvableError if no index has the wheel.
    """
    if not is_lockable(release):
        raise UnsolvableError(
            "source-not-lockable",
            f"{release.label} is on a find-links page or has no version of its own, "
            "so a lock with hashes cannot pin it",
            hints=(Hint("use an environment file: --format environment"),),
        )
    if release.source is not Source.PYTORCH:
        return None
    return f"{(packages.pytorch_index_url or PYTORCH_INDEX).rstrip('/')}/{release.build}/"


def indexes_for(
    solution: Solution | None,
    wanted: Requirements,
    packages: Packages,
    where: Places,
    connection: Connection,
    more: More | None = None,
) -> Indexes:
    """The indexes of a request, and PyTorch's own index for its packages if the stack comes from there.

    ``more`` are versions that the indexes may lack. Raises UnsolvableError if no index has a wheel of the stack.
    """
    mapped = dict(where.mapped)
    for choice in () if solution is None else solution.choices:
        index = index_of(choice.release, packages)
        if index is not None:
            mapped |= {name: index for name, framework in OWN_INDEX.items() if framework == choice.release.framework}
    return Indexes((*where.extra, where.default), connection.pool, mapped, wanted.by_name, more)


def files_for(
    wanted: Requirements,
    frameworks: Iterable[FrameworkRequest],
    interpreter: Interpreter,
    packages: Packages,
    sources: Sources,
    more: Iterable[str] = (),
) -> Wanted:
    """The conditions for files of ``wanted`` packages and ``frameworks`` on a target.

    ``sources`` are the allowed source distributions.
    ``more`` are the packages with wheels outside of the indexes, so that they are not built.
    """
    return Wanted(
        interpreter,
        packages.exclude_newer,
        sources,
        wanted.hashes,
        as_if_built=packages.allow_builds,
        prereleases=packages.pre,
        overridden=wanted.overridden,
        wheels_only=frozenset(() if packages.allow_builds else more),
        pinned=frozenset(_pinned(wanted, frameworks)),
    )


def _pinned(wanted: Requirements, frameworks: Iterable[FrameworkRequest]) -> Iterator[str]:
    """The projects of which one exact version is required."""
    yield from (need.name for need, _ in wanted.needs if is_pin(need.specifier))
    for it in frameworks:
        yield from FRAMEWORKS[it.framework].wheels if is_pin(str(it.specifier)) else ()


def question_around(
    solution: Solution | None,
    wanted: Requirements,
    interpreter: Interpreter,
    packages: Packages,
    matrix: Matrix,
    limits: Limits,
    *,
    sources: Sources | None = None,
    rivals: Rivals | None = None,
    more: Iterable[str] = (),
) -> Question:
    """The question for the search: a stack, if there is one, with all ``wanted`` packages, within ``limits``.

    The caller adds pinned and installed packages. ``rivals`` collects the requirements that a package of another name
    meets. ``more`` is as in :func:`files_for`.
    """
    releases = () if solution is None else tuple(it.release for it in solution.choices)
    frameworks = () if solution is None else solution.problem.frameworks
    places = () if solution is None or solution.toolkit is None else places_of(matrix)
    if sources is None:
        sources = Sources.ANY if packages.allow_builds else Sources.NONE
    own = {it.package: it.framework for it in releases if it.source.is_wheel}
    return Question(
        roots=(*(() if solution is None else needs_of(solution)), *wanted.needs),
        wanted=files_for(wanted, frameworks, interpreter, packages, sources, more),
        limits=limits,
        locked={},
        judge=required_by_builds(matrix, interpreter.platform, places, own, rivals),
        virtual=places,
    )


def strangers(solution: Solution | None, pins: Iterable[Pin], packages: Packages) -> Iterator[tuple[Release, Pin]]:
    """Packages built for another PyTorch than that of the stack, each after the PyTorch that it must work with.

    If a folder of PyTorch's index or of its mirror lacks a companion, other indexes are used, whose only build is for
    the CUDA of their own torch. A build that names the CUDA of the stack is accepted from any index.
    """
    pins = tuple(pins)
    for release in () if solution is None else (it.release for it in solution.choices):
        companions = [pin for pin in pins if BUILT_WITH.get(pin.name) == release.framework]
        own = index_of(release, packages) if companions else None
        folder = "" if own is None else without_secrets(own).rstrip("/")
        for pin in companions if folder else ():
            is_elsewhere = pin.index_url is not None and pin.index_url.rstrip("/") != folder
            is_for_it = Version(pin.version).local == release.full_version.local
            if is_elsewhere and not is_for_it and not pin.files[0].name.endswith(_PURE):
                yield release, pin


def bounds_of(solution: Solution, matrix: Matrix, present: Collection[str] = (), *, in_part: bool = False) -> Bounds:
    """The bounds that a stack sets on other packages. A module ``present`` under two names is not a conflict.

    ``in_part`` allows builds that lose features with the CUDA of the stack.
    """
    cudnn = () if solution.problem.cpu else matrix.cudnn
    rivals = {
        it.release.package: frozenset(rivals_of(it.release.framework)) - {it.release.package, *present}
        for it in solution.choices
    }
    elsewhere = {it.release.framework for it in solution.choices if it.release.source is not Source.PYPI}
    return Bounds(
        solution,
        lambda: matrix.cuda,
        lambda: matrix.components,
        cudnn,
        rivals,
        partial(_facts_of, matrix, solution.problem.platform, in_part),
        tuple(name for name, framework in OWN_INDEX.items() if framework in elsewhere),
    )


def _facts_of(matrix: Matrix, platform: Platform, in_part: bool, name: str) -> tuple[BuildFacts, ...]:
    return tuple(it for it in matrix.build_facts(name, platform) if not (in_part and it.loss))


def cuda_majors_of(matrix: Matrix, package: str, version: str, platform: Platform) -> set[int]:
    """The CUDA major versions of the wheels of a framework version on the default index.

    Empty if ``package`` is not a framework, if an extra decides, or if the matrix has no such version or one for the
    CPU.
    """
    if package not in FRAMEWORK_OF_WHEEL:
        return set()
    rows = matrix.framework(FRAMEWORK_OF_WHEEL[package], platform).releases
    rows = tuple(it for it in rows if it.package == package and it.source is Source.PYPI)
    of_version = [it for it in rows if it.full_version == Version(version)]
    if any(it.cuda is None or it.extras for it in of_version):
        return set()
    return {it.cuda.major for it in of_version if it.cuda is not None}


def places_of(matrix: Matrix) -> tuple[Virtual, ...]:
    """The folders and libraries that only one package may have, as projects with those packages as candidates."""
    return tuple(Virtual(it.name, ((),) * len(it.packages)) for it in matrix.places)


Rivals = dict[tuple[str, str], tuple[str, str]]
"""By name and version of a package: the name that it requires, and the name of the package in the stack."""


def required_by_builds(
    matrix: Matrix,
    platform: Platform,
    places: Iterable[Virtual],
    builds: Mapping[str, str],
    rivals: Rivals | None = None,
) -> Judge:
    """A function that returns what a wheel really requires: its metadata, facts about its builds, and ``places``.

    ``builds`` are the packages that frameworks are installed by, with the framework of each. If one package alone is a
    framework, it replaces its rivals, which install the same module: onnxruntime-gpu meets requirements on onnxruntime.
    ``rivals`` collects these cases.
    """
    names = {it.name for it in places}
    rows = (it for it in matrix.places if it.name in names)
    of_package = {package: among(it.name, [number]) for it in rows for number, package in enumerate(it.packages)}
    instead, frameworks = dict(_instead_of_rivals(builds)), set(builds.values())
    package_of = {framework: package for package, framework in builds.items()}

    def judge(name: str, version: str, needs: tuple[Need, ...]) -> tuple[Need, ...]:
        needs = tuple(
            need._replace(name=package_of[FRAMEWORK_OF_WHEEL[need.name]], for_extra="") if need.for_extra else need
            for need in needs
            if not need.for_extra or FRAMEWORK_OF_WHEEL[need.name] in package_of
        )
        rival = next((need.name for need in needs if need.name in instead), None)
        if rival is not None:
            needs = tuple(
                need._replace(name=instead[need.name], extras=()) if need.name in instead else need for need in needs
            )
            if rivals is not None:
                rivals[name, version] = rival, instead[rival]
        known = (it for facts in facts_beside(name, version, frameworks, platform, matrix) for it in facts.requires)
        return (*needs, *known, *([of_package[name]] if name in of_package else ()))

    return judge


def facts_beside(
    name: str, version: str, frameworks: Collection[str], platform: Platform, matrix: Matrix
) -> Iterator[BuildFacts]:
    """The facts about builds of one version of a package that apply next to ``frameworks``."""
    for facts in matrix.build_facts(name, platform):
        if facts.covers(version) and (not facts.beside or facts.beside in frameworks):
            yield facts


def _instead_of_rivals(builds: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each rival of a framework and the package that replaces it, if that package alone is the framework."""
    for framework in set(builds.values()):
        own = [package for package, it in builds.items() if it == framework]
        if len(own) == 1:
            yield from ((rival, own[0]) for rival in rivals_of(framework) if rival not in own)


def runs_in_part(pins: Iterable[Pin], solution: Solution, matrix: Matrix) -> Iterator[Note]:
    """Notes on those of ``pins`` that lose features with the CUDA of the stack."""
    bounds = bounds_of(solution, matrix)
    for pin in pins:
        yield from (Note("runs-in-part", text) for text in bounds.lost(pin.name, pin.version))


class Limits:
    """The limits on a package: those of the stack, then those in the user's constraint files."""

    def __init__(self, bounds: Bounds | None, wanted: Requirements) -> None:
        self._bounds = bounds
        self._constraints: dict[str, list[Limit]] = {}
        for need, origin in wanted.constraints:
            self._constraints.setdefault(need.name, []).append(Limit(need.specifier, "", origin))
        self._known: dict[str, tuple[Limit, ...]] = {}

    def __call__(self, name: str) -> tuple[Limit, ...]:
        """See envsolve.resolve.closure.world."""
        if name not in self._known:
            bounds = () if self._bounds is None else self._bounds.of(name)
            self._known[name] = (*bounds, *self._constraints.get(name, ()))
        return self._known[name]


def limits_around(
    solution: Solution | None,
    wanted: Requirements,
    matrix: Matrix,
    present: Collection[str] = (),
    *,
    in_part: bool = False,
) -> Limits:
    """The limits around a stack, if there is one; see :func:`bounds_of`."""
    return Limits(None if solution is None else bounds_of(solution, matrix, present, in_part=in_part), wanted)


def notes_of(pin: Pin) -> Iterator[Note]:
    """What the user should know about a pin, in the words of pip and uv."""
    if any(file.name.endswith(_SOURCE) for file in pin.files) and not any(file.is_wheel for file in pin.files):
        text = f"{pin.name} {pin.version} has only a source distribution: installing it runs its code"
        yield Note("built-at-install", text)
    elif not pin.files[0].is_archive:
        kind = kind_of(pin.files[0].url).value
        yield Note("built-at-install", f"{pin.name} is from a {kind}: installing it runs its code")
    for extra in pin.unknown_extras:
        note = Note("extra-unknown", f"{pin.name} {pin.version} has no extra {extra}")
        yield note.about(name=pin.name, version=pin.version, extra=extra)
    if all(file.yanked is not None for file in pin.files):
        reason = pin.files[0].yanked
        text = f"{pin.name} {pin.version} was withdrawn (yanked){f': {reason}' if reason else ''}"
        yield Note("yanked", text).about(name=pin.name, version=pin.version, reason=reason)
