"""What -o may take the place of: nothing that somebody wrote by hand, unless that is asked for."""

from __future__ import annotations

import os.path
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsolve.cli.options import option
from envsolve.cli.output import PLATFORM
from envsolve.errors import Hint
from envsolve.lock import CONDA_FORMATS, PYTHON_FORMATS

if TYPE_CHECKING:
    from envsolve.matrix import Matrix
    from envsolve.model.request import Request

_ANOTHER_NAME = Hint("give -o another name")
_OF_ANSWERS = ("", ".yml", ".yaml", ".json", ".txt", ".toml", ".lock")
"""What names of answers end in; a file of another kind, such as notes.md, was no answer before."""
_APART = "keep what is asked for in a file of its own"

force_option = option("--force", is_flag=True, help="Replace the file of -o even where somebody wrote it by hand.")


def refuse_hand_written(output: str | None, platforms: Iterable[str], way: Hint = _ANOTHER_NAME) -> None:
    """Raise UsageError where somebody wrote a file that ``output`` names, for any of ``platforms``, by hand.

    ``way`` is what to do instead of replacing it.
    """
    if output in (None, "-"):
        return
    name = str(output)
    names = [name.replace(PLATFORM, platform) for platform in platforms] if PLATFORM in name else [name]
    there = [Path(it) for it in names if os.path.isfile(it)]  # noqa: PTH113 - no error for a name that is none
    if there:
        from envsolve.lock.hand_written import BY_FORCE
        from envsolve.lock.hand_written import refuse_hand_written as refuse

        for path in there:
            refuse(path, way, BY_FORCE, in_doubt=path.suffix.casefold() not in _OF_ANSWERS)


def refuse_to_replace(request: Request, matrix: Matrix, options: dict[str, Any]) -> None:
    """The same for the answer to ``request``, before it is looked for; nothing with --force."""
    output = options["output"]
    if options["force"] or output in (None, "-"):
        return
    platforms: tuple[str, ...] = ()
    if PLATFORM in output:
        from envsolve.app.targets import platforms_of

        platforms = platforms_of(request, matrix)
    refuse_hand_written(output, platforms, _way(request.format))


def _way(format_name: str) -> Hint:
    if format_name in PYTHON_FORMATS:
        return Hint(f"{_APART}: -r requirements.in -o requirements.txt")
    if format_name in CONDA_FORMATS:
        return Hint(f"{_APART}: -r environment.yml -o conda-lock.yml")
    return _ANOTHER_NAME
