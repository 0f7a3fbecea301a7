"""A polite end is an interrupt: SIGTERM and SIGHUP give the work the chance to clean up that Ctrl-C gives it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_SIGNALS = tuple(it for it in (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")) if it is not None)


@contextmanager
def interruptible() -> Iterator[None]:
    """Have these signals raise KeyboardInterrupt; one that is ignored stays so, as nohup means it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old = {it: signal.getsignal(it) for it in _SIGNALS}
    for it, handler in old.items():
        if handler is not signal.SIG_IGN:
            signal.signal(it, _interrupt)
    try:
        yield
    finally:
        for it, handler in old.items():
            signal.signal(it, handler)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    raise KeyboardInterrupt
