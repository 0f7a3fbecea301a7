"""The command line: words in, words out. It takes no decision of its own."""

from __future__ import annotations

from collections.abc import Sequence


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
    if give_again(words):
        sys.exit(0)

    from envsolve.cli.early import start_early

    start_early(words)

    from envsolve.cli.main import run

    sys.exit(run(words))
