"""Interrupts: handle Ctrl-C even if its exception gets lost, and SIGTERM and SIGHUP like Ctrl-C."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_SIGNALS = tuple(it for it in (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")) if it is not None)


_came = False


def came() -> bool:
    """Whether Ctrl-C was pressed while :func:`remembered` was active."""
    return _came


@contextmanager
def remembered() -> Iterator[None]:
    """Remember Ctrl-C in addition to raising KeyboardInterrupt.

    During an import Python may turn it into another error, and in a destructor or a callback it prints it and
    continues.
    """
    global _came  # noqa: PLW0603 - signals are of the whole process
    _came = False
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    hook = sys.unraisablehook
    signal.signal(signal.SIGINT, _remember)
    sys.unraisablehook = _come_again
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = hook


def _remember(number: int, frame: FrameType | None) -> NoReturn:
    global _came  # noqa: PLW0603
    _came = True
    _interrupt(number, frame)


def _come_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Repeat an interrupt that Python would drop, after this call."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        timer = threading.Timer(0.05, _interrupt_main)
        timer.daemon = True
        timer.start()
    else:
        sys.__unraisablehook__(unraisable)


def _interrupt_main() -> None:
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # also ends a waiting system call


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM and SIGHUP clean up like Ctrl-C.

    They raise KeyboardInterrupt; an ignored signal stays ignored, as nohup intends.
    """
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
