"""One package index: the page of a project, the metadata of a file, each fetched once and cached."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from time import time
from typing import Generic, NamedTuple, Protocol, TypeVar, cast
from urllib.parse import urljoin

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, OutsideError, UsageError
from envsolve.index.cached_page import CachedPage, expiry, may_cache, page_in
from envsolve.index.fetch import Fetcher, Response
from envsolve.index.metadata import Metadata
from envsolve.index.page import ACCEPT, Project, RawFile, may_lead, read_page
from envsolve.index.store import decoded, encoded
from envsolve.model.package import PackageFile
from envsolve.model.release import PYTORCH_INDEX

_OK, _NOT_MODIFIED, _UNAUTHORIZED, _FORBIDDEN, _NOT_THERE = 200, 304, 401, 403, (404, 410)

T = TypeVar("T")


class Shelf(Protocol):
    """A cache that lasts between runs."""

    def read(self, bucket: str, key: str) -> bytes | None:
        """The content stored under ``key``, or None."""

    def write(self, bucket: str, key: str, content: bytes) -> None:
        """Store ``content`` under ``key``."""


class Trust(NamedTuple):
    """How far the cache is trusted. ``offline`` sends no request; ``refresh`` fetches again whatever is cached."""

    offline: bool = False
    refresh: bool = False


class MetadataReader(Protocol):
    """One way to the metadata of a file; see envsolve.index.file_metadata."""

    @property
    def builds(self) -> object:
        """The environments for builds of metadata; None or False if builds are not allowed."""

    def __call__(self, fetcher: Fetcher, file: PackageFile) -> Metadata:
        """The metadata that ``file`` states. Raises OutsideError."""

    def built(self, fetcher: Fetcher, file: PackageFile) -> Metadata:
        """The metadata from a build of ``file``. Raises OutsideError."""


def file_address(project: Project, raw: RawFile) -> str:
    """The full address of ``raw``. Raises OutsideError if its page must not link to it."""
    try:
        url = urljoin(project.url, raw[1])
    except ValueError:
        url = raw[1]
    if not may_lead(project.url, url):
        raise _misled(project, raw, url)
    return url


def _misled(project: Project, raw: RawFile, url: str) -> OutsideError:
    message = f"the page of {project.name} gives {without_secrets(url)!r} as the URL of {raw[0]}"
    hint = Hint("an index must use http or https URLs: report it to its operator, or use another index")
    cause = f"the page is from {without_secrets(project.url)}"
    return OutsideError("index-page-invalid", message, (cause,), (hint,))


def identity(raw: RawFile) -> str:
    """The strongest digest of a file, or its name if the index states no digest."""
    hashes = dict(raw[2])
    return hashes.get("sha256") or next(iter(hashes.values()), raw[0])


class _Once(Generic[T]):
    """A value that the first thread computes while others wait for it."""

    __slots__ = ("_lock", "error", "is_known", "value")

    def __init__(self) -> None:
        self._lock = Lock()
        self.value: T | None = None
        """None if it is not known, or could not be computed."""
        self.error: OutsideError | None = None
        self.is_known = False

    def get(self, work_out: Callable[[], T]) -> T:
        """The value. Raises the OutsideError of its computation each time."""
        if not self.is_known:
            with self._lock:
                if not self.is_known:
                    try:
                        self.value = work_out()
                    except OutsideError as error:
                        self.error = error
                    self.is_known = True
        if self.error is not None:
            raise self.error
        return cast("T", self.value)


class Index:
    """One package index. The pages of projects are below its URL."""

    def __init__(self, url: str, fetcher: Fetcher, shelf: Shelf, trust: Trust, read: MetadataReader) -> None:
        self.url = url.rstrip("/") + "/"
        self._fetcher, self._shelf, self._trust, self._read = fetcher, shelf, trust, read
        self._projects: dict[str, _Once[Project | None]] = {}
        self._metadata: dict[tuple[str, str], _Once[Metadata]] = {}
        self._built: dict[tuple[str, str], _Once[Metadata]] = {}
        self._stored: dict[str, Metadata | None] = {}
        """Metadata from the cache, by the digest of the file."""
        self._uncacheable: set[str] = set()
        """Projects whose pages and metadata must not be cached."""

    def project(self, name: str) -> Project | None:
        """The project ``name``; None if the index does not know it. Raises OutsideError."""
        return self._projects.setdefault(name, _Once()).get(lambda: self._load(name, self._cached(name)))

    def at_hand(self, name: str) -> tuple[bool, Project | None]:
        """Whether the answer of :meth:`project` is known without a request, and that answer."""
        once = self._projects.setdefault(name, _Once())
        if not once.is_known:
            cached = self._cached(name)
            if not self._is_fresh(cached):
                return False, None
            with suppress(OutsideError):
                once.get(lambda: self._load(name, cached))
        return once.error is None, once.value

    def holds(self, project: Project) -> bool:
        """Whether ``project`` is from this index."""
        once = self._projects.get(project.name)
        return once is not None and once.value is project

    def metadata(self, project: Project, file: RawFile) -> Metadata:
        """The metadata of ``file``, from a build if there was one. Raises OutsideError."""
        known = self._metadata.setdefault((project.name, identity(file)), _Once())
        return known.get(lambda: self._load_metadata(project, file))

    def build(self, project: Project, file: RawFile) -> Metadata | None:
        """The metadata from a build of ``file``; None if builds are not allowed. Raises OutsideError."""
        if not self._read.builds:
            return None
        if self._trust.offline:
            raise _not_cached(f"the metadata of {file[0]}", without_secrets(file_address(project, file)))
        key = (project.name, identity(file))
        once = self._built.setdefault(key, _Once())
        found = once.get(lambda: self._keep(project, file, self._read.built(self._fetcher, _whole(project, file))))
        self._metadata[key] = once
        return found

    def metadata_at_hand(self, project: Project, file: RawFile) -> Metadata | None:
        """The metadata of ``file`` if it is known without a request, else None."""
        once = self._metadata.get((project.name, identity(file)))
        return self._cached_metadata(project, file) if once is None else once.value

    def _address(self, name: str) -> str:
        """The address of the page of ``name``, with the query of the index, such as a token."""
        folder, mark, query = self.url.rstrip("/").partition("?")
        return f"{folder.rstrip('/')}/{name}/{mark}{query}"

    def _key(self, name: str) -> str:
        return without_secrets(self._address(name))

    def _cached(self, name: str) -> CachedPage | None:
        """The cached page of ``name``, fresh or not."""
        return decoded(self._shelf.read("pages", self._key(name)), CachedPage)

    def _is_fresh(self, cached: CachedPage | None) -> bool:
        """Whether ``cached`` can be used without another request."""
        return cached is not None and (self._trust.offline or (cached.expires > time() and not self._trust.refresh))

    def _load(self, name: str, cached: CachedPage | None) -> Project | None:
        if cached is not None and self._is_fresh(cached):
            return self._project_in(name, cached)
        if self._trust.offline:
            raise _not_cached(f"the page of {name}", self._key(name))
        response = self._fetcher.fetch(self._address(name), _request_headers(cached))
        if response.status == _NOT_MODIFIED and cached is not None:
            cached = cached._replace(expires=expiry(response))
        elif response.status == _OK:
            cached = page_in(response)
        elif response.status in _NOT_THERE or self._forbids_what_is_absent(response):
            cached = CachedPage(expiry(response))
        else:
            raise _refused(name, self._key(name), response.status)
        project = self._project_in(name, cached, response.url)
        if not may_cache(response) or _holds_secrets(cached.page or b""):
            self._uncacheable.add(name)
        else:
            if project is not None and not project.versions:  # the page of a network that asks to log in first
                cached = cached._replace(expires=0.0)
            self._shelf.write("pages", self._key(name), encoded(cached))
        return project

    def _forbids_what_is_absent(self, response: Response) -> bool:
        """PyTorch's index answers 403 for a project that it does not have, because its bucket may not be listed."""
        return response.status == _FORBIDDEN and self.url.startswith(PYTORCH_INDEX)

    def _project_in(self, name: str, cached: CachedPage, url: str = "") -> Project | None:
        if cached.page is None:
            return None
        own = self._address(name) if cached.url == self._key(name) else cached.url
        return read_page(name, cached.page, cached.content_type, url or own)

    def _cached_metadata(self, project: Project, file: RawFile) -> Metadata | None:
        digest = identity(file)
        if digest not in self._stored:
            self._stored[digest] = decoded(self._shelf.read("metadata", _key_of_file(project, file)), Metadata)
        return self._stored[digest]

    def _load_metadata(self, project: Project, file: RawFile) -> Metadata:
        found = self._cached_metadata(project, file)
        if found is not None:
            return found
        if self._trust.offline:
            raise _not_cached(f"the metadata of {file[0]}", without_secrets(file_address(project, file)))
        whole = _whole(project, file)
        try:
            return self._keep(project, file, self._read(self._fetcher, whole))
        except UsageError:
            raise _misled(project, file, whole.url) from None

    def _keep(self, project: Project, file: RawFile, found: Metadata) -> Metadata:
        """Cache ``found`` if the project may be cached, and return it."""
        if project.name not in self._uncacheable:
            self._shelf.write("metadata", _key_of_file(project, file), encoded(found))
        return found


