"""The command line: words in, words out. It takes no decision of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> None:
    """Run envsolve and end the process with the exit code of the interface contract.

    Imports are part of the run, and garbage collection is off for all of it: the process is short, keeps nearly
    everything it makes, and would spend a tenth of its time looking for garbage.
    """
    import gc

    gc.disable()
    import sys

    from envsolve.cli.unchanged import give_again

    words = list(sys.argv[1:] if arguments is None else arguments)
    is_ours = arguments is None
    try:
        if give_again(words):
            _end(0, is_ours=is_ours)

        from envsolve.cli.early import start_early

        start_early(words)

        from envsolve.cli.main import run
    except KeyboardInterrupt:  # from here on, run tells it
        sys.stderr.write("interrupted\n")
        _end(130, is_ours=is_ours)
    _end(run(words), is_ours=is_ours)


def _end(code: int, *, is_ours: bool) -> NoReturn:
    """End the process as it stands: to take apart what the system takes back at once costs 7 ms of a run of 110.

    Every file is closed by then, and standard output was flushed by whoever printed to it. A process that is not
    ``is_ours`` alone ends as others do.
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
