"""Read every file that envsolve supports as a lock: the entry point for all formats.

Files with a fixed name, such as locks of projects, are identified by name. Others may have any name, so they are
identified by their content: by the mark of a format, or for YAML by the top-level keys
(:mod:`envsolve.model.lock_format`). Everything else is read as requirements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from envsolve.boundary.files import FileError, read_text
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.formats import module_of
from envsolve.lockfile.own_file import LONGEST
from envsolve.model.host import Platform
from envsolve.model.lock_format import FORMATS, STACK_FORMATS, FormatKind, format_for_file

if TYPE_CHECKING:
    from envsolve.lockfile.lock import Lock

_BY_SUFFIX = {".toml": "pylock", ".txt": "requirements", ".in": "requirements"}
"""The format of a file without a mark. pip reads any text as requirements."""
_BY_KEY = {it.key: it.name for it in FORMATS.values() if it.key}
_TOP_KEY = re.compile(rf"""^(["']?)({"|".join(_BY_KEY)})\1[ \t]*:""", re.MULTILINE)
EMPTY = "it is empty"
_OTHER_FILE = Hint("fix the file, or move it away and lock again")


def lock_at(path: Path, platform: Platform) -> Lock | None:
    """Return the content of the file at ``path`` for ``platform``, or None without a file or such content.

    Raises UsageError ``held-unreadable`` if the file cannot be read.
    """
    try:
        text = read_text(path, LONGEST)
        return None if text is None else lock_in(path, text, platform)
    except FileError as error:
        message = f"cannot read {error.at(path)}: {error.reason}"
        raise UsageError("held-unreadable", message, hints=(_OTHER_FILE,)) from error


def lock_in(name: PurePath, text: str, platform: Platform) -> Lock | None:
    """Return the content ``text`` of the file ``name`` for ``platform``, or None if there is none for it.

    A lock of Python packages is for any platform, unless its markers say otherwise. Raises FileError if the content
    does not match its format, or any format.
    """
    return lock_for(format_in(name, text), text, platform) if text.strip() else None


def lock_for(format_name: str, text: str, platform: Platform) -> Lock | None:
    """Like :func:`lock_in`, for a file of this format with any name."""
    is_for_one = FORMATS[format_name].kind is FormatKind.CONDA
    locks = locks_in(format_name, text, platform)
    return next((it for it in locks if it.platform in ("", platform) or not is_for_one), None)


def locks_in(
    format_name: str, text: str, platform: Platform | None = None, environment: str | None = None
) -> tuple[Lock, ...]:
    """Return the locks in a file of this format, including those for other platforms.

    ``platform`` is used for formats that are for any platform, or do not state it for each package. For a pixi.lock the
    locks are those of ``environment``. Raises FileError if the content does not match the format.
    """
    if environment is not None and format_name != "pixi.lock":
        raise FileError("it has one environment, and only a pixi.lock has several by name")
    if not text.strip():
        raise FileError(EMPTY)
    read: Callable[..., Any] = module_of(format_name).read
    if format_name in STACK_FORMATS:
        lock: Lock | None = read(text, platform)
        return () if lock is None else (lock,)
    if not FORMATS[format_name].has_platforms:
        return (read(text),)
    locks: tuple[Lock, ...] = read(text, environment) if format_name == "pixi.lock" else read(text)
    return locks


def platforms_in(format_name: str, text: str) -> tuple[Platform, ...]:
    """Return the platforms that a file of this format is for, () if unknown. Raises FileError."""
    if format_name in STACK_FORMATS:
        return ()
    return tuple(Platform(it.platform) for it in locks_in(format_name, text) if it.platform in tuple(Platform))


def format_in(name: PurePath, text: str) -> str:
    """Return the format of the file ``name`` with this content: the name for ``--format``, or the file of another tool.

    Raises FileError if it has no known format.
    """
    by_name = format_for_file(name)
    if by_name is not None and FORMATS[by_name].by_name:
        return by_name
    marked = (it.name for it in FORMATS.values() if it.mark and re.search(it.mark, text, re.MULTILINE))
    known = next(marked, None) or _BY_SUFFIX.get(name.suffix.casefold())
    if known is None and not text.strip():
        raise FileError(EMPTY)
    return known or _by_keys(text) or _requirements(text)


def format_at(path: Path) -> str | None:
    """Return the format of the file at ``path``, or None if it is unknown or the file cannot be read."""
    try:
        return format_in(path, read_text(path, LONGEST) or "")
    except FileError:
        return None


def _by_keys(text: str) -> str | None:
    """The format with these top-level keys. The document may be indented or in brackets."""
    from envsolve.lockfile.yaml_document import document_of, mapping

    keys = {found[2] for found in _TOP_KEY.finditer(text)}
    with suppress(FileError):
        keys = keys or set(mapping(document_of(text), "it"))
    return next((found for key, found in _BY_KEY.items() if key in keys), None)


def _requirements(text: str) -> str:
    """The format of requirements. Raises FileError if the text has none."""
    from envsolve.lockfile import requirements_txt

    with suppress(FileError):
        lock = requirements_txt.read(text)
        if lock.pins or lock.made is not None:
            return "requirements"
    raise FileError("it is not an environment.yml, conda-lock.yml, pixi.lock or explicit file")
