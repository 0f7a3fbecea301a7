"""The formats of locks, each in one entry: how it is recognised, and what it can record of a lock.

Everything that depends on a format follows from its entry in ``FORMATS`` and from its module in
:mod:`envsolve.lockfile`, which has ``read`` and ``write``, and ``document_in`` where its files say what no lock holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import NamedTuple


class Content(StrEnum):
    """What some formats hold and others do not, in words for the documentation."""

    CONDA = "packages of conda"
    DIGESTS = "both digests of a conda package"
    PROOFS = "a digest of each wheel"
    ADDRESSES = "the names and addresses of files"
    UPLOADS = "the sizes and upload times of files"
    ALL_FILES = "more than one file of a wheel's version"
    REQUIREMENTS = "what a package requires"
    REASONS = "what requires a package, and why it has its version"
    MARKERS = "where a package is installed, if not everywhere"
    CATEGORIES = "for whom a package is there, if not for everybody"
    PYTHONS = "which versions of Python a package is for"
    DEFAULT_INDEX = "the default index, and the order of the others"
    SOURCES = "repositories and folders"
    RECORD = "the table of facts that envsolve records"


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

    ``holds`` is what it holds of a lock (an environment.yml: with ``--exact``), beside names, versions, builds and what
    the lock is for. ``names`` are patterns for the names of its files, in lower case; with ``by_name`` a file of such a
    name is in this format whatever it contains. Any other file is in it if it contains ``mark``, a regular expression
    for whole texts, or, in YAML, the key ``key`` at its top. With ``has_platforms`` one file has the locks for all
    platforms. ``tool`` is the tool whose lock it is, which envsolve reads and does not write.
    """

    name: str
    kind: FormatKind
    module: str
    holds: frozenset[Content] = frozenset()
    names: tuple[str, ...] = ()
    mark: str = ""
    key: str = ""
    by_name: bool = False
    has_platforms: bool = False
    tool: str | None = None


_BY_PIP = frozenset(
    (Content.PROOFS, Content.ALL_FILES, Content.REASONS, Content.MARKERS, Content.DEFAULT_INDEX, Content.RECORD)
)
_BY_CONDA = frozenset({Content.CONDA, Content.PROOFS, Content.ADDRESSES, Content.RECORD})
_BY_A_TOOL = frozenset({Content.PROOFS, Content.ALL_FILES, Content.REQUIREMENTS, Content.MARKERS})
_ALL = (
    LockFormat(
        "environment",
        FormatKind.STACK,
        "environment_yml",
        holds=frozenset((Content.CONDA, Content.PROOFS, Content.ALL_FILES, Content.DEFAULT_INDEX, Content.RECORD)),
        names=("*.yml", "*.yaml"),
        key="dependencies",
    ),
    LockFormat(
        "json",
        FormatKind.REPORT,
        "json_answer",
        holds=frozenset({Content.CONDA}),
        names=("*.json",),
        mark=r'\A\s*\{(?s:.*)"(?:frameworks|envsolve_version)"\s*:',
        has_platforms=True,
    ),
    LockFormat(
        "pixi",
        FormatKind.STACK,
        "pixi_toml",
        holds=frozenset({Content.CONDA}),
        names=("pixi.toml",),
        mark=r"^\[workspace\]",
        by_name=True,
        has_platforms=True,
    ),
    LockFormat(
        "requirements", FormatKind.PYTHON, "requirements_txt", holds=_BY_PIP | {Content.SOURCES}, names=("*.txt",)
    ),
    LockFormat(
        "pylock",
        FormatKind.PYTHON,
        "pylock_toml",
        holds=frozenset(Content) - {Content.CONDA, Content.DIGESTS, Content.CATEGORIES, Content.DEFAULT_INDEX},
        names=("pylock.toml", "pylock.*.toml"),
        mark=r"^lock-version[ \t]*=",
    ),
    LockFormat(
        "dockerfile",
        FormatKind.IMAGE,
        "dockerfile",
        holds=_BY_PIP,
        names=("dockerfile", "*.dockerfile", "dockerfile.*", "containerfile", "*.containerfile", "containerfile.*"),
        mark=r"\A# syntax=docker/dockerfile:1",
        by_name=True,
    ),
    LockFormat(
        "apptainer",
        FormatKind.IMAGE,
        "apptainer",
        holds=_BY_PIP,
        names=("*.def", "singularity", "singularity.*"),
        mark=r"^(?i:bootstrap)[ \t]*:(?s:.*)^%post\b",
        by_name=True,
    ),
    LockFormat(
        "conda-lock",
        FormatKind.CONDA,
        "conda_lock_yml",
        holds=_BY_CONDA | {Content.DIGESTS, Content.REQUIREMENTS, Content.CATEGORIES},
        names=("*conda-lock.yml", "*conda-lock.yaml"),
        key="package",
        has_platforms=True,
    ),
    LockFormat(
        "explicit",
        FormatKind.CONDA,
        "explicit",
        holds=_BY_CONDA,
        names=("conda*.lock", "explicit*.lock", "explicit*"),
        mark=r"^[ \t]*@EXPLICIT[ \t\r]*$",
    ),
    LockFormat("constraints", FormatKind.CONSTRAINTS, "constraints_txt"),
    LockFormat(
        "pixi.lock",
        FormatKind.CONDA,
        "pixi_lock",
        holds=_BY_CONDA - {Content.RECORD} | {Content.DIGESTS, Content.REQUIREMENTS, Content.DEFAULT_INDEX},
        names=("pixi.lock",),
        key="environments",
        has_platforms=True,
        tool="pixi",
    ),
    LockFormat(
        "uv.lock",
        FormatKind.PYTHON,
        "uv_lock",
        holds=_BY_A_TOOL | {Content.ADDRESSES, Content.UPLOADS, Content.PYTHONS},
        names=("uv.lock",),
        by_name=True,
        tool="uv",
    ),
    LockFormat(
        "poetry.lock",
        FormatKind.PYTHON,
        "poetry_lock",
        holds=_BY_A_TOOL | {Content.PYTHONS},
        names=("poetry.lock",),
        by_name=True,
        tool="Poetry",
    ),
    LockFormat(
        "pdm.lock",
        FormatKind.PYTHON,
        "pdm_lock",
        holds=_BY_A_TOOL | {Content.ADDRESSES, Content.PYTHONS},
        names=("pdm.lock",),
        by_name=True,
        tool="PDM",
    ),
)
FORMATS: Mapping[str, LockFormat] = {it.name: it for it in _ALL}


