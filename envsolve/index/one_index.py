"""One package index: the page of a project, the metadata of a file, each asked for once and kept."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import urljoin

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, OutsideError, UsageError
from envsolve.index.fetch import Fetcher, Response
from envsolve.index.kept import Kept, expiry, may_be_kept, metadata_of, read_kept, written
from envsolve.index.metadata import Metadata
from envsolve.index.page import ACCEPT, RawFile, may_lead
from envsolve.index.project import Project
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
    """How far what is kept is trusted. ``offline`` asks nobody; ``refresh`` asks again for whatever is kept."""

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


Later = Callable[[Callable[[], None]], None]
"""Does what nobody waits for, now or when there is time."""


def now(job: Callable[[], None]) -> None:
    """Do ``job`` at once, where nobody else does it later."""
    job()


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

    __slots__ = ("_error", "_lock", "_value", "is_known")

    def __init__(self) -> None:
        self._lock = Lock()
        self._value: list[T] = []
        self._error: OutsideError | None = None
        self.is_known = False

    def get(self, work_out: Callable[[], T]) -> T:
        """The value. Raises the OutsideError that working it out raised, each time."""
        if not self.is_known:
            with self._lock:
                if not self.is_known:
                    try:
                        self._value.append(work_out())
                    except OutsideError as error:
                        self._error = error
                    self.is_known = True
        if self._error is not None:
            raise self._error
        return self._value[0]

    @property
    def value(self) -> T | None:
        """The value; None where it is not known, or could not be worked out."""
        return self._value[0] if self._value else None


class Index:
    """One package index, by the address that the pages of projects lie under."""

    def __init__(
        self, url: str, fetcher: Fetcher, shelf: Shelf, trust: Trust, read: MetadataReader, later: Later = now
    ) -> None:
        self.url = url.rstrip("/") + "/"
        self._fetcher, self._shelf, self._trust, self._read, self._later = fetcher, shelf, trust, read, later
        self._projects: dict[str, _Once[Project | None]] = {}
        self._kept: dict[str, Kept | None] = {}  # None: the index has answered, and nothing of it may be kept
        self._metadata: dict[str, dict[str, _Once[Metadata]]] = {}
        self._built: dict[str, _Once[Metadata]] = {}
        self._changed: set[str] = set()
        self._unkept: set[str] = set()
        """Projects whose pages came, and whose first metadata will be kept as soon as it comes: most need no other."""

    def project(self, name: str) -> Project | None:
        """What it has of ``name``; None where it does not know the name. Raises OutsideError."""
        return self._projects.setdefault(name, _Once()).get(lambda: self._load(name))

    def at_hand(self, name: str) -> tuple[bool, Project | None]:
        """Whether it is known, without asking, what it has of ``name``; and what that is."""
        once = self._projects.setdefault(name, _Once())
        if not once.is_known and self._fresh(name) is None:
            return False, None
        try:
            return True, once.get(lambda: self._load(name))
        except OutsideError:
            return False, None

    def holds(self, project: Project) -> bool:
        """Whether ``project`` is from this index."""
        once = self._projects.get(project.name)
        return once is not None and once.value is project

    def metadata(self, project: Project, file: RawFile) -> Metadata:
        """What ``file`` requires; a build that was made of it counts. Raises OutsideError."""
        known = self._metadata.setdefault(project.name, {}).setdefault(identity(file), _Once())
        is_new = not known.is_known
        found = known.get(lambda: self._load_metadata(project, file))
        if is_new and project.name in self._unkept:
            self._unkept.discard(project.name)
            self._later(partial(self._keep_soon, project.name))
        return found

    def build(self, project: Project, file: RawFile) -> Metadata | None:
        """What the build of ``file`` says that it requires; None where builds are not allowed. Raises OutsideError."""
        if not self._read.builds:
            return None
        if self._trust.offline:
            raise _not_kept(f"the metadata of {file[0]}", without_secrets(file_address(project, file)))
        once = self._built.setdefault(identity(file), _Once())
        found = once.get(lambda: self._read.built(self._fetcher, _whole(project, file)))
        self._metadata.setdefault(project.name, {})[identity(file)] = once
        self._changed.add(project.name)
        return found

    def metadata_at_hand(self, project: Project, file: RawFile) -> Metadata | None:
        """The same without asking."""
        once = self._metadata.get(project.name, {}).get(identity(file))
        return self._kept_metadata(project, file) if once is None else once.value

    def keep(self) -> None:
        """Write to the shelf what was learned of the projects that were asked for."""
        for name, once in list(self._projects.items()):  # threads that are still under way may add to it
            kept = self._kept.get(name)
            if kept is not None and (once.is_known or name in self._changed):
                self._keep(name, kept, once.value)

    def _keep_soon(self, name: str) -> None:
        kept, once = self._kept.get(name), self._projects.get(name)
        if kept is not None and once is not None and once.is_known:
            self._keep(name, kept, once.value)

    def _keep(self, name: str, kept: Kept, project: Project | None) -> None:
        seen = {} if project is None else project.seen
        metadata = list(self._metadata.get(name, {}).items())
        learned = {key: once.value for key, once in metadata if once.value is not None}
        if project is not None and not project.is_sound:
            return
        if name not in self._changed and seen.keys() <= kept.seen.keys() and learned.keys() <= kept.metadata.keys():
            return
        whole = kept._replace(seen=seen, metadata={**kept.metadata, **learned})
        self._kept[name] = whole
        self._changed.discard(name)
        self._shelf.write("projects", self._key(name), written(whole))

    def _address(self, name: str) -> str:
        """Where the page of ``name`` is; what the index is asked with, such as a token, stands behind it."""
        folder, mark, query = self.url.rstrip("/").partition("?")
        return f"{folder.rstrip('/')}/{name}/{mark}{query}"

    def _key(self, name: str) -> str:
        return without_secrets(self._address(name))

    def _fresh(self, name: str) -> Kept | None:
        """What is kept of the page of ``name``, where nobody has to be asked whether it still counts."""
        kept = self._stale(name)
        counts = self._trust.offline or (kept is not None and kept.is_fresh and not self._trust.refresh)
        return kept if counts else None

    def _stale(self, name: str) -> Kept | None:
        if name not in self._kept:
            kept = read_kept(self._shelf.read("projects", self._key(name)))
            if kept is None:
                return None
            self._kept.setdefault(name, kept)  # an answer that came meanwhile counts, and is not to mix with this
        return self._kept[name]

    def _load(self, name: str) -> Project | None:
        kept = self._fresh(name)
        if kept is not None:
            return self._of_kept(name, kept)
        if self._trust.offline:
            raise _not_kept(f"the page of {name}", self._key(name))
        stale = self._kept.get(name)
        response = self._fetcher.fetch(self._address(name), _asking(stale))
        self._changed.add(name)
        self._unkept.add(name)
        if response.status == _NOT_MODIFIED and stale is not None:
            self._kept[name] = stale._replace(expires=expiry(response))
            return self._of_kept(name, stale)
        return self._of_response(name, response, {} if stale is None else stale.metadata)

    def _of_response(self, name: str, response: Response, metadata: Mapping[str, Metadata]) -> Project | None:
        kept = Kept(expiry(response), response.headers.get("etag", ""), response.headers.get("last-modified", ""))
        project, keeps = None, may_be_kept(response)
        if response.status not in (_OK, *_NOT_THERE) and not self._forbids_what_is_absent(response):
            raise _refused(name, self._key(name), response.status)
        if response.status == _OK:
            content_type = response.headers.get("content-type", "")
            packed = _packed(response)
            project = Project(name, response.url, content_type, lambda: _unpacked(packed), body=response.body)
            keeps = keeps and not _holds_secrets(response.body)
            kept = kept._replace(
                url=without_secrets(project.url),
                content_type=content_type,
                versions=project.versions,
                spellings=project.spellings,
                metadata=metadata,
            )
            if not project.versions:  # where a network asks to log in first, its page may say so in place of any other
                kept = kept._replace(expires=0.0)
            if keeps:
                self._later(partial(self._shelf.write, "pages", self._key(name), packed))
        self._kept[name] = kept if keeps else None
        return project

    def _forbids_what_is_absent(self, response: Response) -> bool:
        """PyTorch's index is a store whose contents may not be listed: it forbids what it does not have."""
        return response.status == _FORBIDDEN and self.url.startswith(PYTORCH_INDEX)

    def _of_kept(self, name: str, kept: Kept) -> Project | None:
        if kept.versions is None:
            return None
        address = self._address(name)
        return Project(
            name,
            address if kept.url == self._key(name) else kept.url,
            kept.content_type,
            lambda: self._page_again(name, kept),
            versions=kept.versions,
            spellings=kept.spellings,
            files=kept.seen,
        )

    def _page_again(self, name: str, kept: Kept) -> bytes:
        """The page that ``kept`` was made from, for a version that nobody looked at before."""
        packed = self._shelf.read("pages", self._key(name))
        with suppress(*_DAMAGED):
            if packed:
                return _unpacked(packed)
        if self._trust.offline:
            raise _not_kept(f"the page of {name}", self._key(name))
        response = self._fetcher.fetch(self._address(name), {"Accept": ACCEPT})
        if response.status != _OK or response.headers.get("content-type", "") != kept.content_type:
            raise _refused(name, self._key(name), response.status)
        return response.body

    def _kept_metadata(self, project: Project, file: RawFile) -> Metadata | None:
        kept = self._kept.get(project.name)
        found = None if kept is None else kept.metadata.get(identity(file))
        return None if found is None else metadata_of(found)

    def _load_metadata(self, project: Project, file: RawFile) -> Metadata:
        found = self._kept_metadata(project, file)
        if found is not None:
            return found
        if self._trust.offline:
            raise _not_kept(f"the metadata of {file[0]}", without_secrets(file_address(project, file)))
        whole = _whole(project, file)
        try:
            return self._read(self._fetcher, whole)
        except UsageError:
            raise _misled(project, file, whole.url) from None


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


def _packed(response: Response) -> bytes:
    if response.packed is not None:
        return response.packed
    return zlib.compress(response.body, 1, wbits=31)


_DAMAGED = (EOFError, OSError, zlib.error)
"""What unpacking raises for anything but gzip."""


def _unpacked(packed: bytes) -> bytes:
    from gzip import decompress  # of several streams zlib's own reads the first

    return decompress(packed)


def _not_kept(what: str, url: str) -> OutsideError:
    hint = Hint("run the same command once without --offline to fill the cache")
    return OutsideError("not-kept", f"{what} ({url}) is not cached, and --offline is set", hints=(hint,))


def _refused(name: str, url: str, status: int) -> OutsideError:
    hint = Hint("give user name and password in the URL, in .netrc or in a keyring")
    hints = (hint,) if status in (_UNAUTHORIZED, _FORBIDDEN) else ()
    return OutsideError("index-refused", f"access to {name} denied: {url} returned status {status}", hints=hints)
