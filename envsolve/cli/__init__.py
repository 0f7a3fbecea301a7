"""The command line: arguments become a request, results become text. It decides nothing on its own."""

# Nothing is imported here, not even from typing or __future__: an interrupt before main begins is not caught.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def main(arguments: "Sequence[str] | None" = None) -> None:
    """Run envsolve and end the process with the exit code of the interface contract.

    Imports are part of the run, and garbage collection is off during all of it: the process is short, keeps nearly
    everything it creates, and would spend a tenth of its time on garbage collection.

    No traceback is printed, whatever fails and whenever an interrupt arrives, even if an import of a broken
    installation fails. With ENVSOLVE_DEBUG set an internal error is raised.
    """
    try:
        code = _run(arguments)
        if arguments is None:
            _ignore_interrupts()  # here, where an earlier one is still caught
    except KeyboardInterrupt:
        code = _last_words("interrupted", 130)
    except Exception as error:
        import os

        if os.environ.get("ENVSOLVE_DEBUG"):
            raise
        code = _last_words(_without_memory() if isinstance(error, MemoryError) else _internal_error(error), 3)
    _end(code, is_ours=arguments is None)


def _run(arguments: "Sequence[str] | None") -> int:
    import sys  # already loaded, so that an interrupt in a callback cannot break the import

    dropped: list[object] = []  # an interrupt in a callback of an import, which Python prints and ignores
    hook, sys.unraisablehook = sys.unraisablehook, dropped.append
    import gc

    gc.disable()
    words = list(sys.argv[1:] if arguments is None else arguments)
    from envsolve.cli.interrupts import came, remembered

    sys.unraisablehook = hook
    if dropped:
        raise KeyboardInterrupt
    with remembered():
        try:
            from envsolve.cli.main import run

            return run(words)
        except Exception:
            if came():
                raise KeyboardInterrupt from None
            raise


def _without_memory() -> str:
    """As below, from constants only: nothing can be imported any more."""
    return "error: out-of-memory\n  envsolve ran out of memory\ncause: at start-up\nhint: free memory, and try again"


def _internal_error(error: Exception) -> str:
    """The error in its three parts, for failures that leave nothing else to print them."""
    from envsolve.boundary.secrets import without_secrets

    text = without_secrets(f"{type(error).__name__}: {error}").encode("ascii", "backslashreplace").decode()
    text = text.splitlines()[0]
    cause = "envsolve failed at start-up"
    hint = "run it again with ENVSOLVE_DEBUG=1 and report the output"
    if isinstance(error, ImportError):
        cause, hint = "this installation of envsolve is incomplete", "reinstall envsolve"
    return f"error: internal-error\n  {text}\ncause: {cause}\nhint: {hint}"


def _last_words(text: str, code: int) -> int:
    """Print ``text`` on stderr if possible, and return ``code``. A second interrupt changes nothing."""
    import sys

    _ignore_interrupts()
    try:
        sys.stderr.write(f"{text}\n")
    except (AttributeError, OSError, ValueError):
        return code  # there is no stderr, or it is closed
    return code


def _ignore_interrupts() -> None:
    """Ignore further Ctrl-C, which would print a traceback: the process is about to end."""
    import signal
    import threading

    if threading.current_thread() is threading.main_thread():  # only the main thread may do this, and gets interrupts
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(code: int, *, is_ours: bool) -> "NoReturn":
    """End the process without clean-up, which would take 7 ms of a run of 110.

    Every file is closed by then, and standard output is flushed. A process that is not ``is_ours`` alone ends normally.
    """
    import os
    import sys

    if not is_ours:
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            code = code or 1
    os._exit(code)
