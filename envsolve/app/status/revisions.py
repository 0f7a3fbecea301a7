"""A file on the disk, or in a revision of its git repository: ``HEAD~1:uv.lock``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError, read_text
from envsolve.boundary.programs import Finished, find_program, run_program
from envsolve.errors import Hint, OutsideError, UsageError
from envsolve.lockfile.own_file import LONGEST

_PATIENCE = 60.0
"""The timeout of git in seconds; a partial clone may fetch the file."""


class Version(NamedTuple):
    """A file at ``path``: on the disk, or in a ``revision``, which is "" for the index of git.

    In a revision, ``path`` is relative to the top of the repository, or to the current directory if it starts with
    ``./``. It is "" if only a revision was given.
    """

    revision: str | None
    path: str

    def __str__(self) -> str:
        return self.path if self.revision is None else f"{self.revision}:{self.path}".removesuffix(":")

    @property
    def file(self) -> Path:
        """The file on the disk that this is a version of."""
        if self.revision is None or self.path.startswith("./"):
            return Path(self.path)
        return Path(os.path.relpath(Path(_top(), self.path)))

    def at(self, revision: str | None) -> Version:
        """The same file in another revision, or on the disk for None."""
        if revision is None:
            return Version(None, str(self.file))
        path = self.path if self.revision is not None else f"./{Path(os.path.relpath(self.path)).as_posix()}"
        return Version(revision, path)

    def text(self, environ: Mapping[str, str]) -> str | None:
        """The content; None if there is no such file. Raises UsageError if it cannot be read."""
        if self.revision is not None:
            found = _git(environ, "cat-file", "blob", f"{self.revision}:{self.path}")
            if found.flooded:
                raise UsageError("held-unreadable", f"cannot read {self}: it is longer than {LONGEST} bytes")
            return found.output if found.exit_code == 0 else None
        try:
            return read_text(Path(self.path), LONGEST)
        except FileError as error:
            raise UsageError("held-unreadable", f"cannot read {error.at(self.path)}: {error.reason}") from error


def version_of(text: str, environ: Mapping[str, str]) -> Version:
    """The version that ``text`` names: a file, a file in a revision (``HEAD~1:uv.lock``), or only a revision.

    Raises UsageError ``no-such-version`` if it is none of these, OutsideError ``git-not-found`` without git.
    """
    if Path(text).exists():
        return Version(None, text)
    revision, colon, path = text.partition(":")
    known = colon and not revision and path  # the index
    if known or (revision and not revision.startswith("-") and _is_revision(revision, environ)):
        return Version(revision, path)
    message = f"{text} is not a file" if colon else f"{text} is neither a file nor a git revision"
    if colon:
        message += f", and {revision!r} is not a git revision"
    raise UsageError(
        "no-such-version", message, hints=(Hint("name a file, a revision or a file in one, such as HEAD~1:uv.lock"),)
    )


def _is_revision(name: str, environ: Mapping[str, str]) -> bool:
    return _git(environ, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").exit_code == 0


def _top() -> str:
    found = _git(os.environ, "rev-parse", "--show-toplevel")
    return found.output.removesuffix("\n") if found.exit_code == 0 else str(Path.cwd())


def _git(environ: Mapping[str, str], *command: str) -> Finished:
    git = find_program("git", environ)
    if git is None:
        message = "git is needed to read a revision, and it is not installed"
        raise OutsideError("git-not-found", message, hints=(Hint("install git, or name two files"),))
    return run_program([git, "-C", str(Path.cwd()), *command], environ, _PATIENCE, limit=LONGEST)
