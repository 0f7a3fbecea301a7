"""The use case of exporting: a lock that is on the disk, in another of the formats that envsolve writes.

Nothing is solved: the packages are those of the file, each version, digest and address as it says. What the other
format cannot hold is noted, and what it needs and the file does not have is a refusal.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.app.environment.exact_files import Asking
from envsolve.app.environment.export_conda import NOT_EXPORTED, Exported, NotWholeError, export_conda, require_whole
from envsolve.boundary.files import FileError, read_text
from envsolve.errors import Hint, UsageError
from envsolve.lockfile import constraints_txt
from envsolve.lockfile.lock import Lock, strong_digests
from envsolve.lockfile.own_file import LONGEST
from envsolve.lockfile.reading import format_in, locks_in
from envsolve.lockfile.text_file import shown
from envsolve.model.host import Platform
from envsolve.model.lock_format import CONDA_FORMATS, EXPORT_FORMATS, VENV_FORMATS
from envsolve.model.note import Note

_LOCKS = Hint(
    "give a requirements file, a pylock.toml, a uv.lock, a poetry.lock, a pdm.lock, a conda-lock.yml, an explicit file "
    "or a pixi.lock"
)
_MEND = Hint("remove that entry from the lock, or lock again from a channel or an index")
REQUIREMENTS, PYLOCK = VENV_FORMATS
_OF_WHEELS = (*VENV_FORMATS, "uv.lock", "poetry.lock", "pdm.lock")
_OF_CONDA = (*CONDA_FORMATS, "pixi.lock")


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
        kind = format_in(asked.path, text)
        _require_lock(asked, kind)
        if asked.format_name == constraints_txt.FORMAT:
            locks = locks_in(kind, text, environment=asked.environment)
            if kind in _OF_WHEELS:
                _require_python(asked._replace(format_name=REQUIREMENTS))
                require_whole(locks[0].open)
            return _constraints(asked, locks)
        if kind in _OF_CONDA:
            locks = locks_in(kind, text, environment=asked.environment)
            return export_conda(kind, locks, asked.path.name, asked.format_name, platforms=asked.platforms)
        _require_python(asked)
        return _of_python(asked, kind, text, environ)
    except NotWholeError as error:
        message = f"{error.at(asked.path)} cannot be exported: {error.reason}"
        raise UsageError("lock-not-exact", message, hints=(_MEND,)) from None
    except FileError as error:
        message = f"cannot read {error.at(asked.path)}: {error.reason}"
        raise UsageError("lock-unreadable", message, hints=(_LOCKS,)) from None


def _constraints(asked: ExportRequest, locks: Iterable[Lock]) -> Exported:
    """The versions of the wheels, a file for each platform; conda's packages are none that an installer replaces."""
    texts, left_out = [], False
    for lock in locks:
        if asked.platforms and lock.platform not in asked.platforms:
            continue
        lines = [f"{it.name}=={it.version}{f' ; {it.marker}' if it.marker else ''}" for it in lock.pins if it.version]
        texts.append((lock.platform, constraints_txt.write(lines, asked.path.name)))
        left_out = left_out or bool(lock.conda)
    note = Note(NOT_EXPORTED, "the conda packages are left out: constraints are for pip and uv")
    return Exported(tuple(texts), (note,) if left_out else ())


def _require_lock(asked: ExportRequest, kind: str) -> None:
    """Raise FileError and UsageError for a file that is no lock, or is in that format already and whole."""
    if kind == "environment":
        raise UsageError(
            "lock-not-exact",
            f"{asked.path} cannot be exported: an environment.yml has no package URLs, and most do not pin "
            "exact builds",
            hints=(Hint("solve it", f"envsolve -r {shlex.quote(str(asked.path))} --format {_solved_as(asked)}"),),
        )
    if kind not in (*_OF_WHEELS, *_OF_CONDA):
        raise FileError("it is not a lock that can be exported")
    if kind == asked.format_name and kind != REQUIREMENTS:
        raise _same_format(asked)


def _solved_as(asked: ExportRequest) -> str:
    """The format of a lock from which the one that is wanted can be exported."""
    return PYLOCK if asked.format_name == constraints_txt.FORMAT else asked.format_name


def _same_format(asked: ExportRequest) -> UsageError:
    others = ", ".join(it for it in EXPORT_FORMATS if it != asked.format_name)
    return UsageError(
        "nothing-to-export",
        f"{asked.path} already has the format {asked.format_name}",
        hints=(Hint(f"choose another format: {others}"),),
    )


def _require_python(asked: ExportRequest) -> None:
    """Raise UsageError where a lock of wheels is to become what it cannot."""
    if asked.format_name not in VENV_FORMATS:
        raise UsageError(
            "nothing-to-export",
            f"{asked.path} is a lock of wheels, and {asked.format_name} is a format for conda packages",
            hints=(Hint("solve the request again for channels", f"envsolve ... --format {asked.format_name}"),),
        )
    if asked.platforms or asked.environment is not None:
        option = "--platform" if asked.platforms else "--environment"
        raise UsageError(
            "contradictory-options",
            f"{option} is for locks of conda packages, and {asked.path} is a Python lock",
            hints=(Hint(f"omit {option}"),),
        )


def _of_python(asked: ExportRequest, kind: str, text: str, environ: Mapping[str, str]) -> Exported:
    from envsolve.app.environment.export_python import PythonExport, export_python

    (lock,) = locks_in(kind, text)
    if kind == asked.format_name and not lock.open and all(map(strong_digests, lock.pins)):
        raise _same_format(asked)
    if lock.find_links:
        option = shown(f"--find-links {lock.find_links[0]}")
        raise NotWholeError(f"it has the option {option}, which no other format supports")
    require_whole(lock.open)
    command = ["envsolve", "export", str(asked.path), "--format", asked.format_name, "--ask-index"]
    return export_python(
        PythonExport(
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
