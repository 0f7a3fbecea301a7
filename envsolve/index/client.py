"""Package indexes, from each of which a page or a metadata file is fetched once.

Several indexes are asked in order, and the first that knows a name answers for it alone: a package of a public index
never takes the place of one with the same name in a private index that stands before it.
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
    """The indexes that were asked so far, one object for each address, so that no page is fetched twice."""

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
        """The page of ``listing`` at ``url``, which :meth:`index` has from now on; ``labels`` as in ListingPage."""
        if url not in self._indexes:
            self._indexes[url] = ListingPage(url, listing, labels, *self._parts)
        return self._indexes[url]

    def markers(self, environment: Mapping[str, str]) -> Markers:
        """Which markers hold for the interpreter with these values."""
        return self._markers.setdefault(tuple(environment.items()), Markers(environment))


class Direct(NamedTuple):
    """What is at the address of a requirement: the file as a lock names it, and its version, "" if unknown.

    ``metadata`` is None for a wheel, which is read as those of an index are. ``asked`` is the address as requirements
    have it, without login: with a branch maybe, where ``file`` has a commit.
    """

    file: PackageFile
    version: str
    metadata: Metadata | None = None
    asked: str = ""


class Indexes:
    """The indexes of a request, in the order they are asked.

    ``mapped`` names packages that are looked up in an index of their own first, ``direct`` those that a requirement
    gives by their address. ``more`` are versions that the indexes may lack.
    Safe to use from many threads. Each page and each metadata file is fetched at most once.
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
        """What the first index that knows ``name`` has of it; None where none knows it. Raises OutsideError."""
        if name in self._direct:
            return self._direct[name]
        for index in self._asked(name):
            project = index.project(name)
            if project is not None:
                return self._with_elsewhere(name, Part(index, project))
        return self._with_elsewhere(name, None)

    def at_hand(self, name: str) -> tuple[bool, Project | None]:
        """Whether all this is known without asking anybody, and what it is."""
        if name in self._direct:
            return True, self._direct[name]
        for index in self._asked(name):
            known, project = index.at_hand(name)
            if not known:
                return False, None
            if project is not None:
                return True, self._with_elsewhere(name, Part(index, project))
        return True, self._with_elsewhere(name, None)

    def direct(self, name: str) -> Direct | None:
        """What a requirement gives by its address for ``name``; None where ``name`` is from an index."""
        return self._at_address.get(name)

    def is_direct(self, name: str, url: str) -> bool:
        """Whether ``name`` is from the address ``url``."""
        found = self.direct(name)
        try:
            return found is not None and found.asked == without_secrets(parse_reference(url).url)
        except ValueError:
            return False

    def metadata(self, project: Project, file: RawFile) -> Metadata:
        """What ``file`` requires. Raises OutsideError."""
        stated = self._stated(project)
        if stated is not None:
            return stated
        index, project = self.owner(project, file)
        return index.metadata(project, file)

    def build(self, project: Project, file: RawFile) -> Metadata | None:
        """What the build of ``file`` says that it requires; None where builds are not allowed. Raises OutsideError."""
        index, project = self.owner(project, file)
        return index.build(project, file)

    def metadata_at_hand(self, project: Project, file: RawFile) -> Metadata | None:
        """The same without asking anybody; None where somebody has to be asked."""
        stated = self._stated(project)
        if stated is not None:
            return stated
        index, project = self.owner(project, file)
        return index.metadata_at_hand(project, file)

    def index_url(self, project: Project) -> str | None:
        """The index that ``project`` is from, without credentials; None where it is from one file."""
        return None if project.name in self._direct else _bare(self._of(project))

    def index_of_file(self, project: Project, file: RawFile) -> str | None:
        """The same for one file: an extended project has them from several indexes."""
        return None if project.name in self._direct else _bare(self.owner(project, file).of)

    def owner(self, project: Project, file: RawFile) -> Part:
        """The index that has ``file``, and what it has of the project."""
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

    def _asked(self, name: str) -> tuple[Index, ...]:
        own = self._mapped.get(name)
        return self._indexes if own is None else (own, *self._indexes)

    def _of(self, project: Project) -> Index:
        if isinstance(project, ExtendedProject):
            return project.first_index
        if project.name in self._direct or (len(self._indexes) == 1 and project.name not in self._mapped):
            return self._indexes[0]
        return next(index for index in self._asked(project.name) if index.holds(project))


def _bare(index: Index) -> str:
    return without_secrets(index.url).rstrip("/")


def _alone(name: str, direct: Direct) -> Project:
    """A project of one version with one file."""
    file = direct.file
    return Project(name, file.url, {direct.version or "0": [tuple(file)]})  # type: ignore[list-item]  # a RawFile is a PackageFile without names


def package_file(project: Project, raw: RawFile) -> PackageFile:
    """``raw`` with its full address, without credentials."""
    return PackageFile._make((raw[0], without_secrets(file_address(project, raw)), *raw[2:]))
