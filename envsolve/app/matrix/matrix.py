"""Views of the matrix: an overview, the builds of a framework, the tables of CUDA and cuDNN, the self-check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.solve.builds import Build, Filters, Found, find_builds
from envsolve.app.solve.solving import framework_request
from envsolve.errors import Hint, MatrixError, UnsolvableError, UsageError
from envsolve.matrix.load import Matrix
from envsolve.model.fact import EvidenceKind
from envsolve.model.release import CudnnRelease, Disagreement, KnownBad, PlatformLimit, Release, Source, Toolkit
from envsolve.model.request import parse_cuda_versions, parse_framework

if TYPE_CHECKING:
    from envsolve.matrix.laws import Verdict

_SHORT_EQUALITY = re.compile(r"(?<!=)([=!]=)\s*(\d+(?:\.\d+){0,2})(?=\s*(?:,|$))")
PLATFORM_NAMES = ("cuda", "cudnn")
"""The names besides frameworks that ``matrix show`` accepts."""


class Overview(NamedTuple):
    """A summary of one framework. ``wheels_read`` counts the builds whose evidence is the wheel itself."""

    framework: str
    oldest: str
    newest: str
    builds: int
    sources: Mapping[Source, int]
    wheels_read: int


class ReadHere(NamedTuple):
    """A build that was read on this machine: its name, version, build, and the date."""

    release: str
    build: str
    seen: str


class Shown(NamedTuple):
    """Builds of one framework with everything known about them in addition to their rows."""

    found: Found
    known_bad: tuple[KnownBad, ...]
    platform_limits: tuple[PlatformLimit, ...]
    disagreements: tuple[Disagreement, ...]

    @property
    def builds(self) -> tuple[Build, ...]:
        """The builds, newest first."""
        return self.found.builds


def overview(matrix: Matrix) -> list[Overview]:
    """One entry for each framework."""
    return [_overview(name, matrix.framework(name, None).releases) for name in matrix.framework_names]


def read_here(matrix: Matrix) -> list[ReadHere]:
    """The rows that were read on this machine and are used besides the shipped rows, frameworks first."""
    tables = [matrix.framework(name, None) for name in matrix.framework_names if matrix.overlays]
    found = [
        ReadHere(f"{it.framework} {it.version}", f"{it.source}, {it.build}, {it.platform}", it.evidence[0].seen)
        for table in tables
        for it in table.releases
        if it.read_here
    ]
    packages = sorted({name for overlay in matrix.overlays for name in overlay.packages})
    found += [
        ReadHere(f"{name} {str(it.versions).removeprefix('==')}", "pypi", it.evidence[0].seen)
        for name in packages
        for it in matrix.build_facts(name)
        if it.read_here
    ]
    return found


def show(text: str, filters: Filters, matrix: Matrix, environ: Mapping[str, str]) -> Shown:
    """The builds of the framework that ``text`` names (``tensorflow==2.10.*``) that match ``filters``.

    Raises UsageError for unknown words and UnsolvableError if no known build matches.
    """
    found = find_builds(filters._replace(frameworks=(text,)), matrix, environ)
    (table,) = found.tables
    releases = [build.release for build in found.builds]
    platforms = {release.platform for release in releases}
    specifier = framework_request(text, matrix).specifier
    named = [release for release in table.releases if release.lies_in(specifier)]
    return Shown(
        found,
        known_bad=tuple(entry for entry in table.known_bad if any(entry.covers(release) for release in named)),
        platform_limits=tuple(
            limit
            for limit in table.platform_limits
            if limit.platform in platforms and _any_in(limit.versions, releases)
        ),
        disagreements=tuple(
            entry for entry in table.disagreements if entry.versions is None or _any_in(entry.versions, releases)
        ),
    )


def platform_table(text: str) -> tuple[str, SpecifierSet] | None:
    """``cuda==12.6`` or ``cudnn`` as table and versions; None for other names.

    ``==12`` and ``==9.10.2`` match every version that begins with these numbers. Raises UsageError if the name is right
    but the versions cannot be read.
    """
    name = re.match(r"\s*([A-Za-z]+)", text)
    if name is None or name[1].lower() not in PLATFORM_NAMES:
        return None
    rest = text[name.end() :].strip()
    try:
        if not rest:
            return name[1].lower(), SpecifierSet()
        if rest[0].isdigit():
            raise ValueError(f"{text!r} is not a table with versions such as '{name[1]}=={rest}'")
        versions = _SHORT_EQUALITY.sub(r"\1\2.*", rest)
        parse_framework(text[: name.end()] + versions)
        return name[1].lower(), parse_cuda_versions(versions) if name[1].lower() == "cuda" else SpecifierSet(versions)
    except ValueError as error:
        raise UsageError("invalid-framework", str(error)) from error


def toolkits(versions: SpecifierSet, matrix: Matrix) -> list[Toolkit]:
    """The toolkits in ``versions``, newest first. Raises UnsolvableError if there is none."""
    found = [toolkit for toolkit in matrix.cuda.toolkits if versions.contains(str(toolkit.version))]
    if not found:
        raise _nothing("cuda", versions)
    return found


def cudnn_releases(versions: SpecifierSet, matrix: Matrix) -> list[CudnnRelease]:
    """The cuDNN releases in ``versions``, newest first. Raises UnsolvableError if there is none."""
    found = [release for release in matrix.cudnn if versions.contains(release.version, prereleases=True)]
    if not found:
        raise _nothing("cudnn", versions)
    return found


def check(matrix: Matrix) -> tuple[Verdict, ...]:
    """Every law of the matrix with the rows that violate it. Raises MatrixError if a file cannot be read."""
    from envsolve.matrix.laws import judge, latest_date

    mistakes = matrix.check()
    if mistakes:
        count = f"{len(mistakes)} mistakes" if len(mistakes) > 1 else "a mistake"
        raise MatrixError("matrix-invalid", f"the compatibility matrix has {count}", tuple(mistakes))
    return judge(matrix, latest_date())


def matrix_date(matrix: Matrix, names: Iterable[str] = ()) -> str:
    """The date of the newest of these files; without names, of all files."""
    wanted = tuple(names) or (*matrix.framework_names, *matrix.tables)
    return max(str(matrix.document(name).get("updated", "")) for name in wanted)


def _overview(name: str, releases: tuple[Release, ...]) -> Overview:
    versions = [release.version for release in releases]
    counted = [release.source for release in releases]
    read = [release for release in releases if any(item.kind is EvidenceKind.WHEEL for item in release.evidence)]
    return Overview(
        framework=name,
        oldest=str(min(versions)),
        newest=str(max(versions)),
        builds=len(releases),
        sources={source: counted.count(source) for source in Source if source in counted},
        wheels_read=len(read),
    )


def _any_in(versions: SpecifierSet, releases: list[Release]) -> bool:
    return any(versions.contains(release.version, prereleases=True) for release in releases)


def _nothing(name: str, versions: SpecifierSet) -> UnsolvableError:
    hint = Hint("list all versions", f"envsolve matrix show {name}")
    return UnsolvableError("no-such-release", f"the matrix has no {name}{versions}", hints=(hint,))
