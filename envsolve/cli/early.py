"""What a command will need for sure, started before anything is loaded that finds out why."""

from __future__ import annotations

from collections.abc import Sequence

_CONDA_WORDS = ("conda-lock", "explicit", "--exact")


def start_early(arguments: Sequence[str]) -> None:
    """Start the solver of conda packages where the words ask for a lock of these; where they only seem to, it ends.

    With ``--lock`` there is one already.
    """
    if "--lock" in arguments or not any(word in argument for argument in arguments for word in _CONDA_WORDS):
        return
    from envsolve.conda.process import start_early as start

    start()
