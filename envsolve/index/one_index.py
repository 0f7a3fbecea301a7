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
from envsolve.index.fetch import Fetcher, Response
from envsolve.index.kept import Kept, expiry, kept_of, may_be_kept, read_kept, written
from envsolve.index.metadata import Metadata
from envsolve.index.page import ACCEPT, Project, RawFile, may_lead, read_page
from envsolve.model.package import PackageFile
from envsolve.model.release import PYTORCH_INDEX

_OK, _NOT_MODIFIED, _UNAUTHORIZED, _FORBIDDEN, _NOT_THERE = 200, 304, 401, 403, (404, 410)

T = TypeVar("T")


class Shelf(Protocol):
    """Where answers are kept between two runs."""

    def read(self, bucket: str, key: str) -> bytes | None:
        """What was written under ``key``, or None."""

    def write(self, bucket: str, key: str, content: bytes) -> None:
        """Keep ``content`` under ``key``."""


class Trust(NamedTuple):
    """How far the cache is trusted. ``offline`` sends no request; ``refresh`` fetches again whatever is cached."""

    offline: bool = False
    refresh: bool = False


class MetadataReader(Protocol):
    """One way to the metadata of a file; see envsolve.index.file_metadata."""

    @property
    def builds(self) -> object:
        """Where it may build what says nothing without; None or False where it may not."""

    def __call__(self, fetcher: Fetcher, file: PackageFile) -> Metadata:
        """What ``file`` says of itself. Raises OutsideError."""

    def built(self, fetcher: Fetcher, file: PackageFile) -> Metadata:
        """What a build of ``file`` says of it. Raises OutsideError."""


def file_address(project: Project, raw: RawFile) -> str:
    """The full address of ``raw``. Raises OutsideError where its page should not lead there."""
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
    """What tells a file from all others: its strongest digest, or its name where the index has none."""
    hashes = dict(raw[2])
    return hashes.get("sha256") or next(iter(hashes.values()), raw[0])


class _Once(Generic[T]):
    """A value that is worked out by the first who asks, while others wait for it."""

    __slots__ = ("_lock", "error", "is_known", "value")

    def __init__(self) -> None:
        self._lock = Lock()
        self.value: T | None = None
        """None where it is not known, or could not be worked out."""
        self.error: OutsideError | None = None
        self.is_known = False

    def get(self, work_out: Callable[[], T]) -> T:
        """The value. Raises the OutsideError that working it out raised, each time."""
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
    """One package index, by the address that the pages of projects lie under."""

    def __init__(self, url: str, fetcher: Fetcher, shelf: Shelf, trust: Trust, read: MetadataReader) -> None:
        self.url = url.rstrip("/") + "/"
        self._fetcher, self._shelf, self._trust, self._read = fetcher, shelf, trust, read
        self._projects: dict[str, _Once[Project | None]] = {}
        self._metadata: dict[tuple[str, str], _Once[Metadata]] = {}
        self._built: dict[tuple[str, str], _Once[Metadata]] = {}
        self._kept: dict[str, Metadata | None] = {}
        """What the shelf has of files, by their digests."""
        self._passing: set[str] = set()
        """Projects of which nothing may be kept."""

    def project(self, name: str) -> Project | None:
        """What it has of ``name``; None where it does not know the name. Raises OutsideError."""
        return self._projects.setdefault(name, _Once()).get(lambda: self._load(name, self._stale(name)))

    def at_hand(self, name: str) -> tuple[bool, Project | None]:
        """Whether it is known, without asking, what it has of ``name``; and what that is."""
        once = self._projects.setdefault(name, _Once())
        if not once.is_known:
            kept = self._stale(name)
            if not self._is_fresh(kept):
                return False, None
            with suppress(OutsideError):
                once.get(lambda: self._load(name, kept))
        return once.error is None, once.value

    def holds(self, project: Project) -> bool:
        """Whether ``project`` is from this index."""
        once = self._projects.get(project.name)
        return once is not None and once.value is project

    def metadata(self, project: Project, file: RawFile) -> Metadata:
        """What ``file`` requires; a build that was made of it counts. Raises OutsideError."""
        known = self._metadata.setdefault((project.name, identity(file)), _Once())
        return known.get(lambda: self._load_metadata(project, file))

    def build(self, project: Project, file: RawFile) -> Metadata | None:
        """What the build of ``file`` says that it requires; None where builds are not allowed. Raises OutsideError."""
        if not self._read.builds:
            return None
        if self._trust.offline:
            raise _not_kept(f"the metadata of {file[0]}", without_secrets(file_address(project, file)))
        key = (project.name, identity(file))
        once = self._built.setdefault(key, _Once())
        found = once.get(lambda: self._keep(project, file, self._read.built(self._fetcher, _whole(project, file))))
        self._metadata[key] = once
        return found

    def metadata_at_hand(self, project: Project, file: RawFile) -> Metadata | None:
        """The same without asking."""
        once = self._metadata.get((project.name, identity(file)))
        return self._kept_metadata(project, file) if once is None else once.value

    def _address(self, name: str) -> str:
        """Where the page of ``name`` is; what the index is asked with, such as a token, stands behind it."""
        folder, mark, query = self.url.rstrip("/").partition("?")
        return f"{folder.rstrip('/')}/{name}/{mark}{query}"

    def _key(self, name: str) -> str:
        return without_secrets(self._address(name))

    def _stale(self, name: str) -> Kept | None:
        """What is kept of the page of ``name``, whether it still counts or not."""
        return read_kept(self._shelf.read("pages", self._key(name)), Kept)

    def _is_fresh(self, kept: Kept | None) -> bool:
        """Whether ``kept`` counts without another request."""
        return kept is not None and (self._trust.offline or (kept.expires > time() and not self._trust.refresh))

    def _load(self, name: str, kept: Kept | None) -> Project | None:
        if kept is not None and self._is_fresh(kept):
            return self._of_kept(name, kept)
        if self._trust.offline:
            raise _not_kept(f"the page of {name}", self._key(name))
        response = self._fetcher.fetch(self._address(name), _asking(kept))
        if response.status == _NOT_MODIFIED and kept is not None:
            kept = kept._replace(expires=expiry(response))
        elif response.status == _OK:
            kept = kept_of(response)
        elif response.status in _NOT_THERE or self._forbids_what_is_absent(response):
            kept = Kept(expiry(response))
        else:
            raise _refused(name, self._key(name), response.status)
        project = self._of_kept(name, kept, response.url)
        if not may_be_kept(response) or _holds_secrets(kept.page or b""):
            self._passing.add(name)
        else:
            if project is not None and not project.versions:  # the page of a network that asks to log in first
                kept = kept._replace(expires=0.0)
            self._shelf.write("pages", self._key(name), written(kept))
        return project

    def _forbids_what_is_absent(self, response: Response) -> bool:
        """PyTorch's index is a store whose contents may not be listed: it forbids what it does not have."""
        return response.status == _FORBIDDEN and self.url.startswith(PYTORCH_INDEX)

    def _of_kept(self, name: str, kept: Kept, url: str = "") -> Project | None:
        if kept.page is None:
            return None
        own = self._address(name) if kept.url == self._key(name) else kept.url
        return read_page(name, kept.page, kept.content_type, url or own)

    def _kept_metadata(self, project: Project, file: RawFile) -> Metadata | None:
        digest = identity(file)
        if digest not in self._kept:
            self._kept[digest] = read_kept(self._shelf.read("metadata", _key_of_file(project, file)), Metadata)
        return self._kept[digest]

    def _load_metadata(self, project: Project, file: RawFile) -> Metadata:
        found = self._kept_metadata(project, file)
        if found is not None:
            return found
        if self._trust.offline:
            raise _not_kept(f"the metadata of {file[0]}", without_secrets(file_address(project, file)))
        whole = _whole(project, file)
        try:
            return self._keep(project, file, self._read(self._fetcher, whole))
        except UsageError:
            raise _misled(project, file, whole.url) from None

    def _keep(self, project: Project, file: RawFile, found: Metadata) -> Metadata:
        """``found``, written to the shelf if what the project has may be kept."""
        if project.name not in self._passing:
            self._shelf.write("metadata", _key_of_file(project, file), written(found))
        return found


def _key_of_file(project: Project, file: RawFile) -> str:
    return f"{without_secrets(project.url)} {identity(file)}"


def _whole(project: Project, file: RawFile) -> PackageFile:
    return PackageFile._make((file[0], file_address(project, file), *file[2:]))


def _holds_secrets(page: bytes) -> bool:
    """Whether a page leads to files by addresses with logins or signatures: it is not kept, as they stop to open."""
    if not any(sign in page for sign in (b"@", b"/t/", b"?")):
        return False
    text = page.decode("utf-8", "replace")
    return without_secrets(text) != text


def _asking(stale: Kept | None) -> dict[str, str]:
    headers = {"Accept": ACCEPT}
    if stale is not None and stale.etag:
        headers["If-None-Match"] = stale.etag
    if stale is not None and stale.modified:
        headers["If-Modified-Since"] = stale.modified
    return headers


def _not_kept(what: str, url: str) -> OutsideError:
    hint = Hint("run the same command once without --offline to fill the cache")
    return OutsideError("not-kept", f"{what} ({url}) is not cached, and --offline is set", hints=(hint,))


def _refused(name: str, url: str, status: int) -> OutsideError:
    hint = Hint("give user name and password in the URL, in .netrc or in a keyring")
    hints = (hint,) if status in (_UNAUTHORIZED, _FORBIDDEN) else ()
    return OutsideError("index-refused", f"access to {name} denied: {url} returned status {status}", hints=hints)
