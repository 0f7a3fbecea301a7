"""Export a lock to another format that envsolve writes.

Nothing is solved: packages, versions, digests and addresses are those in the file. Contents that the other format
cannot hold are noted. Data that it needs but the file lacks are an error.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from envsolve.app.environment.exact_files import IndexOptions
from envsolve.boundary.files import FileError, read_text
from envsolve.errors import Hint, UsageError
from envsolve.index.settings import default_index
from envsolve.lockfile import constraints_txt
from envsolve.lockfile.formats import write_conda_lock, write_python_lock
from envsolve.lockfile.lock import Lock, strong_digests
from envsolve.lockfile.own_file import LONGEST
from envsolve.lockfile.reading import format_in, locks_in
from envsolve.lockfile.text_file import shown
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.lock_format import CONDA_FORMATS, EXPORT_FORMATS, PYTHON_FORMATS, VENV_FORMATS
from envsolve.model.note import Note

_LOCKS = Hint(
    "give a requirements file, a pylock.toml, a uv.lock, a poetry.lock, a pdm.lock, a conda-lock.yml, an explicit file "
    "or a pixi.lock"
)
_MEND = Hint("remove that entry from the lock, or lock again from a channel or an index")
REQUIREMENTS, PYLOCK = VENV_FORMATS
_OF_WHEELS = (*VENV_FORMATS, "uv.lock", "poetry.lock", "pdm.lock")
_OF_CONDA = (*CONDA_FORMATS, "pixi.lock")
CONDA_LOCK = "conda-lock"
NOT_EXPORTED = "not-exported"
"""The code of notes on contents of a lock that another format cannot hold."""


class NotWholeError(FileError):
    """A lock lacks data that every other format needs, or has something that none can hold."""


class Exported(NamedTuple):
    """The texts with their platforms, and notes on contents of the file that are not in them."""

    texts: tuple[tuple[str, str], ...]
    notes: tuple[Note, ...] = ()


class ExportRequest(NamedTuple):
    """The file, and the new format. ``platforms`` are the platforms of a conda lock to export, () for all.

    ``environment`` is one of a pixi.lock. ``from_indexes`` allows queries to package indexes (``indexes``) for data
    that the file lacks.
    """

    path: Path
    format_name: str
    platforms: tuple[Platform, ...] = ()
    environment: str | None = None
    from_indexes: bool = False
    indexes: IndexOptions = IndexOptions()


def export(request: ExportRequest, environ: Mapping[str, str]) -> Exported:
    """The lock in its new format.

    Raises UsageError if the file is not a lock; ``nothing-to-export`` if it has that format already or nothing that
    fits it; ``lock-not-exact``, ``lock-without-hashes`` and ``lock-without-addresses`` for missing data. Raises
    OutsideError if an index fails, or if a package cannot be in a lock.
    """
    try:
        text = read_text(request.path, LONGEST)
        if text is None:
            raise FileError("there is no such file")
        kind = format_in(request.path, text)
        _require_lock(request, kind)
        if request.format_name == constraints_txt.FORMAT:
            locks = locks_in(kind, text, environment=request.environment)
            if kind in _OF_WHEELS:
                _require_python(request._replace(format_name=REQUIREMENTS))
                _require_closed(locks[0])
            return _constraints(request, locks)
        if kind in _OF_CONDA:
            locks = locks_in(kind, text, environment=request.environment)
            return export_conda(request, kind, locks)
        _require_python(request)
        return _of_python(request, kind, text, environ)
    except NotWholeError as error:
        message = f"{error.at(request.path)} cannot be exported: {error.reason}"
        raise UsageError("lock-not-exact", message, hints=(_MEND,)) from None
    except FileError as error:
        message = f"cannot read {error.at(request.path)}: {error.reason}"
        raise UsageError("lock-unreadable", message, hints=(_LOCKS,)) from None


def _constraints(request: ExportRequest, locks: Iterable[Lock]) -> Exported:
    """The versions of the wheels, one file per platform, without conda packages, which pip and uv do not replace."""
    texts, left_out = [], False
    for lock in locks:
        if request.platforms and lock.platform not in request.platforms:
            continue
        lines = [f"{it.name}=={it.version}{f' ; {it.marker}' if it.marker else ''}" for it in lock.pins if it.version]
        texts.append((lock.platform, constraints_txt.write(lines, request.path.name)))
        left_out = left_out or bool(lock.conda)
    note = Note(NOT_EXPORTED, "the conda packages are left out: constraints are for pip and uv")
    return Exported(tuple(texts), (note,) if left_out else ())


def _require_lock(request: ExportRequest, kind: str) -> None:
    """Raise FileError or UsageError for a file that is not a lock, or that already has the format."""
    if kind == "environment":
        raise UsageError(
            "lock-not-exact",
            f"{request.path} cannot be exported: an environment.yml has no package URLs, and most do not pin "
            "exact builds",
            hints=(Hint("solve it", f"envsolve -r {shlex.quote(str(request.path))} --format {_solved_as(request)}"),),
        )
    if kind not in (*_OF_WHEELS, *_OF_CONDA):
        raise FileError("it is not a lock that can be exported")
    if kind == request.format_name and kind != REQUIREMENTS:
        raise _same_format(request)


def _solved_as(request: ExportRequest) -> str:
    """The format of a lock that can be exported to the requested format."""
    return PYLOCK if request.format_name == constraints_txt.FORMAT else request.format_name


def _same_format(request: ExportRequest) -> UsageError:
    others = ", ".join(it for it in EXPORT_FORMATS if it != request.format_name)
    return UsageError(
        "nothing-to-export",
        f"{request.path} already has the format {request.format_name}",
        hints=(Hint(f"choose another format: {others}"),),
    )


def _require_python(request: ExportRequest) -> None:
    """Raise UsageError if a lock of wheels cannot be exported to the format."""
    if request.format_name not in VENV_FORMATS:
        raise UsageError(
            "nothing-to-export",
            f"{request.path} is a lock of wheels, and {request.format_name} is a format for conda packages",
            hints=(Hint("solve the request again for channels", f"envsolve ... --format {request.format_name}"),),
        )
    if request.platforms or request.environment is not None:
        option = "--platform" if request.platforms else "--environment"
        raise UsageError(
            "contradictory-options",
            f"{option} is for locks of conda packages, and {request.path} is a Python lock",
            hints=(Hint(f"omit {option}"),),
        )


def _of_python(request: ExportRequest, kind: str, text: str, environ: Mapping[str, str]) -> Exported:
    from envsolve.app.environment.export_python import export_python

    (lock,) = locks_in(kind, text)
    if kind == request.format_name and not lock.open and all(map(strong_digests, lock.pins)):
        raise _same_format(request)
    if lock.find_links:
        option = shown(f"--find-links {lock.find_links[0]}")
        raise NotWholeError(f"it has the option {option}, which no other format supports")
    _require_closed(lock)
    return export_python(request, kind, lock.with_requirers(), environ)


def export_conda(request: ExportRequest, kind: str, found: Sequence[Lock]) -> Exported:
    """The conda locks in ``found``, of a file in format ``kind``, in another format.

    Raises NotWholeError if a package has no address that a lock could name; UsageError for contents that the format
    cannot hold.
    """
    name, format_name, platforms = request.path.name, request.format_name, request.platforms
    known = [lock for lock in found if lock.platform in tuple(Platform)]
    if kind == "explicit" and not known:
        _require_whole(found[0])
        raise _of_no_platform(found[0].platform)
    _require_platforms(known, platforms, name)
    locks = tuple(lock._replace(exported_from=name) for lock in known if not platforms or lock.platform in platforms)
    for lock in locks:
        _require_whole(lock)
    left_out = (*_unknown(found), *_categories(known), *dict.fromkeys(it for lock in known for it in lock.left_out))
    if format_name in PYTHON_FORMATS:
        return _wheels_alone(locks, left_out, name, format_name)
    _require_digests(locks, name, format_name)
    texts = tuple((platform.value, text) for platform, text in write_conda_lock(locks, format_name))
    lost = (*left_out, *_lost(kind, locks, format_name))
    return Exported(texts, tuple(Note(NOT_EXPORTED, text) for text in lost))


def _unknown(found: Sequence[Lock]) -> Iterator[str]:
    others = [lock.platform for lock in found if lock.platform not in tuple(Platform)]
    if others:
        yield f"left out: platform {' and '.join(map(shown, others))}"


def _categories(locks: Sequence[Lock]) -> Iterator[str]:
    others = sorted({name for lock in locks for name in lock.categories})
    if others:
        named = f"{'category' if len(others) == 1 else 'categories'} {' and '.join(map(shown, others))}"
        yield f"the packages of the {named} are merged with the others: no other format has categories"


def _of_no_platform(stated: str) -> NotWholeError:
    why = f"{shown(stated)} is not a platform that envsolve knows" if stated else "it names no platform"
    reason = f"its platform is unknown: {why} (add a comment: # platform: NAME)"
    return NotWholeError(reason)


def _require_closed(lock: Lock) -> None:
    """Raise NotWholeError if a version is open."""
    if lock.open:
        raise NotWholeError(lock.open[0].reason, lock.open[0].line)


def _require_whole(lock: Lock) -> None:
    """Raise NotWholeError if a version is open, or a wheel has no version or digest."""
    _require_closed(lock)
    unknown = next((pin for pin in lock.pins if not pin.version), None)
    if unknown is not None:
        raise NotWholeError(f"it has no version for {shown(unknown.name)}")
    bare = next((pin for pin in lock.pins if not strong_digests(pin)), None)
    if bare is not None:
        raise NotWholeError(f"it has no sha256 for {shown(f'{bare.name} {bare.version}')}")


def _require_platforms(found: Sequence[Lock], platforms: Sequence[Platform], name: str) -> None:
    """Raise UsageError if the file has no packages for one of ``platforms``."""
    there = [lock.platform for lock in found]
    missing = next((it for it in platforms if it not in there), None)
    if missing is not None or not found:
        named = " and ".join(there) or "no platform that envsolve knows"
        wanted = "" if missing is None else f", not for {missing}"
        raise UsageError(
            "lock-for-other-platform",
            f"{name} is for {named}{wanted}",
            hints=(Hint("omit --platform to export every platform in it"),),
        )


def _require_digests(locks: Sequence[Lock], name: str, format_name: str) -> None:
    """Raise UsageError if a digest is missing that the format needs."""
    for package in () if format_name == "environment" else (it for lock in locks for it in lock.conda):
        wanted = _missing_digest(package, format_name)
        if wanted is not None:
            raise UsageError(
                "lock-without-hashes",
                f"{name} has no {wanted} for {package.file_name}, which the format {format_name} needs",
                hints=(Hint("make the lock again from the request, to get it from the channel"),),
            )


def _missing_digest(package: CondaPackage, format_name: str) -> str | None:
    if package.md5 is not None:
        return None
    if format_name == CONDA_LOCK:
        return "md5"
    return "md5 and no sha256" if package.sha256 is None else None


def _lost(kind: str, locks: Sequence[Lock], format_name: str) -> Iterator[str]:
    """The contents that the other format cannot hold."""
    packages = [it for lock in locks for it in lock.conda]
    if kind == "explicit" and format_name == CONDA_LOCK:
        yield "an explicit file has no dependencies and one digest for each package, so neither has this conda-lock.yml"
    if format_name == "explicit" and any(it.md5 and it.sha256 for it in packages):
        yield "an explicit file has only the md5 digests"
    if format_name == "environment":
        yield "an environment.yml names exact builds, without URLs and digests of conda packages"


def _wheels_alone(locks: Sequence[Lock], left_out: Sequence[str], name: str, format_name: str) -> Exported:
    """The packages that pip installs, as a Python lock."""
    with_wheels = [_python_lock(lock) for lock in locks if lock.pins]
    if not with_wheels:
        raise UsageError(
            "nothing-to-export",
            f"{name} has only conda packages, which the format {format_name} cannot list",
            hints=(Hint("solve the request again for package indexes", f"envsolve ... --format {format_name}"),),
        )
    texts = tuple((it.platform, write_python_lock(it, format_name)) for it in with_wheels)
    note = (
        "only the wheels are exported, each by its URL: the conda packages that they need, including Python, "
        "are left out"
    )
    return Exported(texts, tuple(Note(NOT_EXPORTED, text) for text in (*left_out, note)))


def _python_lock(lock: Lock) -> Lock:
    """``lock`` without conda packages."""
    return lock._replace(
        pins=tuple(pin._replace(index_url=None) for pin in lock.pins),
        default_index=default_index().rstrip("/"),
        default_is_plain=True,
        conda=(),
        channels=(),
        virtual_packages=(),
        sources=(),
        environment="",
        variables=(),
        remarks=(),
    )
