"""Logs as programs write them, and malformed ones: each of a given size, one piece at a time."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import TYPE_CHECKING, BinaryIO

from envsolve.diagnose.reading.segments import segments

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

ANCHORS = (
    "cannot open shared object file", "could not load dynamic library", "cudnn", "no kernel image", ".dll", "driver",
    "libcudart.so.", "winerror 126", "error 804", "error 803", "sm_120", "sm_90", "undefined symbol", "out of memory",
    "not compiled with cuda", "libdevice", "can't find", "glibc_2.", "version mismatch", "capabilities: [[gpu]]", "ptx",
)  # fmt: skip
"""A few words; the tables have some hundred."""

NEEDLE = "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)."

_PART = 1 << 16
_WORDS = ("epoch", "step", "loss", "accuracy", "the", "training", "is", "learning", "rate", "memory", "file", "batch")


def ordinary(random: Random) -> bytes:
    """A training log: a few kinds of line, with other numbers in each."""
    step = random.randrange(10**6)
    line = f"2024-05-01 12:{step % 60:02}:01 INFO epoch {step // 1000} step {step} loss {random.random():.5f}"
    if step % 50 == 0:
        line = f"W dso_loader.cc:{step % 100}] Could not load dynamic library 'libcudart.so.{step % 9}'; dlerror: none"
    return f"{line}\n".encode()


def unique(random: Random) -> bytes:
    """Lines that all differ, each with a relevant word."""
    words = " ".join(random.choices(_WORDS, k=8))
    return f"{words} {random.getrandbits(64):016x} {random.choice(ANCHORS)} {random.choice(_WORDS)}\n".encode()


LINES: dict[str, Callable[[Random], bytes]] = {
    "ordinary": ordinary,
    "unique": unique,
    "coloured": lambda random: b"\x1b[31m" + unique(random).replace(b"\n", b"\x1b[0m\r\n"),
    "random": lambda random: random.randbytes(1 << 12),
    "one line": lambda _: b"a cuda word and " * 64,
    "one line of anything": lambda random: unique(random).replace(b"\n", b" "),
    "escapes": lambda _: b"\x1b[" * 512,
    "line feeds": lambda _: b"\n" * 1024,
    "carriage returns": lambda random: f"\r{random.randrange(100)}%|#### | on driver 535".encode(),
    "UTF-16": lambda random: ordinary(random).decode().encode("utf-16-le"),
    "gbk": lambda random: (
        f"{''.join(random.choices('找不到指定的模块系统文件', k=9))} {random.random()} cudnn\n".encode("gbk")
    ),
}
"""What each log is made of."""


def log(kind: str, size: int) -> BinaryIO:
    """A log of about ``size`` bytes that ends with the needle. It is generated while it is read, not stored."""
    return io.BufferedReader(_Log(kind, size), 1 << 16)


class _Log(io.RawIOBase):
    def __init__(self, kind: str, size: int) -> None:
        self._encoding = "utf-16-le" if kind == "UTF-16" else "ascii"
        self._parts = self._made(kind, size)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill ``buffer`` with as much as one part has."""
        view = memoryview(buffer).cast("B")
        self._rest = self._rest or next(self._parts, b"")
        part, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(part)] = part
        return len(part)

    def _made(self, kind: str, size: int) -> Iterator[bytes]:
        random = Random(kind)  # noqa: S311 - a log of its own kind, the same each time
        if self._encoding != "ascii":
            yield codecs.BOM_UTF16_LE
        while size > 0:
            part = bytearray()
            while len(part) < min(_PART, size):
                part += LINES[kind](random)
            size -= len(part)
            yield bytes(part)
        yield f"\n{NEEDLE}\n".encode(self._encoding)


def counted(found: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The segments in blocks, with the numbers of their lines."""
    number = 1
    for block in found:
        rows = block.replace(b"\r\n", b"\n").split(b"\n")
        for place, row in enumerate(rows):
            yield from ((number + place, segment) for segment in segments(row))
        number += len(rows) - 1
