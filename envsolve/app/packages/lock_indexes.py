"""The package indexes for a lock: those that the request names, or else those in the settings of uv and pip.

A named index replaces the settings, so that the command recorded in a lock works the same elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from envsolve.app.packages.requirements import Requirements, read_requirements
from envsolve.app.request.network import Network
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, OutsideError, UsageError
from envsolve.frameworks import OWN_INDEX
from envsolve.index.address import address_of
from envsolve.index.build_environments import BuildEnvironments
from envsolve.index.client import Indexes, Pool
from envsolve.index.fetch import PAGE_LIMIT, Response
from envsolve.index.file_metadata import FileMetadata
from envsolve.index.local import WithFolders, path_of
from envsolve.index.one_index import Trust
from envsolve.index.settings import IndexSettings, default_index, read_settings
from envsolve.index.store import Store, store_at
from envsolve.model.note import Note
from envsolve.model.package import PackageFile
from envsolve.model.release import PYTORCH_INDEX
from envsolve.model.request import Request
from envsolve.resolve.closure.workers import Workers

if TYPE_CHECKING:
    from envsolve.app.packages.wheel_facts import WheelReader
    from envsolve.index.direct import DirectReader
    from envsolve.index.http import HttpFetcher
    from envsolve.releases.reader import Reader
    from envsolve.releases.remote import Observations

_EARLY = 16


class Places(NamedTuple):
    """The addresses of the indexes in the order of queries; ``default`` is the last.

    ``is_plain`` means that no one named the default. ``origin`` is the setting that names it, "" if the request or a
    requirements file does. ``mapped`` ties packages to an index of their own.
    """

    extra: tuple[str, ...]
    default: str
    is_plain: bool
    mapped: Mapping[str, str]
    notes: tuple[Note, ...] = ()
    origin: str = ""

    @property
    def default_shown(self) -> str:
        """The default as a lock records it, without credentials."""
        return without_secrets(self.default).rstrip("/")


class Connection:
    """The connection of one command to the indexes: fetcher, cache and queried indexes."""

    def __init__(
        self,
        network: Network,
        settings: IndexSettings,
        environ: Mapping[str, str],
        *,
        builds: bool,
        build_constraints: tuple[str, ...] = (),
    ) -> None:
        self._store: Store | None = None if network.no_cache else store_at(network.cache_directory, environ)
        self._fetcher = _OfflineFetcher() if network.offline else _LazyFetcher(settings)
        shelf = _NoCache() if self._store is None else self._store
        trust = Trust(offline=network.offline, refresh=network.refresh)
        self._early = Workers(_EARLY)
        self._is_closed = False
        self._environments = BuildEnvironments(build_constraints) if builds else None
        reader = FileMetadata(self._environments)
        self.pool = Pool(WithFolders(self._fetcher), shelf, reader, trust)
        self._of_direct = WithFolders(self._fetcher), shelf, environ, trust.offline, self._environments

    def have_pages(self, names: Sequence[str], where: Places) -> None:
        """Fetch the pages of ``names`` while the stack is solved, unless they are cached.

        The index of PyTorch's packages is not known yet, so these are left out unless a single index is named.
        """
        indexes = Indexes((*where.extra, where.default), self.pool, where.mapped)
        known = [name for name in names if not (where.is_plain and name in OWN_INDEX)]
        missing = [name for name in known if not indexes.at_hand(name)[0]]
        if missing and not all(it.startswith("file:") for it in (*where.extra, where.default)):
            self._fetcher.prepare()
        for name in missing:
            self._early.submit(partial(_fetch_page, indexes, name))

    @cached_property
    def direct(self) -> DirectReader:
        """Reads packages by their address."""
        from envsolve.index.direct import DirectReader

        fetcher, shelf, environ, offline, environments = self._of_direct
        return DirectReader(fetcher, shelf, environ, environments, offline=offline)

    @cached_property
    def wheels(self) -> WheelReader:
        """Reads the contents of wheels."""
        from envsolve.app.packages.wheel_facts import WheelReader

        fetcher, shelf, _, offline, _ = self._of_direct
        return WheelReader(fetcher, shelf, offline=offline)

    def with_digest(self, file: PackageFile, progress: Callable[[int, int], None]) -> PackageFile:
        """See :func:`envsolve.index.wheel_member.with_digest`."""
        from envsolve.index.wheel_member import with_digest

        return with_digest(self._of_direct[0], file, progress)

    def observations(self, reader: Reader, largest: int | None, progress: Callable[[str], None]) -> Observations:
        """Reads the wheels of a framework; see Observations."""
        from envsolve.releases.remote import Observations

        fetcher, shelf, _, offline, _ = self._of_direct
        return Observations(reader, fetcher, shelf, offline=offline, largest=largest, progress=progress)

    def close(self) -> None:
        """Close all connections; only the first call has an effect."""
        if self._is_closed:
            return
        self._is_closed = True
        self._early.close()
        if self._environments is not None:
            self._environments.close()
        self._fetcher.close()

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on settings and the cache."""
        failure = None if self._store is None else self._store.failure
        settings = (Note("setting-not-used", text) for text in self._fetcher.notes)
        return (*settings, *([] if failure is None else [Note("cache-not-used", failure)]))


def _fetch_page(indexes: Indexes, name: str) -> None:
    indexes.project(name)


