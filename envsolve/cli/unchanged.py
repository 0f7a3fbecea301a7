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
    if arguments[:1] == ["lock"]:
        return _give_project(arguments)
    if not any(word in argument for argument in arguments for word in _LOCK_WORDS):
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


_VIEWS = ("--check", "--diff", "--json", "-q", "--quiet", "--no-progress")
"""Options of ``lock`` that say how it answers; where nothing is to change, all of them rest on the same."""


def without_views(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """The words of ``lock`` without those that say how to answer, and the directory of --project apart."""
    words = [word for word in arguments if word not in _VIEWS]
    if "--project" in words[:-1]:
        place = words.index("--project")
        return [*words[:place], *words[place + 2 :]], words[place + 1]
    return words, None


def project_place(directory: str | None) -> str | None:
    """The directory of the project that ``directory``, or this one, is in, by the names of files; None without one."""
    place = os.path.abspath(directory or ".")
    while True:
        if os.path.isfile(os.path.join(place, "envsolve.toml")):
            return place
        try:
            with open(os.path.join(place, "pyproject.toml"), encoding="utf-8") as file:
                if "envsolve" in file.read():
                    return place
        except (OSError, UnicodeDecodeError):
            pass
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above


def _give_project(arguments: Sequence[str]) -> bool:
    """Say again that nothing is to change in a project, in the way that is asked for now."""
    if any(word.startswith("--color") for word in arguments) or os.environ.get("ENVSOLVE_COLOR"):
        return False
    from envsolve.app.unchanged import recalled

    words, directory = without_views(arguments)
    place = project_place(directory)
    answer = None if place is None else recalled(words, place)
    if answer is None or sys.stdout is None:
        return False
    try:
        _give(answer.text if "--json" in arguments else "", None)
    except BrokenPipeError:
        raise
    except OSError:
        return False
    _tell(() if {"-q", "--quiet"}.intersection(arguments) else answer.notes)
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
