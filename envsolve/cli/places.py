"""The place of a message about a lock: the file, relative to the current directory, and the line."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from envsolve.boundary.files import FileError, read_text
from envsolve.lockfile.own_file import LONGEST
from envsolve.lockfile.package_line import package_line

if TYPE_CHECKING:
    from envsolve.project import Project

Place = tuple[str, int | None]


def package_place(path: str, names: Iterable[str]) -> Place:
    """The first line with one of the packages ``names`` in the file at ``path``; None if there is none."""
    try:
        text = read_text(Path(path), LONGEST) or ""
    except FileError:
        return path, None
    lines = (package_line(text, name) for name in names)
    return path, next((line for line in lines if line is not None), None)


def output_place(project: Project) -> Place:
    """The line of the project that names its outputs, or its first line."""
    lines = dict(project.lines)
    named = [line for path, line in lines.items() if path and path[-1] == "outputs"]
    return os.path.relpath(project.file), min(named or lines.values(), default=None)