class _LazyFetcher:
    """A fetcher that is created for the first request: a lock from the cache does not import the HTTP library."""

    def __init__(self, settings: IndexSettings) -> None:
        self._settings = settings
        self._making = Lock()
        self._made: HttpFetcher | None = None
        self._is_closed = False

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, limit: int = PAGE_LIMIT) -> Response:
        """See Fetcher."""
        return self._fetcher().fetch(url, headers, limit=limit)

    def prepare(self) -> None:
        """Import the HTTP library in this thread, for threads that send requests right away.

        If another thread imports it while this one imports the solver, its first request is 10 ms later (measured).
        """
        self._fetcher()

    def close(self) -> None:
        """Close all connections, including those that a thread is about to open."""
        with self._making:
            self._is_closed = True
        if self._made is not None:
            self._made.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """The settings that could not be used."""
        return () if self._made is None else tuple(self._made.notes)

    def _fetcher(self) -> HttpFetcher:
        with self._making:
            if self._made is None:
                if self._is_closed:
                    raise OutsideError("fetch-cancelled", "the fetch was cancelled because the command is ending")
                self._made = self._make()
            return self._made

    def _make(self) -> HttpFetcher:
        from envsolve.index.http import HttpFetcher

        certificate = self._settings.client_cert
        return HttpFetcher(
            trusted_hosts=frozenset(self._settings.trusted_hosts),
            client_certificate=None if certificate is None else Path(certificate),
        )


def settings_of(environ: Mapping[str, str]) -> IndexSettings:
    """The user's configuration on this machine. Raises UsageError."""
    home = environ.get("HOME") or environ.get("USERPROFILE")
    return read_settings(environ, Path(home) if home else None, Path.cwd(), prefix=Path(sys.prefix))


def places(request: Request, requirements: Requirements, settings: IndexSettings) -> Places:
    """The indexes of ``request``. Those on the command line come before those in files.

    Raises UsageError if an address is invalid or a folder does not exist.
    """
    for key, url in (("index-url", request.index_url), *(("extra-index-urls", it) for it in request.extra_index_urls)):
        if url is not None:
            _require_place(url, request.requester.name_of(key))
    named = request.index_url or requirements.index_url
    if named is not None:
        settings = IndexSettings()
    named = named or settings.index_url
    extra = (*request.extra_index_urls, *requirements.extra_index_urls, *settings.extra_index_urls)
    unread = settings.find_links and f"find-links in {settings.find_links_origin} is ignored"
    default = named or default_index()
    if settings.index_url and default.startswith("file:"):
        _require_place(default, settings.origin)
    return Places(
        extra=tuple(dict.fromkeys(url for url in extra if url != default)),
        default=default,
        is_plain=named is None,
        mapped=dict(settings.package_indexes),
        notes=(Note("find-links-not-read", unread),) if unread else (),
        origin=settings.origin if settings.index_url else "",
    )


def _require_place(url: str, named_by: str) -> None:
    """Raise UsageError if ``url`` is invalid, or a folder that does not exist.

    A page that is missing in a folder only means that the index does not have that package.
    """
    if not url.startswith("file:"):
        address_of(url)
    elif not path_of(url).is_dir():
        message = f"the folder of an index does not exist: {path_of(url)}"
        raise UsageError("url-invalid", message, (f"it is set by {named_by}",), (Hint("check the name of the folder"),))


def name_index(error: OutsideError, request: Request, where: Places | None) -> None:
    """Add to an ``error`` of an index which setting names it, and how to name another one in ``request``."""
    from envsolve.index.failures import ANOTHER_INDEX

    key, what = "index-url", "use another index, such as a mirror,"
    if is_of_pytorch(error, request):
        key, what = "pytorch-index-url", "use another PyTorch index, such as a mirror,"
    if where is not None and where.origin and _lies_below(error.address, where.default):
        error.cause = (*error.cause, f"that index is set in {where.origin}")
    hint = Hint(f"{what} with {request.requester.name_of(key)}")
    error.hints = tuple(hint if it == ANOTHER_INDEX else it for it in error.hints)


def is_of_pytorch(error: OutsideError, request: Request) -> bool:
    """Whether PyTorch's own index, or its mirror, failed."""
    index = (request.packages.pytorch_index_url or PYTORCH_INDEX).rstrip("/")
    return error.address.startswith(f"{without_secrets(index)}/")


def _lies_below(address: str, index: str) -> bool:
    if index.startswith("file:"):
        return False
    folder, _, _ = without_secrets(address_of(index).url).partition("?")
    return address.startswith(f"{folder.rstrip('/')}/")


class _NoCache:
    """A cache that stores nothing."""

    def read(self, bucket: str, key: str) -> bytes | None:
        return None

    def write(self, bucket: str, key: str, content: bytes) -> None:
        return None


class _OfflineFetcher:
    """A fetcher for --offline, which raises an error for everything that is not cached."""

    notes: tuple[str, ...] = ()

    def prepare(self) -> None:
        """Nothing to prepare."""

    def close(self) -> None:
        """Nothing to close."""

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, limit: int = PAGE_LIMIT) -> Response:
        raise OutsideError("offline", f"{without_secrets(url)} is not cached, and --offline is set")


class Start(NamedTuple):
    """The requirements of a request, its indexes, and the connection to them."""

    wanted: Requirements
    where: Places
    connection: Connection


@contextmanager
def start(request: Request, network: Network, environ: Mapping[str, str]) -> Iterator[Start]:
    """Read the requirements of ``request`` and start to fetch their pages. Its frameworks do not count yet.

    Closes the connection at the end. An error of the default index says who named that index. Raises UsageError if a
    file or a setting cannot be read.
    """
    wanted = read_requirements(request.packages)
    settings = settings_of(environ)
    where = places(request, wanted, settings)
    builds, constraints = request.packages.allow_builds, wanted.build_constraints
    connection = Connection(network, settings, environ, builds=builds, build_constraints=constraints)
    try:
        connection.have_pages(list(dict.fromkeys(need.name for need, _ in wanted.needs if not need.url)), where)
        yield Start(wanted, where, connection)
    except OutsideError as error:
        name_index(error, request, where)
        raise
    finally:
        connection.close()
