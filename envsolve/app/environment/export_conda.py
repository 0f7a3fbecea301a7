"""A lock of conda packages becomes another: the same packages, as far as the other format can say what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from envsolve.boundary.files import FileError
from envsolve.errors import Hint, UsageError
from envsolve.index.settings import default_index
from envsolve.lockfile.formats import write_conda_lock, write_python_lock
from envsolve.lockfile.lock import Lock, Open, strong_digests
from envsolve.lockfile.text_file import shown
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.lock_format import PYTHON_FORMATS
from envsolve.model.note import Note

CONDA_LOCK = "conda-lock"
NOT_EXPORTED = "not-exported"
"""The code of notes on what of a lock another format does not hold."""


class NotWholeError(FileError):
    """A lock lacks what every other format needs, or has what none of them can hold."""


class Exported(NamedTuple):
    """The texts, each with the platform it is for, and what of the file that was read is not in them."""

    texts: tuple[tuple[str, str], ...]
    notes: tuple[Note, ...] = ()


def export_conda(
    kind: str, found: Sequence[Lock], name: str, format_name: str, *, platforms: Sequence[Platform] = ()
) -> Exported:
    """The locks ``found`` in a file called ``name`` of the format ``kind``, in another format.

    Raises NotWholeError where something in it has no address that a lock could name, UsageError for what the format
    cannot hold.
    """
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


def require_whole(left_open: Sequence[Open]) -> None:
    """Raise NotWholeError where something is left open."""
    if left_open:
        raise NotWholeError(left_open[0].reason, left_open[0].line)


def _require_whole(lock: Lock) -> None:
    """Raise NotWholeError where something is left open, or a wheel has no version or no digest."""
    require_whole(lock.open)
    unknown = next((pin for pin in lock.pins if not pin.version), None)
    if unknown is not None:
        raise NotWholeError(f"it has no version for {shown(unknown.name)}")
    bare = next((pin for pin in lock.pins if not strong_digests(pin)), None)
    if bare is not None:
        raise NotWholeError(f"it has no sha256 for {shown(f'{bare.name} {bare.version}')}")


def _require_platforms(found: Sequence[Lock], platforms: Sequence[Platform], name: str) -> None:
    """Raise UsageError where the file has nothing for one of ``platforms``."""
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
    """Raise UsageError where a digest is missing that the format cannot do without."""
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
    """What the formats do not share."""
    packages = [it for lock in locks for it in lock.conda]
    if kind == "explicit" and format_name == CONDA_LOCK:
        yield "an explicit file has no dependencies and one digest for each package, so neither has this conda-lock.yml"
    if format_name == "explicit" and any(it.md5 and it.sha256 for it in packages):
        yield "an explicit file has only the md5 digests"
    if format_name == "environment":
        yield "an environment.yml names exact builds, without URLs and digests of conda packages"


def _wheels_alone(locks: Sequence[Lock], left_out: Sequence[str], name: str, format_name: str) -> Exported:
    """The part that pip installs, as a Python lock."""
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
    """``lock`` without what is conda's."""
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
