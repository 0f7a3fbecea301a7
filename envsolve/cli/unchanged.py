"""An earlier answer, given again before anything is loaded that is needed to find a new one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

_LOCK_WORDS = ("requirements", "pylock", "dockerfile", "Dockerfile", "Containerfile")


def give_again(arguments: Sequence[str]) -> bool:
    """Give the earlier answer to ``arguments`` where it still stands; False where the command has to do its work.

    What fails here is told by the command, which tries again. BrokenPipeError passes.
    """
    is_project = arguments[:1] == ["lock"]
    if not is_project and not any(word in argument for argument in arguments for word in _LOCK_WORDS):
        return False
    if any(argument.startswith("--color") for argument in arguments) or os.environ.get("ENVSOLVE_COLOR"):
        return False  # how notes look is for the command to read
    from envsolve.app.unchanged import recalled

    answer = recalled(arguments)
    if answer is None or (answer.output is None and sys.stdout is None):
        return False
    try:
        _give(answer.text, answer.output)
    except BrokenPipeError:
        raise
    except OSError:
        return False
    _tell(answer.notes)
    return True


def _tell(notes: Sequence[str]) -> None:
    """Print notes as the command does; without a terminal they are plain, which takes no library."""
    if sys.stderr is None or not notes:
        return
    if not os.environ.get("FORCE_COLOR") and not sys.stderr.isatty():
        sys.stderr.writelines(f"note: {text}\n" for text in notes)
        return
    from envsolve.cli.report import note

    for text in notes:
        note(text, quiet=False)


def _give(text: str, output: str | None) -> None:
    """Print ``text``, or write it to a file that is not there yet, in one step; one that is there says it already."""
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    if os.path.exists(output):
        return
    beside = f"{output}.{os.getpid()}.part"
    try:
        with open(
            os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "w", encoding="utf-8", newline="\n"
        ) as file:
            file.write(text)
        os.replace(beside, output)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise
