"""Which conda builds of the matrix the channels of a request have, and for which Pythons.

The matrix lists what recipes build. A channel may lack a build, be a partial mirror, or have withdrawn it. The stack of
a lock is chosen among the builds that the channels have, so that the solver of conda packages can meet the request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from envsolve.conda.session import Listed
from envsolve.conda.specs import specifier_of
from envsolve.matrix.tables import FrameworkTable
from envsolve.model.fact import Fact
from envsolve.model.host import Platform
from envsolve.model.prose import sentence_list
from envsolve.model.release import Release, Source
from envsolve.model.solution import Solution
from envsolve.model.versions import parsed_version

Listing = Callable[[Source, Platform, frozenset[str]], Mapping[str, tuple[Listed, ...]]]
"""The packages with given names for a platform, on the channels that a source's builds come from."""
_Family = tuple[str, Platform, str, int | None]
"""A framework on a platform, for one Python and one CUDA major version."""
_ANY_PATCH = 99
_NEWEST = " is the newest that "


class ChannelBuilds:
    """Reduces the tables of the matrix to builds that ``listing`` has, without builds that could not be installed.

    Builds from sources other than ``sources`` are left out and not queried.
    """

    def __init__(self, listing: Listing, sources: Collection[Source]) -> None:
        self._listing, self._sources = listing, sources
        self._left_out: set[tuple[str, str]] = set()
        self._only_version: dict[_Family, Version | None] = {}
        self._no_python: set[tuple[Platform, str]] = set()
        self._tables: dict[tuple[str, Platform], FrameworkTable] = {}
        self._whole: list[Release] = []

    def leave_out(self, release: Release, python: Version) -> None:
        """Leave out ``release`` for ``python`` from now on."""
        self._left_out.add((_key(release), str(python)))

    def leave_out_python(self, platform: Platform, python: Version) -> None:
        """Leave out everything for ``python``, including wheels: the channels lack it, or have nothing for it."""
        self._no_python.add((platform, str(python)))

    def keep(self, release: Release, python: Version, version: Version | None) -> None:
        """Of builds like ``release`` and its CUDA major, allow only ``version`` for ``python``, none if None."""
        key = _family(release, str(python))
        self._only_version[key] = version if self._only_version.get(key, version) == version else None

    def __call__(self, table: FrameworkTable) -> FrameworkTable:
        """``table``, of one platform, with only the conda builds that are available; wheels remain."""
        if not table.releases:
            return table
        key = table.name, table.releases[0].platform
        if key not in self._tables:
            self._whole += table.releases
            self._tables[key] = table._replace(releases=tuple(self._had(table.releases)))
        known = self._tables[key]
        return known._replace(releases=tuple(self._not_left_out(known.releases)))

    def _had(self, releases: Iterable[Release]) -> Iterable[Release]:
        releases = tuple(it for it in releases if it.source in self._sources)
        listed: dict[Source, Mapping[str, tuple[Listed, ...]]] = {}
        for source in {it.source for it in releases if not it.source.is_wheel}:
            names = frozenset(
                name
                for it in releases
                if it.source is source
                for name in (it.package, *(package for package, _ in it.companions))
            )
            listed[source] = self._listing(source, releases[0].platform, names)
        for release in releases:
            if release.source.is_wheel:
                yield release
                continue
            pythons = _pythons(release, listed[release.source])
            if pythons:
                yield release._replace(pythons=pythons)

    def _not_left_out(self, releases: Iterable[Release]) -> Iterable[Release]:
        for release in releases:
            pythons = tuple(it for it in release.pythons if self._counts(release, it))
            if pythons:
                yield release if len(pythons) == len(release.pythons) else release._replace(pythons=pythons)

    def _counts(self, release: Release, python: str) -> bool:
        if (release.platform, python) in self._no_python:
            return False
        if (_key(release), python) in self._left_out:
            return False
        of_conda = not release.source.is_wheel
        return not of_conda or self._only_version.get(_family(release, python), release.version) == release.version

    def with_python_reason(self, solution: Solution) -> Solution:
        """``solution`` with a note on its Python if the matrix has newer Pythons than the channels."""
        *because, last = solution.because
        chosen = [choice.release for choice in solution.choices]
        whole = {_key(it): it.pythons for it in self._whole}
        if _NEWEST not in last.text or all(whole.get(_key(it), it.pythons) == it.pythons for it in chosen):
            return solution
        named = sentence_list(f"{it.framework} {it.version}" for it in chosen)
        text = f"Python {solution.python}{_NEWEST}the channels have {named} for"
        return solution._replace(because=(*because, Fact(text, last.source)))


def _family(release: Release, python: str) -> _Family:
    return release.framework, release.platform, python, None if release.cuda is None else release.cuda.major


def _key(release: Release) -> str:
    return f"{release.label} {release.platform}"


def _pythons(release: Release, listed: Mapping[str, tuple[Listed, ...]]) -> tuple[str, ...]:
    """The Pythons of ``release`` for which the channels have exactly this build."""
    if not all(_has(listed.get(package, ()), versions) for package, versions in release.companions):
        return ()
    same = [it for it in listed.get(release.package, ()) if _is_of(it, release)]
    return tuple(python for python in release.pythons if any(takes(it, python) for it in same))


def _is_of(package: Listed, release: Release) -> bool:
    return parsed_version(package.version) == release.version and fnmatchcase(package.build, release.build_string)


def _has(packages: Iterable[Listed], versions: str) -> bool:
    try:
        specifier = SpecifierSet(versions)
    except InvalidSpecifier:
        return any(packages)
    return any(
        version is not None and specifier.contains(version, prereleases=True)
        for version in (parsed_version(it.version) for it in packages)
    )


def takes(package: Listed, python: str) -> bool:
    """Whether every dependency on Python and its ABI allows some release of ``python``."""
    return all(_admits(spec, python) for spec in package.depends if spec.split()[0] in ("python", "python_abi"))


def _admits(spec: str, python: str) -> bool:
    """Whether a dependency allows ``python``. True if it is not understood: the solver of conda packages decides."""
    _, *words = spec.split()
    if not words or words[0] == "*":
        return True
    if len(words) > 1 and (words[1].endswith("t") or "pypy" in words[1]):
        return False  # free-threaded or PyPy: not the requested interpreter
    specifier = specifier_of(words[0])
    return specifier is None or specifier.contains(f"{python}.{_ANY_PATCH}", prereleases=True)
