"""A lock of conda packages becomes another: the same packages, as far as the other format can say what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from packaging.version import Version

from envsolve.errors import Hint, UsageError
from envsolve.index.fitting import Interpreter, platform_tags
from envsolve.index.settings import default_index
from envsolve.lockfile.conda_file import HeldFormat
from envsolve.lockfile.conda_lock import CondaLock, PlatformLock
from envsolve.lockfile.formats import PYTHON_FORMATS, write_conda_lock, write_python_lock
from envsolve.lockfile.python_lock import PythonLock
from envsolve.lockfile.recorded import RecordedLock
from envsolve.lockfile.toml import Value
from envsolve.lockfile.whole_conda import Origin, Whole, whole_lock
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.package import Closure, Target
from envsolve.model.versions import LibcVersion

CONDA_LOCK = "conda-lock"
_NOT_SAID = ("virtual_packages", "variables")
"""Facts that have no place in a Python lock."""


class Exported(NamedTuple):
    """The texts, each with the platform it is for, and what of the file that was read is not in them."""

    texts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()


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
    return Exported(texts, (*whole.notes, *_lost(kind, whole.lock, format_name)))


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
    texts = tuple((it.platform.value, write_python_lock(_python_lock(whole.lock, it), format_name)) for it in parts)
    note = (
        "these are the wheels alone, each by its address: the conda packages that they are installed beside, Python "
        "among them, are left out"
    )
    return Exported(texts, (*whole.notes, note))


def _python_lock(lock: CondaLock, part: PlatformLock) -> PythonLock:
    assert lock.recorded is not None
    assert part.recorded is not None
    facts: dict[str, Value] = {**lock.recorded.facts, "platform": part.platform.value, **part.recorded.facts}
    told = {key: fact for key, fact in facts.items() if key not in _NOT_SAID} if lock.recorded.facts else {}
    pins = tuple(sorted((it._replace(index_url=None) for it in part.pip), key=lambda it: it.name))
    return PythonLock(
        closure=Closure(pins, _target(part), default_index().rstrip("/")),
        answer=None,
        command=lock.command,
        envsolve_version=lock.envsolve_version,
        matrix_date=None,
        request=(),
        recorded=RecordedLock((*lock.recorded.made, *part.recorded.made_for), told),
    )


def _target(part: PlatformLock) -> Target:
    if not part.python:
        return Target("", part.platform, (), ())
    major, minor, patch = (*Version(part.python).release, 0, 0)[:3]
    assert part.recorded is not None
    glibc = part.recorded.facts.get("glibc")
    interpreter = Interpreter(
        (major, minor, patch), part.platform, LibcVersion.parse(glibc) if isinstance(glibc, str) else None
    )
    markers = tuple(sorted(interpreter.marker_values().items()))
    return Target(interpreter.full_version, part.platform, tuple(platform_tags(interpreter)), markers)
