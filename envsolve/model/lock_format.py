"""The lock formats, one entry for each: what it is and how it is recognised.

Everything that depends on a format follows from its entry in ``FORMATS`` and from its module in
:mod:`envsolve.lockfile`, which has ``read`` and ``write``, and ``document_in`` if its files have content that no lock
expresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import NamedTuple


class FormatKind(Enum):
    """What a file in a format is."""

    STACK = "frameworks and what they need, for a solver to choose the packages"
    REPORT = "the same as data, which no lock is written as"
    PYTHON = "all that pip or uv installs, pinned and hashed"
    IMAGE = "a Python lock that an image is built from"
    CONDA = "every conda package with its address and digest"
    CONSTRAINTS = "versions alone, which is written and not read"


class LockFormat(NamedTuple):
    """A format, called ``name`` by ``--format``, that the module ``module`` of envsolve.lockfile reads and writes.

    ``names`` are patterns for the names of its files, in lower case. With ``by_name``, a file with such a name is in
    this format whatever it contains. Any other file is in it if it matches ``mark``, a regular expression for whole
    texts, or for YAML has the top-level key ``key``. With ``has_platforms`` one file has the locks for all platforms.
    With ``has_sources`` packages may be repositories and directories. ``tool`` is the tool that writes the format, if
    envsolve only reads it.
    """

    name: str
    kind: FormatKind
    module: str
    names: tuple[str, ...] = ()
    mark: str = ""
    key: str = ""
    by_name: bool = False
    has_platforms: bool = False
    has_sources: bool = False
    tool: str | None = None


_ALL = (
    LockFormat(
        "environment",
        FormatKind.STACK,
        "environment_yml",
        names=("*.yml", "*.yaml"),
        key="dependencies",
    ),
    LockFormat(
        "json",
        FormatKind.REPORT,
        "json_answer",
        names=("*.json",),
        mark=r'\A\s*\{(?s:.*)"(?:frameworks|envsolve_version)"\s*:',
        has_platforms=True,
    ),
    LockFormat(
        "pixi",
        FormatKind.STACK,
        "pixi_toml",
        names=("pixi.toml",),
        mark=r"^\[workspace\]",
        by_name=True,
        has_platforms=True,
    ),
    LockFormat("requirements", FormatKind.PYTHON, "requirements_txt", names=("*.txt",), has_sources=True),
    LockFormat(
        "pylock",
        FormatKind.PYTHON,
        "pylock_toml",
        names=("pylock.toml", "pylock.*.toml"),
        mark=r"^lock-version[ \t]*=",
        has_sources=True,
    ),
    LockFormat(
        "dockerfile",
        FormatKind.IMAGE,
        "dockerfile",
        names=("dockerfile", "*.dockerfile", "dockerfile.*", "containerfile", "*.containerfile", "containerfile.*"),
        mark=r"\A# syntax=docker/dockerfile:1",
        by_name=True,
    ),
    LockFormat(
        "apptainer",
        FormatKind.IMAGE,
        "apptainer",
        names=("*.def", "singularity", "singularity.*"),
        mark=r"^(?i:bootstrap)[ \t]*:(?s:.*)^%post\b",
        by_name=True,
    ),
    LockFormat(
        "conda-lock",
        FormatKind.CONDA,
        "conda_lock_yml",
        names=("*conda-lock.yml", "*conda-lock.yaml"),
        key="package",
        has_platforms=True,
    ),
    LockFormat(
        "explicit",
        FormatKind.CONDA,
        "explicit",
        names=("conda*.lock", "explicit*.lock", "explicit*"),
        mark=r"^[ \t]*@EXPLICIT[ \t\r]*$",
    ),
    LockFormat("constraints", FormatKind.CONSTRAINTS, "constraints_txt"),
    LockFormat(
        "pixi.lock",
        FormatKind.CONDA,
        "pixi_lock",
        names=("pixi.lock",),
        key="environments",
        has_platforms=True,
        tool="pixi",
    ),
    LockFormat(
        "uv.lock",
        FormatKind.PYTHON,
        "uv_lock",
        names=("uv.lock",),
        by_name=True,
        tool="uv",
    ),
    LockFormat(
        "poetry.lock",
        FormatKind.PYTHON,
        "poetry_lock",
        names=("poetry.lock",),
        by_name=True,
        tool="Poetry",
    ),
    LockFormat(
        "pdm.lock",
        FormatKind.PYTHON,
        "pdm_lock",
        names=("pdm.lock",),
        by_name=True,
        tool="PDM",
    ),
)
FORMATS: Mapping[str, LockFormat] = {it.name: it for it in _ALL}


def _written(*kinds: FormatKind) -> tuple[str, ...]:
    return tuple(it.name for it in _ALL if it.kind in kinds and not it.tool)


PLATFORM = "{platform}"
"""The placeholder for the platform in the name of a file."""
STACK_FORMATS = _written(FormatKind.STACK, FormatKind.REPORT)
VENV_FORMATS = _written(FormatKind.PYTHON)
"""Formats of a Python lock from which an environment can be created."""
IMAGE_FORMATS = _written(FormatKind.IMAGE)
PYTHON_FORMATS = (*VENV_FORMATS, *IMAGE_FORMATS)
CONDA_FORMATS = _written(FormatKind.CONDA)
SOLVED_FORMATS = (*STACK_FORMATS, *PYTHON_FORMATS, *CONDA_FORMATS)
"""The formats of an answer to a request."""
CREATE_FORMATS = (*VENV_FORMATS, *CONDA_FORMATS)
"""The formats from which an environment can be created."""
CAPTURE_FORMATS = (*CREATE_FORMATS, *_written(FormatKind.CONSTRAINTS))
EXPORT_FORMATS = (*CREATE_FORMATS, "environment", *_written(FormatKind.CONSTRAINTS))

PROJECT_LOCKS = tuple(it.name for it in _ALL if it.kind is FormatKind.PYTHON and it.tool)
"""Locks of other tools for a project of Python packages."""

_BESIDE = (".lock", ".dockerignore")
"""Suffixes of files named after another file. A pattern with an open end does not match them."""


def format_for_file(path: PurePath) -> str | None:
    """Return the format for a file name, by the longest matching pattern, or None."""
    name = path.name.casefold()
    found = (
        (len(pattern), it.name)
        for it in _ALL
        for pattern in it.names
        if fnmatchcase(name, pattern) and not (name.endswith(_BESIDE) and pattern.endswith("*"))
    )
    return max(found, default=(0, None))[1]


def tool_of(path: PurePath) -> str | None:
    """Return the tool whose lock has this file name, if envsolve only reads its format, or None."""
    found = format_for_file(path)
    return None if found is None else FORMATS[found].tool


def is_project_lock(path: PurePath) -> bool:
    """Whether a file with this name is the lock of a Python project: uv.lock, poetry.lock or pdm.lock."""
    return format_for_file(path) in PROJECT_LOCKS
