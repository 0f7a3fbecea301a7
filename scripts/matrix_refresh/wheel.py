"""One wheel at a distance: its members are read over HTTP range requests, never the whole file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import requests
from remotezip import PartialBuffer, RemoteFetcher, RemoteZip, RemoteZipError
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from envsolve.releases.wheels import WheelFile
from scripts.matrix_refresh.errors import RefreshError

USER_AGENT = "envsolve-matrix-refresh"
_TIMEOUT = 60.0
_CHUNK = 1 << 18
_LARGEST_TEXT = 1 << 22
_LARGEST_CONTENT = 1 << 28
"""Of libraries that are held in memory, in each thread, the largest (libtensorflow_framework.so) has some 40 MB."""
_NO_WHEEL = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
_NO_BYTES = (RemoteZipError, requests.RequestException, HTTPError, OSError)
_UNREADABLE = (*_NO_WHEEL, *_NO_BYTES)
"""A connection that breaks while a member streams is an error of urllib3: requests is no longer in between."""


def new_session() -> requests.Session:
    """A session that waits and tries again where a server is busy, as it asks for (Retry-After)."""
    session = requests.Session()
    session.headers["User-Agent"] = USER_AGENT
    retry = Retry(
        total=5, connect=2, backoff_factor=1.0, status_forcelist=(429, 500, 502, 503, 504), allowed_methods=("GET",)
    )
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(max_retries=retry, pool_maxsize=16))
    return session


class _CountingFetcher(RemoteFetcher):  # type: ignore[misc]
    """Fetches ranges and remembers how much came of them."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self._in_full = 0
        self._streams: list[PartialBuffer] = []

    @property
    def transferred(self) -> int:
        """The bytes that were received, without headers; of a range that was not read to its end only those read."""
        streamed: int = sum(stream.tell() for stream in self._streams)
        return self._in_full + streamed

    def fetch(self, data_range: tuple[int, int | None], stream: bool = False) -> PartialBuffer:
        part = super().fetch(data_range, stream=stream)
        if stream:
            self._streams.append(part.buffer)
        else:
            self._in_full += len(part)
        return part


class Wheel:
    """An open wheel. Every method raises RefreshError where the bytes do not come or are no wheel.

    ``read`` lists the members that were looked into, for the evidence; ``held_back`` says that a large one was not.
    """

    def __init__(self, file: WheelFile, session: requests.Session, *, deep: bool = False) -> None:
        self.file = file
        self._deep = deep
        self.read: list[str] = []
        self.held_back = False
        self._fetcher: _CountingFetcher | None = None
        try:
            self._zip = RemoteZip(file.url, session=session, timeout=_TIMEOUT, fetcher=self._counted)
        except _UNREADABLE as error:
            raise RefreshError(f"{file.filename} cannot be read: {error}") from error
        self._members = {info.filename: info for info in self._zip.infolist()}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._zip.close()

    def _counted(self, *arguments: object, **options: object) -> _CountingFetcher:
        self._fetcher = _CountingFetcher(*arguments, **options)
        return self._fetcher

    @property
    def transferred(self) -> int:
        """How many bytes of the wheel came over the network."""
        return 0 if self._fetcher is None else self._fetcher.transferred

    @property
    def members(self) -> list[str]:
        """The names of all members."""
        return list(self._members)

    def find(self, ending: str) -> str | None:
        """The member whose path ends with ``ending``; the shortest of several; None where there is none."""
        return min((name for name in self._members if name.endswith(ending)), key=len, default=None)

    def size(self, member: str) -> int:
        """Bytes of ``member`` as it is packed."""
        return int(self._members[member].compress_size)

    def checksum(self, member: str) -> int:
        """The CRC-32 of ``member``, as the wheel's directory has it."""
        return int(self._members[member].CRC)

    def may_read_deep(self) -> bool:
        """Whether libraries of hundreds of MB may be read; where not, the wheel counts as not fully read."""
        self.held_back = not self._deep
        return self._deep

    def text(self, ending: str) -> str | None:
        """The text of the member that ends with ``ending``, or None where there is none."""
        member = self.find(ending)
        if member is None:
            return None
        self._limit(member, _LARGEST_TEXT, "for a text")
        return b"".join(self.chunks(member)).decode("utf-8", "replace")

    def content(self, member: str) -> bytes:
        """The whole content of ``member``."""
        self._limit(member, _LARGEST_CONTENT, "to be held in memory")
        return b"".join(self.chunks(member))

    def _limit(self, member: str, largest: int, purpose: str) -> None:
        """Raise RefreshError for what would unpack to more than ``largest`` bytes; no more than said is unpacked."""
        if self._members[member].file_size > largest:
            raise RefreshError(f"{self.file.filename}: {member} is too large {purpose}")

    def chunks(self, member: str) -> Iterator[bytes]:
        """The content of ``member`` piece by piece; who stops early leaves the rest of it unread."""
        self.read.append(member)
        try:
            with self._zip.open(member) as content:
                while chunk := content.read(_CHUNK):
                    yield chunk
        except _UNREADABLE as error:
            raise RefreshError(f"{self.file.filename}: {member} cannot be read: {error}") from error
