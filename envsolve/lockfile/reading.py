"""Every file that envsolve reads back, as a lock: one door for all formats.

The lock of a project is known by its name. Any other file is known by what stands in it, as people call these files
what they like: a pylock.toml by its version, a manifest of pixi by its workspace, an answer in JSON by its frameworks,
a Dockerfile by its first line or its name, a definition file by its header and its sections or by its name, an explicit
file by its mark, a file of YAML by the keys at its top. What is none of these is read as requirements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from envsolve.boundary.files import FileError, read_text
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.formats import is_definition_file, is_dockerfile, is_project_lock, module_of
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
_BOOTSTRAP = re.compile(r"^bootstrap[ \t]*:", re.MULTILINE | re.IGNORECASE)
_POST = re.compile(r"^%post\b", re.MULTILINE)
_EXPLICIT = re.compile(r"^[ \t]*@EXPLICIT[ \t\r]*$", re.MULTILINE)
_TOP_KEY = re.compile(r"""^(["']?)(environments|package|dependencies)\1[ \t]*:""", re.MULTILINE)
_BY_KEY = {"environments": "pixi.lock", "package": "conda-lock", "dependencies": "environment"}
_OF_ANY_PLATFORM = ("environment", "pixi", "json")
"""Formats whose reader needs to know the platform that it reads for."""
_OF_SEVERAL = ("conda-lock", "pixi.lock")
"""Formats with a lock for each platform."""
_OF_CONDA = (*_OF_SEVERAL, "explicit")
"""Formats whose locks are for one platform alone."""
EMPTY = "it is empty"
_OTHER_FILE = Hint("fix the file, or move it away and lock again")


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
    format_name = format_in(name, text)
    locks = locks_in(format_name, text, platform)
    return next((it for it in locks if it.platform in ("", platform) or format_name not in _OF_CONDA), None)


def locks_in(
    format_name: str, text: str, platform: Platform | None = None, environment: str | None = None
) -> tuple[Lock, ...]:
    """The locks in a file of this format, those for other platforms too where it has any.

    ``platform`` is for formats that are for any, or do not say it of each package. Of a pixi.lock they are those of
    ``environment``. Raises FileError for what is not of the format.
    """
    if environment is not None and format_name != "pixi.lock":
        raise FileError("it has one environment, and only a pixi.lock has several by name")
    if not text.strip():
        raise FileError(EMPTY)
    read: Callable[..., Any] = module_of(format_name).read
    if format_name in _OF_SEVERAL:
        locks: tuple[Lock, ...] = read(text, environment) if format_name == "pixi.lock" else read(text)
        return locks
    lock: Lock | None = read(text, platform) if format_name in _OF_ANY_PLATFORM else read(text)
    return () if lock is None else (lock,)


def platforms_in(format_name: str, text: str) -> tuple[Platform, ...]:
    """The platforms that a file of this format is for, () where it does not say. Raises FileError."""
    if format_name in _OF_ANY_PLATFORM:
        return ()
    return tuple(Platform(it.platform) for it in locks_in(format_name, text) if it.platform in tuple(Platform))


def format_in(name: PurePath, text: str) -> str:
    """The format of a file of this name with this content: as ``--format`` calls it, or the file of another tool.

    Raises FileError for what is of none.
    """
    if is_project_lock(name):
        return name.name.casefold()
    suffix = name.suffix.casefold()
    found = {
        "pixi": is_pixi_toml(name, text),
        "json": text.lstrip().startswith("{") and _is_answer(text),
        "pylock": suffix == ".toml" or _PYLOCK.search(text),
        "dockerfile": is_dockerfile(name.name) or text.startswith(_DOCKERFILE),
        "apptainer": is_definition_file(name.name) or (_BOOTSTRAP.search(text) and _POST.search(text)),
        "explicit": _EXPLICIT.search(text),
        "requirements": suffix in _REQUIREMENTS,
    }
    known = next((it for it, is_it in found.items() if is_it), None)
    if known is None and not text.strip():
        raise FileError(EMPTY)
    return known or _by_keys(text) or _requirements(text)


def format_at(path: Path) -> str | None:
    """The format of the file at ``path``; None where it is of none or cannot be read."""
    try:
        return format_in(path, read_text(path, LONGEST) or "")
    except FileError:
        return None


def is_pixi_toml(name: PurePath, text: str) -> bool:
    """Whether a file of this name with this content is a manifest of pixi."""
    return name.name.casefold() == "pixi.toml" or _PIXI_TOML.search(text) is not None


def _is_answer(text: str) -> bool:
    from envsolve.lockfile import json_answer

    return json_answer.is_answer(text)


def _by_keys(text: str) -> str | None:
    """The format that has these keys at the top of its document, which may be indented or in brackets."""
    from envsolve.lockfile.yaml_document import document_of, mapping

    keys = {found[2] for found in _TOP_KEY.finditer(text)}
    with suppress(FileError):
        keys = keys or set(mapping(document_of(text), "it"))
    return next((found for key, found in _BY_KEY.items() if key in keys), None)


def _requirements(text: str) -> str:
    """That it is one of requirements. Raises FileError where it has none."""
    from envsolve.lockfile import requirements_txt

    lock = requirements_txt.read(text)
    if not lock.pins and lock.made is None:
        raise FileError("it is not an environment.yml, conda-lock.yml, pixi.lock or explicit file")
    return "requirements"
