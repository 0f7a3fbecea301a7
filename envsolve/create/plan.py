"""What a lock makes of an empty directory, as one value for every format."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.lockfile.lock import Lock
from envsolve.model.note import Note


class Kind(StrEnum):
    """What kind of environment it is."""

    CONDA = "conda"
    """A prefix of conda packages, with wheels beside them where the lock has any."""
    VENV = "venv"
    """A virtual environment of a Python that is installed outside of it (PEP 405)."""

    def interpreter(self, prefix: Path, *, windows: bool) -> Path:
        """Where the Python of an environment of this kind is."""
        if not windows:
            return prefix / "bin" / "python"
        return prefix / "python.exe" if self is Kind.CONDA else prefix / "Scripts" / "python.exe"


class Plan(NamedTuple):
    """What is installed: the packages in ``lock``, each with a digest that proves it.

    ``text`` is that of the file without credentials, and ``lock_name`` what it is called where it is kept. ``python``
    are the versions of an interpreter that a venv may have, None for any. ``logins`` are addresses in the file that
    have one, bare and with it. ``notes`` are what to tell of what is left out.
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
        """Whether the environment has an interpreter in the end."""
        return self.kind is Kind.VENV or any(package.name == "python" for package in self.lock.conda)
