"""Members of a wheel, read with range requests instead of a download of the whole archive.

zipfile reads the archive from a file object that fetches the necessary parts. This module does not parse zip files.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from envsolve.errors import Hint, OutsideError
from envsolve.index.checks import check_hash, invalid, not_served
from envsolve.index.fetch import METADATA_LIMIT, Fetcher, Response, number_of
from envsolve.model.package import PackageFile

_OK, _PARTIAL, _NOT_THERE = 200, 206, (404, 410)
_FIRST = 16_384
"""Bytes of the first request, from the end: the table of contents of most wheels, and their metadata, which tools write
last. A wheel with many thousands of files needs one more request."""
_NEXT = 65_536
_AHEAD = 8_000_000
"""Bytes per request for a member that is read from its start to its end."""
_DOWNLOAD = 32_000_000
"""The same for a wheel that is read as a whole."""
_CHUNK = 1 << 18
_PART_LIMIT = 50_000_000
"""The size limit of a table of contents in bytes; that of 60,000 files has 10 MB."""
_ENCRYPTED = 1
_WHOLE_LIMIT = 200_000_000
"""The size limit, in bytes, of a wheel that is downloaded because the server does not support ranges."""


class BrokenArchiveError(Exception):
    """The file is not a zip archive, or an incomplete one."""


def metadata_member(fetcher: Fetcher, file: PackageFile) -> bytes:
    """The bytes of ``NAME-VERSION.dist-info/METADATA``. Raises BrokenArchiveError, OutsideError."""
    with RemoteWheel(fetcher, file) as wheel:
        found = [it for it in wheel.members if it.count("/") == 1 and it.endswith(".dist-info/METADATA")]
        if len(found) != 1:
            raise BrokenArchiveError(f"it has {len(found)} METADATA files")
        return wheel.content(found[0], METADATA_LIMIT)


def with_digest(fetcher: Fetcher, file: PackageFile, progress: Callable[[int, int], None]) -> PackageFile:
    """``file`` with its sha256 and its size. The whole file is downloaded for this, in parts.

    ``progress`` gets the bytes read so far, and the total. Raises OutsideError.
    """
    digest = hashlib.sha256()
    try:
        with _opened(fetcher, file) as content:
            size = content.seek(0, io.SEEK_END)
            content.seek(0)
            if isinstance(content, _Ranges):
                content.ahead = _DOWNLOAD
            progress(0, size)
            while chunk := content.read(_CHUNK):
                digest.update(chunk)
                if content.tell() % _AHEAD < _CHUNK:
                    progress(content.tell(), size)
    except BrokenArchiveError as error:
        raise invalid(file, str(error)) from None
    return file._replace(hashes=(*file.hashes, ("sha256", digest.hexdigest())), size=size)


class RemoteWheel:
    """A wheel on a server, open for reading. Every method can raise BrokenArchiveError and OutsideError.

    ``members`` has the compressed size of each file in bytes, ``checksums`` the CRC-32 of its content.
    """

    def __init__(self, fetcher: Fetcher, file: PackageFile) -> None:
        self._bytes = _opened(fetcher, file)
        with _archive_errors():
            self._archive = zipfile.ZipFile(self._bytes)
            self.members = {it.filename: it.compress_size for it in self._archive.infolist()}
            self.checksums = {it.filename: it.CRC for it in self._archive.infolist()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    def checksum(self, name: str) -> int:
        """The CRC-32 of a member, from the table of contents."""
        return self._archive.getinfo(name).CRC

    def content(self, name: str, limit: int) -> bytes:
        """The content of a small member, at most ``limit`` bytes."""
        with _archive_errors():
            return self._archive.read(self._readable(name, limit))

    def chunks(self, name: str) -> Iterator[bytes]:
        """The content of a large member in pieces, fetched as they are read."""
        with _archive_errors(), self._reading_on(), self._archive.open(self._readable(name, None)) as content:
            while chunk := content.read(_CHUNK):
                yield chunk

    @contextmanager
    def _reading_on(self) -> Iterator[None]:
        """Fetch large parts while a member is read from start to end."""
        if not isinstance(self._bytes, _Ranges):
            yield
            return
        self._bytes.ahead = _AHEAD
        try:
            yield
        finally:
            self._bytes.ahead = _NEXT

    def _readable(self, name: str, limit: int | None) -> zipfile.ZipInfo:
        member, shown = self._archive.getinfo(name), name.rpartition("/")[2]
        if limit is not None and member.file_size > limit:
            raise BrokenArchiveError(f"its {shown} is too large")
        if member.flag_bits & _ENCRYPTED or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BrokenArchiveError(f"its {shown} is encrypted or has an unsupported compression")
        return member


@contextmanager
def _archive_errors() -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, OverflowError) as error:
        raise BrokenArchiveError(str(error)) from None


def _opened(fetcher: Fetcher, file: PackageFile) -> io.BytesIO | _Ranges:
    """The archive as a file: of ranges, or the whole archive if the server sends that instead."""
    response = fetcher.fetch(file.url, {"Range": f"bytes=-{_FIRST}"}, limit=_WHOLE_LIMIT)
    if response.status == _OK:
        check_hash(response.body, file.hashes, file.name)
        return io.BytesIO(response.body)
    if response.status in _NOT_THERE:
        raise not_served(file, response)
    size = _size(response)
    if response.status != _PARTIAL or size is None:
        return _whole(fetcher, file)
    return _Ranges(fetcher, file.url, size, response.body)


def _whole(fetcher: Fetcher, file: PackageFile) -> io.BytesIO:
    """The whole archive, for servers that answer 416 because it is smaller than the requested range."""
    size = file.size
    if size is not None and size > _WHOLE_LIMIT:
        hint = Hint("use an index with metadata files (PEP 658) or range requests")
        message = f"{file.name} has {size} bytes, and its index serves neither metadata nor ranges"
        raise OutsideError("metadata-unavailable", message, hints=(hint,))
    response = fetcher.fetch(file.url, limit=_WHOLE_LIMIT)
    if response.status != _OK:
        raise not_served(file, response)
    check_hash(response.body, file.hashes, file.name)
    return io.BytesIO(response.body)


def _size(response: Response) -> int | None:
    """The size of the whole file, from ``Content-Range: bytes 10-20/21`` (RFC 9110, section 14.4)."""
    total = response.headers.get("content-range", "").rpartition("/")[2]
    return number_of(total)


class _Ranges(io.RawIOBase):
    """An archive as a file. Its end is in memory; the rest is fetched when it is read.

    ``ahead`` is the least number of bytes per request. Of large parts only the last one stays in memory.
    """

    def __init__(self, fetcher: Fetcher, url: str, size: int, end: bytes) -> None:
        super().__init__()
        self._fetcher, self._url = fetcher, url
        self._size, self._position = size, 0
        self._parts = [(max(size - len(end), 0), end)]
        self.ahead = _NEXT

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError("a place before the beginning of the archive")
        self._position = base + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._position + size, self._size)
        content = self._between(self._position, end) if end > self._position else b""
        self._position += len(content)
        return content

    def _between(self, start: int, end: int) -> bytes:
        for first, part in self._parts:
            if first <= start and end <= first + len(part):
                return part[start - first : end - first]
        if end - start > _PART_LIMIT:
            raise BrokenArchiveError(f"it requires reading {end - start} bytes for one file")
        until = min(max(end, start + self.ahead), self._size)
        response = self._fetcher.fetch(self._url, {"Range": f"bytes={start}-{until - 1}"}, limit=until - start + 1)
        if response.status != _PARTIAL or len(response.body) != until - start:
            raise BrokenArchiveError(f"the server sent another range than requested (status {response.status})")
        if self.ahead > _NEXT:
            self._parts = [it for it in self._parts if len(it[1]) < self.ahead]
        self._parts.append((start, response.body))
        return response.body[: end - start]
