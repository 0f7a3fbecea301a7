"""The use case of exporting: a lock that is on the disk, in another of the formats that envsolve writes.

Nothing is solved: the packages are those of the file, each version, digest and address as it says. What the other
format cannot hold is told, and what it needs and the file does not have is a refusal.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.app.exact_files import Asking
from envsolve.app.export_conda import Exported, NotWholeError, export_conda, require_whole
from envsolve.boundary.files import FileError, read_text
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.conda_file import HeldFormat, format_of
from envsolve.lockfile.conda_lock_file import LONGEST
from envsolve.lockfile.formats import CONDA_FORMATS, VENV_FORMATS, is_project_lock
from envsolve.lockfile.lock import strong_digests
from envsolve.lockfile.reading import read_project_lock
from envsolve.model.host import Platform

FORMATS = (*VENV_FORMATS, *CONDA_FORMATS, "environment")
"""What a lock can become; ``environment`` is one of single builds."""
_LOCKS = Hint(
    "give a requirements file, a pylock.toml, a uv.lock, a poetry.lock, a pdm.lock, a conda-lock.yml, an explicit file "
    "or a pixi.lock"
)
_MEND = Hint("take what is named out of the lock, or lock it anew from a channel or an index")
REQUIREMENTS, PYLOCK = VENV_FORMATS
PROJECT = "project"
"""What a uv.lock, a poetry.lock or a pdm.lock is, which no lock becomes."""


class ExportRequest(NamedTuple):
    """The file, and the format it is to be in. ``platforms`` are those of a conda lock to take, () for all in it.

    ``environment`` is one of a pixi.lock. ``from_indexes`` says that package indexes may be asked, as ``asking`` has
    it, for what the file does not say.
    """

    path: Path
    format_name: str
    platforms: tuple[Platform, ...] = ()
    environment: str | None = None
    from_indexes: bool = False
    asking: Asking = Asking()


def export(asked: ExportRequest, environ: Mapping[str, str]) -> Exported:
    """The lock in its new format.

    Raises UsageError where the file is no lock, ``nothing-to-export`` where it is in that format already or has nothing
    that goes into it, ``lock-not-exact``, ``lock-without-hashes`` and ``lock-without-addresses`` for what it lacks;
    OutsideError where an index fails, or a package cannot stand in a lock.
    """
    try:
        text = read_text(asked.path, LONGEST)
        if text is None:
            raise FileError("there is no such file")
        kind = _kind(asked.path, text)
        _require_lock(asked, kind)
        if isinstance(kind, HeldFormat):
            return export_conda(
                kind, text, asked.path.name, asked.format_name, platforms=asked.platforms, environment=asked.environment
            )
        _require_python(asked)
        return _of_python(asked, kind, text, environ)
    except NotWholeError as error:
        message = f"{error.at(asked.path)} cannot be exported: {error.reason}"
        raise UsageError("lock-not-exact", message, hints=(_MEND,)) from None
    except FileError as error:
        message = f"cannot read {error.at(asked.path)}: {error.reason}"
        raise UsageError("lock-unreadable", message, hints=(_LOCKS,)) from None


def _kind(path: Path, text: str) -> HeldFormat | str:
    """The format of a lock: by its name for TOML and for the lock of a project, else by its content."""
    if is_project_lock(path):
        return PROJECT
    if path.suffix.lower() == ".toml":
        return PYLOCK
    try:
        return format_of(text)
    except FileError:
        return REQUIREMENTS


def _require_lock(asked: ExportRequest, kind: HeldFormat | str) -> None:
    """Raise UsageError for a file that is no lock, or is in that format already and whole."""
    if kind is HeldFormat.ENVIRONMENT:
        raise UsageError(
            "lock-not-exact",
            f"{asked.path} cannot be exported: an environment.yml has no addresses of packages, and most leave open "
            "which packages they are",
            hints=(Hint("have it solved", f"envsolve -r {shlex.quote(str(asked.path))} --format {asked.format_name}"),),
        )
    if kind == asked.format_name and kind != REQUIREMENTS:
        raise _same_format(asked)


def _same_format(asked: ExportRequest) -> UsageError:
    others = ", ".join(it for it in FORMATS if it != asked.format_name)
    return UsageError(
        "nothing-to-export",
        f"{asked.path} is in the format {asked.format_name} already",
        hints=(Hint(f"name another format: {others}"),),
    )


def _require_python(asked: ExportRequest) -> None:
    """Raise UsageError where a lock of wheels is to become what it cannot."""
    if asked.format_name not in VENV_FORMATS:
        raise UsageError(
            "nothing-to-export",
            f"{asked.path} is a lock of wheels, and {asked.format_name} holds conda packages, which are other builds",
            hints=(Hint("solve the request anew for channels", f"envsolve ... --format {asked.format_name}"),),
        )
    if asked.platforms or asked.environment is not None:
        option = "--platform" if asked.platforms else "--environment"
        raise UsageError(
            "contradictory-options",
            f"{option} chooses a part of a lock of conda packages, and {asked.path} is a Python lock",
            hints=(Hint(f"leave {option} out"),),
        )


def _of_python(asked: ExportRequest, kind: str, text: str, environ: Mapping[str, str]) -> Exported:
    from envsolve.app.export_python import Asked, export_python

    if kind == REQUIREMENTS:
        from envsolve.lockfile import requirements_txt

        lock = requirements_txt.read(text)
        if asked.format_name == REQUIREMENTS and not lock.open and all(map(strong_digests, lock.pins)):
            raise _same_format(asked)
    elif kind == PYLOCK:
        from envsolve.lockfile import pylock_toml

        lock = pylock_toml.read(text)
    else:
        lock = read_project_lock(asked.path, text)
    require_whole(lock.open)
    command = ["envsolve", "export", str(asked.path), "--format", asked.format_name, "--ask-index"]
    return export_python(
        Asked(
            lock.with_requirers(),
            kind,
            asked.format_name,
            asked.path.name,
            asked.asking,
            asked.from_indexes,
            shlex.join(command),
        ),
        environ,
    )
