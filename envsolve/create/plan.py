"""What a lock makes of an empty directory, as one value for every format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.model.conda import CondaPackage
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


class WheelFile(NamedTuple):
    """A file that uv and pip install from: ``pylock.toml`` or ``requirements.txt``, with the hash of every file in it.

    ``names_index`` says that it tells where the packages are; else the indexes count that the user has configured.
    """

    name: str
    text: str
    names_index: bool = True


class Plan(NamedTuple):
    """What is installed. ``python`` are the versions of an interpreter that a venv may have, None for any.

    ``conda`` are packages with address and digest, in the order of the lock. ``variables`` are set where the
    environment is activated. ``lock`` is the text of the lock without credentials, ``lock_name`` what a file with it is
    called. ``facts`` are those that envsolve recorded in it, None where another tool wrote it. ``notes`` are what to
    tell of what is left out.
    """

    kind: Kind
    lock_name: str
    lock: str
    python: SpecifierSet | None = None
    conda: tuple[CondaPackage, ...] = ()
    wheels: WheelFile | None = None
    variables: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, object] | None = None
    notes: tuple[Note, ...] = ()

    @property
    def has_python(self) -> bool:
        """Whether the environment has an interpreter in the end."""
        return self.kind is Kind.VENV or any(package.name == "python" for package in self.conda)


def wheel_file(requirements: Iterator[str]) -> WheelFile | None:
    """A requirements file of wheels by their addresses; None without any."""
    lines = sorted(requirements)
    return WheelFile("requirements.txt", "".join(f"{line}\n" for line in lines)) if lines else None
