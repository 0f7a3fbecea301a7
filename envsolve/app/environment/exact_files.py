"""The files of exact versions on package indexes, with addresses and digests. Nothing is chosen.

Queries the same indexes as a lock with the same options, in the same order, with the same cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from packaging.version import Version

from envsolve.app.packages.lock_indexes import Connection, Places, places, settings_of
from envsolve.app.packages.requirements import Requirements
from envsolve.app.request.network import Network
from envsolve.frameworks import OWN_INDEX
from envsolve.index.client import Indexes, package_file
from envsolve.index.fitting import Interpreter
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.package import PackageFile
from envsolve.model.release import PYTORCH_INDEX
from envsolve.model.request import Request
from envsolve.resolve.closure.releases import Fit, Fitting, Releases, Sources, Unfit, Wanted

_ANY = Wanted(Interpreter((3, 12, 0), Platform.LINUX_64))
"""A placeholder for the target if all files are listed, whichever fit."""


class IndexOptions(NamedTuple):
    """Which indexes to query, and how: the options of a lock."""

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    pytorch_index_url: str | None = None
    network: Network = Network()
    allow_builds: bool = False


class Listed(NamedTuple):
    """One version on an index: all its files, those that fit the target, the best first, or why none fits.

    Without a target, all files fit.
    """

    version: str
    files: tuple[PackageFile, ...]
    fitting: tuple[PackageFile, ...]
    index_url: str
    unfit: Unfit | None = None

    @property
    def requires_python(self) -> str | None:
        """The Pythons that the best file supports."""
        return next((it.requires_python for it in self.fitting or self.files), None)


class ExactFiles:
    """The indexes for one command. ``where`` has their addresses, ``notes`` those on settings and cache."""

    def __init__(self, indexes: Indexes, where: Places, connection: Connection, wanted: Wanted | None) -> None:
        self._indexes, self._connection = indexes, connection
        self._wanted = wanted
        self._fitting = None if wanted is None else Fitting(wanted)
        self.where = where

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on settings and the cache."""
        return (*self.where.notes, *self._connection.notes)

    def of(self, name: str, version: str) -> Listed | None:
        """The files of ``version`` on the first index that has ``name``; None if none has it. Raises OutsideError."""
        project = self._indexes.project(name)
        if project is None:
            return None
        releases = Releases(project, self._fitting or Fitting(_ANY))
        position = releases.position(version)
        if position is None:
            return None
        files = tuple(package_file(project, raw) for raw in project.files(position))
        index = self._indexes.index_url(project)
        assert index is not None
        found = Listed(project.versions[position], files, files, index)
        if self._wanted is None:
            return found
        fit = releases.fit(position)
        if isinstance(fit, Unfit) and self._wanted.sources:
            fit = releases.source_fit(position)
        if isinstance(fit, Fit):
            return found._replace(fitting=tuple(package_file(project, raw) for raw in fit.files))
        return found._replace(fitting=(), unfit=fit)


@contextmanager
def exact_files(
    options: IndexOptions,
    named: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    requirements: Requirements | None = None,
    interpreter: Interpreter | None,
    mapped: Mapping[str, str] | None = None,
) -> Iterator[ExactFiles]:
    """The indexes for the versions in ``named``, by name, queried for ``interpreter``. The cache is written at the end.

    ``requirements`` has the indexes that a file names. ``mapped`` ties packages to the index that they are known to
    come from; builds of PyTorch's own index are recognised by their versions. Raises UsageError if settings cannot be
    read.
    """
    settings = settings_of(environ)
    request = Request((), index_url=options.index_url, extra_index_urls=options.extra_index_urls)
    where = places(request, requirements or Requirements((), (), {}, None, ()), settings)
    own = {**where.mapped, **dict(_of_pytorch(named, options, where)), **(mapped or {})}
    sources = Sources.ANY if options.allow_builds else Sources.NONE
    wanted = None if interpreter is None else Wanted(interpreter, sources=sources)
    connection = Connection(options.network, settings, environ, builds=False)
    try:
        connection.have_pages([name for name in named if name not in own], where)
        yield ExactFiles(Indexes((*where.extra, where.default), connection.pool, own), where, connection, wanted)
    finally:
        connection.close()


def _of_pytorch(named: Mapping[str, str], options: IndexOptions, where: Places) -> Iterator[tuple[str, str]]:
    """The folder of PyTorch's index for each build whose version names one: ``2.8.0+cu128`` is in ``cu128``."""
    if not where.is_plain and options.pytorch_index_url is None:
        return
    root = (options.pytorch_index_url or PYTORCH_INDEX).rstrip("/")
    for name, version in named.items():
        try:
            local = Version(version).local
        except ValueError:
            continue
        if local is not None and name in OWN_INDEX:
            yield name, f"{root}/{local}/"
