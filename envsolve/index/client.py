"""The package indexes of a request. Each page and each metadata file is fetched once.

Indexes are queried in order, and only the first one that knows a name is used for it: a package on a public index
never replaces one with the same name on a private index that comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from envsolve.boundary.secrets import without_secrets
from envsolve.extension_sources import Listing
from envsolve.index.extended import ExtendedProject, More, Part
from envsolve.index.fetch import Fetcher
from envsolve.index.listing import ListingPage
from envsolve.index.metadata import Metadata
from envsolve.index.one_index import Index, MetadataReader, Shelf, Trust, file_address
from envsolve.index.page import Project, RawFile
from envsolve.model.need import Markers
from envsolve.model.package import PackageFile
from envsolve.model.reference import parse_reference


class Pool:
    """One Index for each address, so that no page is fetched twice."""

    def __init__(self, fetcher: Fetcher, shelf: Shelf, read: MetadataReader, trust: Trust | None = None) -> None:
        self._parts = fetcher, shelf, trust or Trust(), read
        self._indexes: dict[str, Index] = {}
        self._markers: dict[tuple[tuple[str, str], ...], Markers] = {}

    def index(self, url: str) -> Index:
        """The index at ``url``."""
        if url not in self._indexes:
            self._indexes[url] = Index(url, *self._parts)
        return self._indexes[url]

    def listing(self, url: str, listing: Listing, labels: Callable[[str], str]) -> Index:
        """The page of ``listing`` at ``url``; later :meth:`index` returns it too. ``labels`` is as in ListingPage."""
        if url not in self._indexes:
            self._indexes[url] = ListingPage(url, listing, labels, *self._parts)
        return self._indexes[url]

    def markers(self, environment: Mapping[str, str]) -> Markers:
        """Which markers hold for the interpreter with these values."""
        return self._markers.setdefault(tuple(environment.items()), Markers(environment))


class Direct(NamedTuple):
    """A package at the address in a requirement: the file as in a lock, and the version, "" if unknown.

    ``metadata`` is None for a wheel, which is read like those of an index. ``requested`` is the address in the
    requirement, without login. It can name a branch if ``file`` names a commit.
    """

    file: PackageFile
    version: str
    metadata: Metadata | None = None
    requested: str = ""


class Indexes:
    """The indexes of a request, in order.

    ``mapped`` has the packages with an index of their own, which comes first for them. ``direct`` has the packages that
    a requirement gives by address. ``more`` has versions that the indexes may lack. Safe to use from many threads.
    """

    def __init__(
        self,
        urls: Sequence[str],
        pool: Pool,
        mapped: Mapping[str, str] | None = None,
        direct: Mapping[str, Direct] | None = None,
        more: More | None = None,
    ) -> None:
        self.pool = pool
        self._more = more or {}
        self._extended: dict[str, ExtendedProject] = {}
        self._indexes = tuple(map(pool.index, urls))
        self._mapped = {name: pool.index(url) for name, url in (mapped or {}).items()}
        self._at_address = direct or {}
        self._direct = {name: _alone(name, it) for name, it in self._at_address.items()}

    def project(self, name: str) -> Project | None:
        """The project on the first index that knows ``name``; None if no index knows it. Raises OutsideError."""
        if name in self._direct:
            return self._direct[name]
        for index in self._indexes_for(name):
            project = index.project(name)
            if project is not None:
                return self._with_elsewhere(name, Part(index, project))
        return self._with_elsewhere(name, None)

    def at_hand(self, name: str) -> tuple[bool, Project | None]:
        """Whether the answer of :meth:`project` is known without a request, and that answer."""
        if name in self._direct:
            return True, self._direct[name]
        for index in self._indexes_for(name):
            known, project = index.at_hand(name)
            if not known:
                return False, None
            if project is not None:
                return True, self._with_elsewhere(name, Part(index, project))
        return True, self._with_elsewhere(name, None)

    def direct(self, name: str) -> Direct | None:
        """The package ``name`` if a requirement gives it by address, else None."""
        return self._at_address.get(name)

    def is_direct(self, name: str, url: str) -> bool:
        """Whether a requirement gives ``name`` by the address ``url``."""
        found = self.direct(name)
        try:
            return found is not None and found.requested == without_secrets(parse_reference(url).url)
        except ValueError:
            return False

    def metadata(self, project: Project, file: RawFile) -> Metadata:
        """The metadata of ``file``. Raises OutsideError."""
        stated = self._stated(project)
        if stated is not None:
            return stated
        index, project = self.owner(project, file)
        return index.metadata(project, file)

    def build(self, project: Project, file: RawFile) -> Metadata | None:
        """The metadata from a build of ``file``; None if builds are not allowed. Raises OutsideError."""
        index, project = self.owner(project, file)
        return index.build(project, file)

    def metadata_at_hand(self, project: Project, file: RawFile) -> Metadata | None:
        """The metadata of ``file`` if it is known without a request, else None."""
        stated = self._stated(project)
        if stated is not None:
            return stated
        index, project = self.owner(project, file)
        return index.metadata_at_hand(project, file)

    def index_url(self, project: Project) -> str | None:
        """The URL of the index of ``project``, without credentials; None if it is a package by address."""
        return None if project.name in self._direct else _bare(self._of(project))

    def urls_for(self, name: str) -> list[str]:
        """The URLs of the indexes that are queried for ``name``, in order, without credentials."""
        return list(map(_bare, self._indexes_for(name)))

    def index_of_file(self, project: Project, file: RawFile) -> str | None:
        """The same for one file: the files of an extended project come from several indexes."""
        return None if project.name in self._direct else _bare(self.owner(project, file).of)

    def owner(self, project: Project, file: RawFile) -> Part:
        """The index that has ``file``, and its part of the project."""
        if isinstance(project, ExtendedProject):
            return project.owner(file)
        return Part(self._of(project), project)

    def _stated(self, project: Project) -> Metadata | None:
        found = self.direct(project.name)
        return None if found is None else found.metadata

    def _with_elsewhere(self, name: str, base: Part | None) -> Project | None:
        more = self._more.get(name)
        if not more:
            return None if base is None else base.project
        if name not in self._extended:
            there = {
                version: [(self.pool.index(it.index_url), it.version) for it in places]
                for version, places in more.items()
            }
            self._extended.setdefault(name, ExtendedProject(name, base, there))
        return self._extended[name]

    def _indexes_for(self, name: str) -> tuple[Index, ...]:
        own = self._mapped.get(name)
        return self._indexes if own is None else (own, *self._indexes)

    def _of(self, project: Project) -> Index:
        if isinstance(project, ExtendedProject):
            return project.first_index
        if project.name in self._direct or (len(self._indexes) == 1 and project.name not in self._mapped):
            return self._indexes[0]
        return next(index for index in self._indexes_for(project.name) if index.holds(project))


def _bare(index: Index) -> str:
    return without_secrets(index.url).rstrip("/")


def _alone(name: str, direct: Direct) -> Project:
    """A project of one version with one file."""
    file = direct.file
    return Project(name, file.url, {direct.version or "0": [tuple(file)]})  # type: ignore[list-item]  # a RawFile is a PackageFile without names


def package_file(project: Project, raw: RawFile) -> PackageFile:
    """``raw`` with its full address, without credentials."""
    return PackageFile._make((raw[0], without_secrets(file_address(project, raw)), *raw[2:]))
