"""Every file that envsolve reads back, as a lock: one door for all formats.

The lock of a project is known by its name. Any other file is known by what stands in it, as people call these files
what they like: a pylock.toml by its version, a manifest of pixi by its workspace, an answer in JSON by its frameworks,
a file of conda as :mod:`envsolve.lockfile.conda_file` says, a Dockerfile by its first line or its name. What is none
of these is read as requirements.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from envsolve.boundary.files import FileError, read_text
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.formats import is_dockerfile, is_project_lock, tool_of
from envsolve.lockfile.own_file import LONGEST
from envsolve.model.host import Platform

if TYPE_CHECKING:
    from envsolve.lockfile.lock import Lock

_REQUIREMENTS = (".txt", ".in")
"""What requirements are called, which pip reads whatever stands in them."""
_PYLOCK = re.compile(r"^lock-version[ \t]*=", re.MULTILINE)
_PIXI_TOML = re.compile(r"^\[workspace\]", re.MULTILINE)
_DOCKERFILE = "# syntax=docker/dockerfile:1"
"""The first line of one with here-documents, as envsolve writes it."""
_OTHER_FILE = Hint("move the file away, or give -o the file of an earlier answer")


def lock_at(path: Path, platform: Platform) -> Lock | None:
    """What the file at ``path`` holds for ``platform``; None where there is no file, or nothing for it.

    Raises UsageError ``held-unreadable`` where there is one that cannot be read.
    """
    try:
        text = read_text(path, LONGEST)
        return None if text is None else lock_in(path, text, platform)
    except FileError as error:
        message = f"cannot read {error.at(path)}: {error.reason}"
        raise UsageError("held-unreadable", message, hints=(_OTHER_FILE,)) from error


def lock_in(name: PurePath, text: str, platform: Platform) -> Lock | None:
    """What a file of this name with this content holds for ``platform``; None where it holds nothing for it.

    A lock of Python packages is for any platform, where its markers do not say otherwise. Raises FileError for what is
    not of its format, or of none.
    """
    if not text.strip():
        return None
    if is_pixi_toml(name, text):
        from envsolve.lockfile import pixi_toml

        return pixi_toml.read(text, platform)
    if text.lstrip().startswith("{"):
        from envsolve.lockfile import json_answer

        if json_answer.is_answer(text):
            return json_answer.read(text, platform)
    return _of_python(name, text) or _of_conda_or_requirements(name, text, platform)


def is_pixi_toml(name: PurePath, text: str) -> bool:
    """Whether a file of this name with this content is a manifest of pixi."""
    return name.name.casefold() == "pixi.toml" or _PIXI_TOML.search(text) is not None


def read_project_lock(name: PurePath, text: str) -> Lock:
    """The lock of another tool that wrote a file of this name. Raises FileError where it is not of its format."""
    tool = tool_of(name)
    if tool == "uv":
        from envsolve.lockfile import uv_lock

        return uv_lock.read(text)
    if tool == "Poetry":
        from envsolve.lockfile import poetry_lock

        return poetry_lock.read(text)
    from envsolve.lockfile import pdm_lock

    return pdm_lock.read(text)


def _of_python(name: PurePath, text: str) -> Lock | None:
    """A lock of Python packages that is more than requirements; None for any other file."""
    if is_project_lock(name):
        return read_project_lock(name, text)
    if name.suffix.casefold() == ".toml" or _PYLOCK.search(text):
        from envsolve.lockfile import pylock_toml

        return pylock_toml.read(text)
    if is_dockerfile(name.name) or text.startswith(_DOCKERFILE):
        from envsolve.lockfile import dockerfile

        return dockerfile.read(text)
    return None


def _of_conda_or_requirements(name: PurePath, text: str, platform: Platform) -> Lock | None:
    from envsolve.lockfile.conda_file import format_of, is_explicit

    if name.suffix.casefold() in _REQUIREMENTS and not is_explicit(text):
        return _requirements(text)
    try:
        kind = format_of(text)
    except FileError:
        lock = _requirements(text)
        if lock.pins or lock.made is not None:
            return lock
        raise
    from envsolve.lockfile.conda_locks import read_conda

    return read_conda(kind, text, platform)


def _requirements(text: str) -> Lock:
    from envsolve.lockfile import requirements_txt

    return requirements_txt.read(text)
