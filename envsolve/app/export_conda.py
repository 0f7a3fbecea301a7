"""A lock of conda packages becomes another: the same packages, as far as the other format can say what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from envsolve.errors import Hint, UsageError
from envsolve.index.settings import default_index
from envsolve.lockfile.conda_file import HeldFormat
from envsolve.lockfile.conda_lock import CondaLock, PlatformLock
from envsolve.lockfile.facts import with_facts
from envsolve.lockfile.formats import PYTHON_FORMATS, write_conda_lock, write_python_lock
from envsolve.lockfile.header import machines_in
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.whole_conda import Origin, Whole, whole_lock
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.note import Note

CONDA_LOCK = "conda-lock"
NOT_EXPORTED = "not-exported"
"""The code of notes on what of a lock another format does not hold."""


class Exported(NamedTuple):
    """The texts, each with the platform it is for, and what of the file that was read is not in them."""

    texts: tuple[tuple[str, str], ...]
    notes: tuple[Note, ...] = ()


def export_conda(
    kind: HeldFormat,
    text: str,
    origin: Origin,
    format_name: str,
    *,
    platforms: Sequence[Platform] = (),
    environment: str | None = None,
) -> Exported:
    """The lock in ``text`` in another format. Raises FileError, UsageError for what that format cannot hold."""
    whole = whole_lock(kind, text, origin, environment, platforms)
    _require_platforms(whole, platforms, origin)
    if format_name in PYTHON_FORMATS:
        return _wheels_alone(whole, origin, format_name)
    _require_digests(whole.lock, origin, format_name)
    texts = tuple((platform.value, text) for platform, text in write_conda_lock(whole.lock, format_name))
    lost = (*whole.notes, *_lost(kind, whole.lock, format_name))
    return Exported(texts, tuple(Note(NOT_EXPORTED, text) for text in lost))


def _require_platforms(whole: Whole, platforms: Sequence[Platform], origin: Origin) -> None:
    """Raise UsageError where the file has nothing for one of ``platforms``."""
    held = whole.platforms
    missing = next((it for it in platforms if it not in held), None)
    if missing is not None or not held:
        named = " and ".join(held) or "no platform that envsolve knows"
        wanted = "" if missing is None else f", and {missing} was asked for"
        raise UsageError(
            "lock-for-other-platform",
            f"{origin.name} is for {named}{wanted}",
            hints=(Hint("leave --platform out to take what is there"),),
        )


def _require_digests(lock: CondaLock, origin: Origin, format_name: str) -> None:
    """Raise UsageError where a digest is missing that the format cannot do without."""
    for part in lock.parts:
        for package in () if format_name == "environment" else part.conda:
            wanted = _missing_digest(package, format_name)
            if wanted is not None:
                raise UsageError(
                    "lock-without-hashes",
                    f"{origin.name} has no {wanted} of {package.file_name}, which the format {format_name} needs",
                    hints=(Hint("make the lock anew from the request, which asks the channel for it"),),
                )


def _missing_digest(package: CondaPackage, format_name: str) -> str | None:
    if package.md5 is not None:
        return None
    if format_name == CONDA_LOCK:
        return "md5"
    return "md5 and no sha256" if package.sha256 is None else None


def _lost(kind: HeldFormat, lock: CondaLock, format_name: str) -> Iterator[str]:
    """What the formats do not share."""
    packages = [it for part in lock.parts for it in part.conda]
    if kind is HeldFormat.EXPLICIT and format_name == CONDA_LOCK:
        yield (
            "an explicit file does not say what its packages depend on: conda-lock.yml lists them without "
            "dependencies, and each with the one digest that was there"
        )
    if format_name == "explicit" and any(it.md5 and it.sha256 for it in packages):
        yield "of the digests an explicit file holds the md5 alone"
    if format_name == "environment":
        yield "an environment.yml names single builds, without addresses and digests of conda packages"


def _wheels_alone(whole: Whole, origin: Origin, format_name: str) -> Exported:
    """The part that pip installs, as a Python lock."""
    parts = [part for part in whole.lock.parts if part.pip]
    if not parts:
        raise UsageError(
            "nothing-to-export",
            f"{origin.name} holds conda packages alone, and {format_name} has no words for them",
            hints=(Hint("solve the request anew for package indexes", f"envsolve ... --format {format_name}"),),
        )
    locks = (_python_lock(whole.lock, it, origin) for it in parts)
    texts = tuple((it.platform, write_python_lock(it, format_name)) for it in locks)
    note = (
        "these are the wheels alone, each by its address: the conda packages that they are installed beside, Python "
        "among them, are left out"
    )
    return Exported(texts, tuple(Note(NOT_EXPORTED, text) for text in (*whole.notes, note)))


def _python_lock(lock: CondaLock, part: PlatformLock, origin: Origin) -> Lock:
    assert lock.recorded is not None
    assert part.recorded is not None
    pins = tuple(sorted((it._replace(index_url=None) for it in part.pip), key=lambda it: it.name))
    facts = {**lock.recorded.facts, **part.recorded.facts} if lock.recorded.facts else None
    bare = Lock(pins, part.platform, default_index=default_index().rstrip("/"), exported_from=origin.name)
    told = with_facts(bare, facts, machines=machines_in("\n".join(part.recorded.made_for)))
    return told._replace(platform=part.platform, python=part.python)
