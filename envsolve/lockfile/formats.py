"""Write each format of :mod:`envsolve.model.lock_format` with its module, and choose the format of an output file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import PurePath
from types import ModuleType
from typing import TYPE_CHECKING, Any

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.answer import Answer
from envsolve.model.host import Platform
from envsolve.model.lock_format import FORMATS, IMAGE_FORMATS, format_for_file, tool_of
from envsolve.model.note import Note

if TYPE_CHECKING:
    from envsolve.lockfile.lock import Lock
    from envsolve.model.solution import Solution

_SEVERAL_FORMATS = {
    ".lock": Hint("set the format, for example with --format explicit"),
    ".toml": Hint("name it pylock.toml, pylock.NAME.toml or pixi.toml, or use --format pylock or --format pixi"),
}
"""Suffixes that files of several formats have, but no environment.yml or requirements file."""
IMAGE_PLATFORMS = (Platform.LINUX_64, Platform.LINUX_AARCH64)


def write(answers: Sequence[Answer], format_name: str, notes: Sequence[Note] = ()) -> Iterator[tuple[Platform, str]]:
    """Yield the contents of the files in ``format_name``, one of STACK_FORMATS, each with its platform.

    JSON includes the ``notes``, which the command prints for other formats.
    """
    files = [answers] if FORMATS[format_name].has_platforms else [[answer] for answer in answers]
    for group in files:
        yield group[0].solution.problem.platform, without_secrets(_stack_text(group, format_name, notes))


def _stack_text(answers: Sequence[Answer], format_name: str, notes: Sequence[Note]) -> str:
    if format_name == "json":
        from envsolve.lockfile import json_answer

        return json_answer.write(answers, notes)
    from envsolve.lockfile.stack import lock_of

    locks = [lock_of(answer, sets_library_path=format_name == "pixi") for answer in answers]
    return write_locks(locks, format_name)


def write_conda_lock(locks: Sequence[Lock], format_name: str) -> Iterator[tuple[Platform, str]]:
    """Yield the contents of the files in ``format_name``, each with its platform; conda-lock.yml has all platforms.

    ``format_name`` is one of CONDA_FORMATS, or ``environment`` for one with exact builds. Raises OutsideError for a
    package without a digest.
    """
    for group in [locks] if FORMATS[format_name].has_platforms else [[lock] for lock in locks]:
        yield Platform(group[0].platform), without_secrets(write_locks(group, format_name))


def write_python_lock(lock: Lock, format_name: str, solution: Solution | None = None) -> str:
    """Return the content of the file in ``format_name``, one of PYTHON_FORMATS, for a lock made for ``solution``.

    Raises OutsideError for a pin without hash, and UsageError or UnsolvableError if an image cannot have the lock.
    """
    if format_name not in IMAGE_FORMATS:
        return without_secrets(write_locks([lock], format_name))
    from envsolve.lockfile.restriction import require_sources

    require_sources(lock.addresses, format_name)
    write: Callable[[Lock, Solution | None], str] = module_of(format_name).write
    return without_secrets(write(lock, solution))


def write_locks(locks: Sequence[Lock], format_name: str) -> str:
    """Return the content of a file with ``locks``: a single one, or several for conda-lock.yml and pixi.toml.

    Raises UsageError if the format cannot express a package, and OutsideError like the writer of the format.
    """
    from envsolve.lockfile.restriction import require_sources

    for lock in locks:
        require_sources(lock.addresses, format_name)
    write: Callable[[Any], str] = module_of(format_name).write
    return write(locks if FORMATS[format_name].has_platforms else locks[0])


def module_of(format_name: str) -> ModuleType:
    """Return the module of a format, with ``read`` and, if envsolve writes the format, ``write``."""
    return import_module(f"envsolve.lockfile.{FORMATS[format_name].module}")


def require_linux_for_image(platforms: Iterable[Platform], format_name: str) -> None:
    """Raise UsageError for a platform without images, if the format is one of images."""
    other = next((it for it in platforms if it not in IMAGE_PLATFORMS), None)
    if format_name in IMAGE_FORMATS and other is not None:
        raise UsageError(
            "platform-not-supported",
            f"an image is for Linux, but the request is for {other}",
            (module_of(format_name).ONLY_LINUX,),
            (Hint("choose Linux: --platform linux-64 or linux-aarch64"),),
        )


def format_of_name(path: PurePath) -> str | None:
    """Like :func:`format_for_file`, for an output file.

    Raises UsageError for the lock of another tool, and for a name that only shows that it is some lock or some TOML.
    """
    found = format_for_file(path)
    tool = tool_of(path)
    if tool is not None:
        instead = "the manifest, and have pixi lock it: -o pixi.toml" if tool == "pixi" else "a lock: -o pylock.toml"
        raise UsageError(
            "unknown-format",
            f"{path} is a lock of {tool}: envsolve can read it, but not write it",
            hints=(Hint(f"write {instead}"),),
        )
    hint = _SEVERAL_FORMATS.get(path.suffix.casefold())
    if found is None and hint is not None:
        raise UsageError("unknown-format", f"cannot infer a format from the name of {path}", hints=(hint,))
    return found
