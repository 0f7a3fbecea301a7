"""The bodies of answers, read and unpacked step by step: what would not end, or unpacks to gigabytes, is given up."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, cast

from envsolve.index.failures import Failure
from envsolve.index.fetch import number_of

if TYPE_CHECKING:
    from envsolve.index.route import Answer

_GZIP = ("gzip", "x-gzip")
_STEP = 1 << 18
"""Bytes that are read at once: the page of most projects, and no more than that beyond a limit."""


def read_body(answer: Answer, limit: int, count: Callable[[int], None]) -> tuple[bytes, bytes | None]:
    """The whole body, unpacked, and as it came where that was gzip. ``count`` hears of the bytes, as they come.

    Raises Failure where body, packed or unpacked, is longer than ``limit``, is cut or malformed; else the
    errors of the route.
    """
    parts: list[bytes] = []
    packed: list[bytes] = []
    size = wire = 0
    encoding = answer.headers.get("content-encoding", "")
    decoder = _decoder(encoding)
    if _announced(answer) > limit:
        raise _too_large(limit)
    while part := answer.read(_STEP):
        wire += len(part)
        count(len(part))
        if decoder is not None:
            packed.append(part)
            part = decoder.decode(part, limit + 1 - size)
        size += len(part)
        if max(size, wire) > limit:
            raise _too_large(limit)
        parts.append(part)
    if decoder is not None and wire and not decoder.finished:
        raise Failure("response-cut", "the compressed data ends too early", again=True)
    return b"".join(parts), b"".join(packed) if encoding in _GZIP else None


@cache
def accepted_encodings() -> str:
    """The value of the header Accept-Encoding: what the libraries of this environment unpack."""
    return ", ".join(_openers())


class _Stream(Protocol):
    """One stream, as the modules of the standard library unpack it."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


_Opener = Callable[[], _Stream]


class _Decoder:
    """The body of one answer: whole streams one after the other, which is what gzip and zstd files may be."""

    def __init__(self, opener: _Opener) -> None:
        self._opener = opener
        self._stream = opener()

    @property
    def finished(self) -> bool:
        """Whether what came so far is whole."""
        return self._stream.eof

    def decode(self, data: bytes, most: int) -> bytes:
        """What ``data`` unpacks to, cut at ``most`` bytes, after which the rest is lost.

        Raises Failure where it is not what it claims to be, as after an error on the way.
        """
        parts: list[bytes] = []
        while data and most > 0:
            if self._stream.eof:
                if not data.strip(b"\0"):  # padding, which gzip files on tapes and disks end with
                    break
                self._stream = self._opener()
            try:
                part = self._stream.decompress(data, most)
            except Exception as error:  # each library has an error of its own
                raise Failure("response-cut", f"it cannot be decompressed: {error}", again=True) from error
            parts.append(part)
            most -= len(part)
            data = self._stream.unused_data if self._stream.eof else b""
        return b"".join(parts)


def _decoder(encoding: str) -> _Decoder | None:
    """The way to unpack what has this Content-Encoding; None where nothing is packed."""
    name = encoding.strip().lower().removeprefix("x-")
    if name in {"", "identity"}:
        return None
    opener = _openers().get(name)
    if opener is None:
        raise Failure("response-unreadable", f"it has the unexpected compression {encoding!r}", again=False)
    return _Decoder(opener)


def _announced(answer: Answer) -> int:
    """The length of the body in bytes, as far as its head tells."""
    return number_of(answer.headers.get("content-length", "")) or 0


def _too_large(limit: int) -> Failure:
    return Failure("response-too-large", f"it has more than {limit} bytes", again=False)


@cache
def _openers() -> dict[str, _Opener]:
    openers: dict[str, _Opener] = {"gzip": _gzip}
    for module in ("compression.zstd", "backports.zstd"):  # the first is in the standard library from 3.14 on
        if "zstd" not in openers and find_spec(module.partition(".")[0]) and find_spec(module):
            openers["zstd"] = cast("_Opener", import_module(module).ZstdDecompressor)
    return openers


def _gzip() -> _Stream:
    import zlib

    return zlib.decompressobj(16 + zlib.MAX_WBITS)
