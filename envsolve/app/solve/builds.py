"""The builds of the matrix that match filters: framework, source, platform, Python, CUDA, and where they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.request.command import command_of
from envsolve.app.request.targets import target_of
from envsolve.app.solve.solving import framework_requests
from envsolve.errors import Hint, UnsolvableError, UsageError
from envsolve.matrix.load import Matrix
from envsolve.matrix.tables import FrameworkTable
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.release import KnownBad, Release, Source, Toolkit
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Machine, Problem
from envsolve.model.versions import DriverVersion
from envsolve.resolve.catalogue import Builds, Catalogue, Libraries
from envsolve.resolve.fits import runnable
from envsolve.resolve.parts import minor_lies_in

_GPU_HINTS = (
    Hint("show what each source reports", "envsolve detect"),
    Hint("name the GPU by product or compute capability, for example", "envsolve matrix list --gpu 'RTX 3090'"),
)
"""Hints if this machine's GPU is unknown, which the list needs."""


class Filters(NamedTuple):
    """The filters as typed; an empty one matches all. ``cuda`` is the toolkit that a build was compiled with."""

    frameworks: tuple[str, ...] = ()
    cuda: SpecifierSet | None = None
    python: SpecifierSet | None = None
    gpus: tuple[str, ...] = ()
    driver: DriverVersion | None = None
    sources: tuple[Source, ...] = ()
    platforms: tuple[Platform, ...] = ()


class Build(NamedTuple):
    """A build with its toolkit, its known problems, and the code that serves each requested GPU."""

    release: Release
    toolkit: Toolkit | None
    known_bad: tuple[KnownBad, ...]
    runs_as: Mapping[ComputeCapability, str]


class Found(NamedTuple):
    """The matching builds, newest first, with their tables and notes on the machine."""

    builds: tuple[Build, ...]
    tables: tuple[FrameworkTable, ...]
    notes: tuple[Note, ...]


def find_builds(filters: Filters, matrix: Matrix, environ: Mapping[str, str]) -> Found:
    """All builds that match ``filters``.

    Raises UsageError for unknown words, UnsolvableError if no known build matches.
    """
    names = filters.frameworks or matrix.framework_names
    requested = framework_requests(names, matrix)
    tables = tuple(matrix.framework(request.framework, None) for request in requested)
    releases = [
        release
        for request, table in zip(requested, tables, strict=True)
        for release in table.releases
        if release.lies_in(request.specifier)
    ]
    if not releases:
        raise _no_release(requested)
    releases = [release for release in releases if _is_meant(release, filters)]
    machines: tuple[Problem, ...] = ()
    notes: tuple[Note, ...] = ()
    if filters.gpus or filters.driver is not None:
        machines, notes = _machines(filters, requested, matrix, environ)
        running = _running(machines, tables, matrix)
        releases = [release for release in releases if id(release) in running]
    if not releases:
        raise _no_build(filters, requested)
    gpus = machines[0].gpus if machines else ()
    return Found(tuple(_builds(_newest_first(releases, matrix), matrix, gpus)), tables, notes)


def _is_meant(release: Release, filters: Filters) -> bool:
    python, cuda = filters.python, filters.cuda
    return (
        (not filters.sources or release.source in filters.sources)
        and (not filters.platforms or release.platform in filters.platforms)
        and (python is None or any(minor_lies_in(Version(minor), python) for minor in release.pythons))
        and (cuda is None or (release.cuda is not None and cuda.contains(str(release.cuda))))
    )


def _machines(
    filters: Filters, requested: tuple[FrameworkRequest, ...], matrix: Matrix, environ: Mapping[str, str]
) -> tuple[tuple[Problem, ...], tuple[Note, ...]]:
    """The machines that builds must run on, one problem for each platform, and notes.

    Only ``--gpu auto`` detects this machine and reads environment variables that describe it.
    """
    if not filters.gpus:
        platforms = filters.platforms or tuple(platform for platform in Platform if platform.has_cuda)
        machine = Machine(driver=filters.driver, gpus=(), glibc=None)
        return tuple(_problem(requested, platform, machine) for platform in platforms), ()
    automatic = "auto" in filters.gpus
    problems: list[Problem] = []
    notes: list[Note] = []
    for platform in filters.platforms or ((None,) if automatic else tuple(Platform)):
        platforms = () if platform is None else (platform,)
        request = Request(frameworks=requested, gpus=filters.gpus, driver=filters.driver, platforms=platforms)
        try:
            target = target_of(request, matrix, environ if automatic else {}, answer="these are the CPU builds")
        except UsageError as error:
            if error.code == "gpu-not-on-platform" and not filters.platforms:
                continue
            raise
        except UnsolvableError as error:
            error.hints = _GPU_HINTS
            raise
        problems.append(target.problem)
        notes += target.notes if automatic or filters.platforms else ()
    return tuple(problems), tuple(dict.fromkeys(notes))


