"""What package indexes have of versions that are known: their files with addresses and digests. Nothing is chosen.

The indexes are those that a lock of the same options would ask, in the same order, from the same cache.
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
"""What stands for the target where files are listed, whichever of them suit."""


class Asking(NamedTuple):
    """Which indexes are asked, and how: as the options of a lock have it."""

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    pytorch_index_url: str | None = None
    network: Network = Network()
    allow_builds: bool = False


class Listed(NamedTuple):
    """One version on an index: every file, those that the target installs, best first, or why it installs none.

    Without a target all of them suit.
    """

    version: str
    files: tuple[PackageFile, ...]
    fitting: tuple[PackageFile, ...]
    index_url: str
    unfit: Unfit | None = None

    @property
    def requires_python(self) -> str | None:
        """The Pythons that the file an installer takes is for."""
        return next((it.requires_python for it in self.fitting or self.files), None)


class ExactFiles:
    """Answers for one command. ``where`` are the indexes, ``notes`` what to know of settings and cache."""

    def __init__(self, indexes: Indexes, where: Places, connection: Connection, wanted: Wanted | None) -> None:
        self._indexes, self._connection = indexes, connection
        self._wanted = wanted
        self._fitting = None if wanted is None else Fitting(wanted)
        self.where = where

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to know of the settings and the cache."""
        return (*self.where.notes, *self._connection.notes)

    def of(self, name: str, version: str) -> Listed | None:
        """What the first index that knows ``name`` has of ``version``; None without any. Raises OutsideError."""
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
    asking: Asking,
    named: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    requirements: Requirements | None = None,
    interpreter: Interpreter | None = None,
    mapped: Mapping[str, str] | None = None,
) -> Iterator[ExactFiles]:
    """The indexes for the versions ``named``, by name, queried for ``interpreter``. Answers are cached at the end.

    ``given`` are the indexes that a file names. ``mapped`` ties packages to the index that they are known to be from;
    builds of PyTorch's own index are known by their versions. Raises UsageError for settings that cannot be read.
    """
    settings = settings_of(environ)
    request = Request((), index_url=asking.index_url, extra_index_urls=asking.extra_index_urls)
    where = places(request, requirements or Requirements((), (), {}, None, ()), settings)
    own = {**where.mapped, **dict(_of_pytorch(named, asking, where)), **(mapped or {})}
    sources = Sources.ANY if asking.allow_builds else Sources.NONE
    wanted = None if interpreter is None else Wanted(interpreter, sources=sources)
    connection = Connection(asking.network, settings, environ, builds=False)
    try:
        connection.have_pages([name for name in named if name not in own], where)
        yield ExactFiles(Indexes((*where.extra, where.default), connection.pool, own), where, connection, wanted)
    finally:
        connection.close()


def _of_pytorch(named: Mapping[str, str], asking: Asking, where: Places) -> Iterator[tuple[str, str]]:
    """The folder of PyTorch's index for each build that says it is of one: ``2.8.0+cu128`` is of ``cu128``."""
    if not where.is_plain and asking.pytorch_index_url is None:
        return
    root = (asking.pytorch_index_url or PYTORCH_INDEX).rstrip("/")
    for name, version in named.items():
        try:
            local = Version(version).local
        except ValueError:
            continue
        if local is not None and name in OWN_INDEX:
            yield name, f"{root}/{local}/"
