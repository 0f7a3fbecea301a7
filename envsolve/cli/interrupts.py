"""Interrupts: Ctrl-C is one whatever becomes of the exception, and so is a polite end by SIGTERM or SIGHUP."""

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
    """Whether Ctrl-C was pressed, as far as :func:`remembered` knows."""
    return _came


@contextmanager
def remembered() -> Iterator[None]:
    """Have Ctrl-C remembered besides raised.

    While a module is imported Python may make another error of it, and in a destructor or a callback it prints it and
    goes on.
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
    """Have an interrupt that Python would drop come once more, when this call is over."""
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
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # ends a wait of the system, too


@contextmanager
def interruptible() -> Iterator[None]:
    """Have SIGTERM and SIGHUP give the work the chance to clean up that Ctrl-C gives it.

    They raise KeyboardInterrupt; one that is ignored stays so, as nohup means it.
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
