"""Calling into a driver's library in a copy of this process, which may hang or die without taking this one along.

A fork costs a millisecond where a fresh interpreter costs thirty, so even the main job can afford it.
"""

from __future__ import annotations

import marshal
import os
import select
import signal
import time
from collections.abc import Callable
from typing import NamedTuple, cast

CAN_FORK = hasattr(os, "fork")

_CHUNK = 65536


class Outcome(NamedTuple):
    """What the call returned, or how it ended instead: by a signal, or not in time."""

    answer: object = None
    signal: int | None = None
    hung: bool = False


def call_forked(function: Callable[[], object], seconds: float) -> Outcome:
    """Call ``function`` in a forked copy; it returns plain values: None, booleans, numbers, texts, tuples and lists."""
    receiving, sending = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(receiving)
        _answer(function, sending)
    os.close(sending)
    try:
        data = _read(receiving, time.monotonic() + seconds)
    except BaseException:
        _end(process)
        raise
    finally:
        os.close(receiving)
    if data is None:
        _end(process)
        return Outcome(hung=True)
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status) or not data:
        return Outcome(signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else signal.SIGABRT)
    return Outcome(marshal.loads(data))  # noqa: S302 - written by this program a moment ago


def _answer(function: Callable[[], object], sending: int) -> None:
    """Write the answer and end at once: the copy must not run this program's ending, nor the driver's."""
    try:
        os.write(sending, marshal.dumps(cast("str", function())))  # in truth any plain value, as call_forked asks
    finally:
        os._exit(0)


def _read(receiving: int, deadline: float) -> bytes | None:
    """All that the copy writes, or None where it has not ended in time."""
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([receiving], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        part = os.read(receiving, _CHUNK)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _end(process: int) -> None:
    """Kill the copy; one that sleeps inside the kernel is left behind."""
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, os.WNOHANG)