def _problem(requested: tuple[FrameworkRequest, ...], platform: Platform, machine: Machine) -> Problem:
    machines = (machine._replace(windows_driver=platform.is_windows),)
    return Problem(frameworks=requested, platform=platform, machines=machines, cpu=False, python=None, cuda=None)


def _running(problems: tuple[Problem, ...], tables: tuple[FrameworkTable, ...], matrix: Matrix) -> set[int]:
    """The builds, by identity, that the solver would use on the machine of their platform."""
    found: set[int] = set()
    libraries = Libraries(matrix.cuda, matrix.cudnn)
    for problem in problems:
        here = {table.name: Builds(_of_platform(table, problem.platform)) for table in tables}
        found |= {id(release) for release in runnable(problem, Catalogue(libraries, here))}
    return found


def _of_platform(table: FrameworkTable, platform: Platform) -> FrameworkTable:
    return table._replace(releases=tuple(release for release in table.releases if release.platform is platform))


def _newest_first(releases: list[Release], matrix: Matrix) -> Iterator[Release]:
    """Sorted by framework, then newest version first; builds of one version by source, platform and name."""
    for name in matrix.framework_names:
        rows = [release for release in releases if release.framework == name]
        rows.sort(key=lambda release: (release.source, release.platform, release.build))
        rows.sort(key=lambda release: release.version, reverse=True)
        yield from rows


def _builds(releases: Iterable[Release], matrix: Matrix, gpus: tuple[ComputeCapability, ...]) -> Iterator[Build]:
    toolkits = {toolkit.version: toolkit for toolkit in matrix.cuda.toolkits}
    for release in releases:
        against = matrix.framework(release.framework, None).known_bad
        yield Build(
            release=release,
            toolkit=toolkits.get(release.cuda) if release.cuda is not None else None,
            known_bad=tuple(entry for entry in against if entry.covers(release) and _concerns(entry, release)),
            runs_as={gpu: runs_as for gpu in gpus if release.cuda and (runs_as := release.code.runs_as(gpu))},
        )


def _concerns(entry: KnownBad, release: Release) -> bool:
    """Whether a failure on some GPUs concerns ``release``: it does not concern a CPU build."""
    return release.cuda is not None or not entry.capabilities


def _no_release(requested: tuple[FrameworkRequest, ...]) -> UnsolvableError:
    named = ", ".join(str(request) for request in requested)
    hint = Hint("list all versions", f"envsolve matrix show {requested[0].framework}")
    return UnsolvableError("no-such-release", f"the matrix has no build of {named}", hints=(hint,))


def _no_build(filters: Filters, requested: tuple[FrameworkRequest, ...]) -> UnsolvableError:
    parts = [*map(str, filters.sources), *map(str, filters.platforms)]
    parts += [f"Python {filters.python}"] if filters.python is not None else []
    parts += [f"CUDA {filters.cuda}"] if filters.cuda is not None else []
    parts += [f"GPU {gpu}" for gpu in filters.gpus]
    parts += [f"driver {filters.driver}"] if filters.driver is not None else []
    named = ", ".join(str(request) for request in requested) if filters.frameworks else "any framework"
    hints = [Hint("use fewer filters: a build must match all of them")]
    if filters.frameworks and (filters.gpus or filters.driver is not None) and len(filters.platforms) <= 1:
        request = Request(
            frameworks=requested,
            python=filters.python,
            cuda=filters.cuda,
            gpus=filters.gpus,
            driver=filters.driver,
            platforms=filters.platforms,
            sources=filters.sources,
        )
        hints.insert(0, Hint("run the solver to see why, and what to change", command_of(request)))
    message = f"the matrix has no build of {named} for {', '.join(parts)}"
    return UnsolvableError("no-such-build", message, hints=tuple(hints))
