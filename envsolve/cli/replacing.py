"""Which files -o may overwrite: those that envsolve wrote, and with --force all others."""

from __future__ import annotations

import os.path
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsolve.cli.options import option
from envsolve.cli.output import require_directory
from envsolve.errors import Hint
from envsolve.model.lock_format import CONDA_FORMATS, PLATFORM, PYTHON_FORMATS

if TYPE_CHECKING:
    from envsolve.matrix import Matrix
    from envsolve.model.request import Request

_ANOTHER_NAME = Hint("choose another file name for -o")
_APART = "use two files"

force_option = option("--force", is_flag=True, help="Overwrite the output file even if envsolve did not write it.")


def refuse_to_overwrite(output: str | None, platforms: Iterable[str], way: Hint = _ANOTHER_NAME) -> None:
    """Raise UsageError if a file that ``output`` names, for any of ``platforms``, was not written by envsolve.

    ``way`` is what to do instead of overwriting it.
    """
    if output in (None, "-"):
        return
    name = str(output)
    names = [name.replace(PLATFORM, platform) for platform in platforms] if PLATFORM in name else [name]
    there = [Path(it) for it in names if os.path.isfile(it)]  # noqa: PTH113 - no error for a name that is none
    if there:
        from envsolve.lockfile.own_file import BY_FORCE
        from envsolve.lockfile.own_file import refuse_to_overwrite as refuse

        for path in there:
            refuse(path, way, BY_FORCE)


def refuse_to_replace(request: Request, matrix: Matrix, options: dict[str, Any]) -> None:
    """The same for the answer to ``request``, before it is looked for, and if its directory does not exist.

    With --force any file may be overwritten.
    """
    output = options["output"]
    if output in (None, "-"):
        return
    platforms: tuple[str, ...] = ()
    if PLATFORM in output:
        from envsolve.app.request.targets import platforms_of

        platforms = platforms_of(request, matrix)
    for name in [output.replace(PLATFORM, it) for it in platforms] or [output]:
        require_directory(Path(name))
    if not options["force"]:
        refuse_to_overwrite(output, platforms, _way(request.format))


def _way(format_name: str) -> Hint:
    if format_name in PYTHON_FORMATS:
        return Hint(f"{_APART}: -r requirements.in -o requirements.txt")
    if format_name in CONDA_FORMATS:
        return Hint(f"{_APART}: -r environment.yml -o conda-lock.yml")
    return _ANOTHER_NAME