def _written(*kinds: FormatKind) -> tuple[str, ...]:
    return tuple(it.name for it in _ALL if it.kind in kinds and not it.tool)


PLATFORM = "{platform}"
"""Stands for the platform in the name of a file."""
STACK_FORMATS = _written(FormatKind.STACK, FormatKind.REPORT)
VENV_FORMATS = _written(FormatKind.PYTHON)
"""Formats of a Python lock that an environment is created from."""
IMAGE_FORMATS = _written(FormatKind.IMAGE)
PYTHON_FORMATS = (*VENV_FORMATS, *IMAGE_FORMATS)
CONDA_FORMATS = _written(FormatKind.CONDA)
SOLVED_FORMATS = (*STACK_FORMATS, *PYTHON_FORMATS, *CONDA_FORMATS)
"""What a request is answered in."""
CREATE_FORMATS = (*VENV_FORMATS, *CONDA_FORMATS)
"""What an environment is created from."""
CAPTURE_FORMATS = (*CREATE_FORMATS, *_written(FormatKind.CONSTRAINTS))
EXPORT_FORMATS = (*CREATE_FORMATS, "environment", *_written(FormatKind.CONSTRAINTS))

PROJECT_LOCKS = tuple(it.name for it in _ALL if it.kind is FormatKind.PYTHON and it.tool)
"""Locks of other tools for a project of Python packages."""

_BESIDE = (".lock", ".dockerignore")
"""Endings of files that are called after another file: no pattern that leaves the ending open is for them."""


def format_for_file(path: PurePath) -> str | None:
    """The format that a file name stands for, by the longest pattern that it matches; None where there is none."""
    name = path.name.casefold()
    found = (
        (len(pattern), it.name)
        for it in _ALL
        for pattern in it.names
        if fnmatchcase(name, pattern) and not (name.endswith(_BESIDE) and pattern.endswith("*"))
    )
    return max(found, default=(0, None))[1]


def tool_of(path: PurePath) -> str | None:
    """The tool that a file of this name is the lock of, which envsolve reads and does not write; None for others."""
    found = format_for_file(path)
    return None if found is None else FORMATS[found].tool


def is_project_lock(path: PurePath) -> bool:
    """Whether a file of this name is the lock of a project of Python packages: uv.lock, poetry.lock or pdm.lock."""
    return format_for_file(path) in PROJECT_LOCKS
