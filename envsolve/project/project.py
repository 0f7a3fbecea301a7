"""A project as read: the parts to solve, each with its machines and the files to write."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import Audit, Policy
from envsolve.model.versions import DriverVersion, LibcVersion


class Output(NamedTuple):
    """A file to write. ``file`` is relative to the project. ``format`` is None if it follows from the name."""

    file: str
    format: str | None = None


class Machine(NamedTuple):
    """A target: GPUs as typed (empty means those of this machine) and the driver, or host files with both.

    ``glibc`` is the C library, whatever the host files say.
    """

    name: str
    gpus: tuple[str, ...] = ()
    driver: DriverVersion | None = None
    glibc: LibcVersion | None = None
    hosts: tuple[str, ...] = ()
    platforms: tuple[Platform, ...] = ()


class Settings(NamedTuple):
    """The request, independent of the machine. File names are relative to the project.

    ``python`` is limited by ``requires-python``. ``names_python`` is true if a key or an option names a Python, which
    ``requires-python`` does not. ``places`` are the files with the requirements, in their order; further requirements
    were typed.
    """

    frameworks: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    requirement_files: tuple[str, ...] = ()
    constraint_files: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    build_constraint_files: tuple[str, ...] = ()
    python: SpecifierSet | None = None
    cuda: SpecifierSet | None = None
    sources: tuple[Source, ...] = ()
    prefer: Policy = Policy.NEWEST_FRAMEWORK
    channels: tuple[str, ...] = ()
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    pytorch_index_url: str | None = None
    exclude_newer: str | None = None
    audit: Audit = Audit.AUTO
    allow_builds: bool = False
    extensions: bool = False
    pre: bool = False
    places: tuple[str, ...] = ()
    names_python: bool = False
    uv_settings: bool = False


class Part(NamedTuple):
    """What is locked together: one stack that runs on all of its machines, in one or more files.

    ``name`` is that of the target if it has its own files, "" if targets share them or there are none. ``typed`` are
    the keys that options override for this run.
    """

    name: str
    settings: Settings
    machines: tuple[Machine, ...]
    outputs: tuple[Output, ...]
    typed: frozenset[str] = frozenset()


class Project(NamedTuple):
    """The project in ``file``. ``lines`` are the lines of its keys, by path."""

    file: Path
    parts: tuple[Part, ...]
    lines: tuple[tuple[tuple[str, ...], int], ...] = ()

    @property
    def directory(self) -> Path:
        """The directory that all file names are relative to."""
        return self.file.parent