def _key_of_file(project: Project, file: RawFile) -> str:
    return f"{without_secrets(project.url)} {identity(file)}"


def _whole(project: Project, file: RawFile) -> PackageFile:
    return PackageFile._make((file[0], file_address(project, file), *file[2:]))


def _holds_secrets(page: bytes) -> bool:
    """Whether a page has URLs with logins or signatures. It is not cached, because such URLs expire."""
    if not any(sign in page for sign in (b"@", b"/t/", b"?")):
        return False
    text = page.decode("utf-8", "replace")
    return without_secrets(text) != text


def _request_headers(cached: CachedPage | None) -> dict[str, str]:
    headers = {"Accept": ACCEPT}
    if cached is not None and cached.etag:
        headers["If-None-Match"] = cached.etag
    if cached is not None and cached.modified:
        headers["If-Modified-Since"] = cached.modified
    return headers


def _not_cached(what: str, url: str) -> OutsideError:
    hint = Hint("run the same command once without --offline to fill the cache")
    return OutsideError("not-cached", f"{what} ({url}) is not cached, and --offline is set", hints=(hint,))


def _refused(name: str, url: str, status: int) -> OutsideError:
    hint = Hint("give user name and password in the URL, in .netrc or in a keyring")
    hints = (hint,) if status in (_UNAUTHORIZED, _FORBIDDEN) else ()
    return OutsideError("index-refused", f"access to {name} denied: {url} returned status {status}", hints=hints)
