"""One wheel at a distance: its members are read over HTTP range requests, never the whole file."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Self

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from envsolve.errors import OutsideError
from envsolve.index.fetch import PAGE_LIMIT, Response
from envsolve.index.wheel_member import RemoteWheel
from envsolve.model.package import PackageFile
from envsolve.releases.remote import RemoteRelease, errors_of
from envsolve.releases.wheels import WheelFile

USER_AGENT = "envsolve-matrix-refresh"
_TIMEOUT = 60.0


def new_session() -> requests.Session:
    """A session that waits and retries if a server is busy, as the server requests (Retry-After)."""
    session = requests.Session()
    session.headers["User-Agent"] = USER_AGENT
    retry = Retry(
        total=5, connect=2, backoff_factor=1.0, status_forcelist=(429, 500, 502, 503, 504), allowed_methods=("GET",)
    )
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(max_retries=retry, pool_maxsize=16))
    return session


class _Ranges:
    """Fetches ranges over a session, and counts the bytes that came. A whole wheel is not fetched in place of one."""

    def __init__(self, session: requests.Session) -> None:
        self._session = session
        self._counting = threading.Lock()
        self.transferred = 0

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, limit: int = PAGE_LIMIT) -> Response:
        """See envsolve.index.fetch.Fetcher."""
        try:
            with self._session.get(url, headers=headers, timeout=_TIMEOUT, stream=True) as answer:
                if answer.status_code == HTTPStatus.OK:
                    raise OutsideError("no-ranges", "its server does not support range requests")
                body = answer.content
        except (requests.RequestException, OSError) as error:
            raise OutsideError("wheel-unread", str(error)) from error
        with self._counting:
            self.transferred += len(body)
        found = {name.lower(): value for name, value in answer.headers.items()}
        return Response(answer.status_code, found, body, answer.url)


class Wheel(RemoteRelease):
    """An open wheel. Every method raises ReleaseError where the bytes do not come or are no wheel.

    ``held_back`` says that a large member was not read.
    """

    def __init__(self, file: WheelFile, session: requests.Session, *, deep: bool = False) -> None:
        self._ranges, self._deep = _Ranges(session), deep
        self.held_back = False
        with errors_of(file):
            super().__init__(file, RemoteWheel(self._ranges, PackageFile(file.filename, file.url)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._wheel.__exit__()

    @property
    def transferred(self) -> int:
        """How many bytes of the wheel came over the network, without headers."""
        return self._ranges.transferred

    def size(self, member: str) -> int:
        """Bytes of ``member`` as it is packed."""
        return self._wheel.members[member]

    def checksum(self, member: str) -> int:
        """The CRC-32 of ``member``, as the wheel's directory has it."""
        return self._wheel.checksum(member)

    def may_read_deep(self) -> bool:
        """Whether libraries of hundreds of MB may be read; where not, the wheel counts as not fully read."""
        self.held_back = not self._deep
        return self._deep
