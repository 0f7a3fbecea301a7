"""What a lock makes from an empty directory, as one value for every format."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.lockfile.lock import Lock
from envsolve.model.note import Note


class Kind(StrEnum):
    """The kind of an environment."""

    CONDA = "conda"
    """A prefix of conda packages, with wheels in addition if the lock has any."""
    VENV = "venv"
    """A virtual environment of a Python that is installed elsewhere (PEP 405)."""

    def interpreter(self, prefix: Path, *, windows: bool) -> Path:
        """The Python of an environment of this kind."""
        if not windows:
            return prefix / "bin" / "python"
        return prefix / "python.exe" if self is Kind.CONDA else prefix / "Scripts" / "python.exe"


class Plan(NamedTuple):
    """What is installed: the packages in ``lock``, each with a digest.

    ``text`` is the file's text without credentials, and ``lock_name`` its name in the environment. ``python`` are the
    allowed versions of a venv's interpreter, None for any. ``logins`` are addresses in the file with a login, without
    and with it. ``notes`` say what is left out.
    """

    kind: Kind
    lock_name: str
    text: str
    lock: Lock
    python: SpecifierSet | None = None
    logins: tuple[tuple[str, str], ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def has_python(self) -> bool:
        """Whether the finished environment has an interpreter."""
        return self.kind is Kind.VENV or any(package.name == "python" for package in self.lock.conda)
