"""The wheels of an environment as in a lock: the installed versions, with their files on an index.

An installed distribution does not say which file it came from. It has a version and, if it was not installed from an
index by name, an origin: direct_url.json (https://packaging.python.org/specifications/direct-url-data-structure).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from envsolve.app.environment.exact_files import ExactFiles
from envsolve.app.environment.installed_conda import Missing
from envsolve.boundary.files import FileError
from envsolve.boundary.reading import bytes_of, is_file
from envsolve.boundary.secrets import without_secrets
from envsolve.model.need import Markers
from envsolve.model.package import PackageFile, Pin
from envsolve.resolve.closure.releases import Unfit
from envsolve.validation.metadata import DIRECT_URL, Package, applies, direct_url, required_extras

if TYPE_CHECKING:
    from packaging.direct_url import DirectUrl

_LONGEST_METADATA = 16 * 1024 * 1024
TOOLS = ("pip", "setuptools", "wheel", "distribute")
"""Packages that a new environment has; pip freeze leaves them out, too."""
_STRONG = ("sha256", "sha384", "sha512")


class Origin(NamedTuple):
    """The source of an installed wheel: an address with digests or, if both are empty, an index.

    ``is_local`` means that the address is on this machine. A local file, or one without digests, must be known to an
    index. ``reason`` says why no lock can contain it.
    """

    url: str = ""
    hashes: tuple[tuple[str, str], ...] = ()
    is_local: bool = False
    reason: str = ""


class InstalledWheels(NamedTuple):
    """The pins by name, the requested ones by name, and those that a lock cannot contain."""

    pins: tuple[Pin, ...]
    requested: tuple[str, ...]
    missing: tuple[Missing, ...]


def captured(packages: Iterable[Package], markers: Markers) -> tuple[tuple[Package, ...], dict[str, set[str]]]:
    """The packages for a lock, and by name the installed packages that each requires.

    pip, setuptools and wheel are left out if nothing requires them.
    """
    every = sorted(packages, key=lambda it: it.name)
    requires = _requires(every, markers)
    needed = {name for package in every for name in requires[package.name] if package.name not in TOOLS}
    packages_of_lock = tuple(it for it in every if it.name not in TOOLS or it.name in needed)
    return packages_of_lock, requires


def named(packages: Iterable[Package]) -> dict[str, str]:
    """The versions to query an index for, by name."""
    return {it.name: it.version for it in packages if not origin_of(it).reason}


def wheels_of(packages: Sequence[Package], requires: Mapping[str, set[str]], files: ExactFiles) -> InstalledWheels:
    """The pins of ``packages``, with their files on the indexes. Raises OutsideError if one fails."""
    names = {it.name for it in packages}
    via: dict[str, list[str]] = {}
    for package in packages:
        for name in sorted(requires[package.name] & names):
            via.setdefault(name, []).append(package.name)
    pins, missing = [], []
    for package in packages:
        found = _pin(package, files)
        if isinstance(found, Missing):
            missing.append(found)
        else:
            needs = tuple(sorted(requires[package.name] & names))
            pins.append(found._replace(via=tuple(via.get(package.name, ())), requires=needs))
    requested = tuple(f"{it.name}=={it.version}" for it in packages if is_file(it.folder / "REQUESTED"))
    return InstalledWheels(tuple(pins), requested, tuple(missing))


def origin_of(package: Package) -> Origin:
    """The source of ``package``, from its metadata."""
    if package.fault is not None:
        file, reason = package.fault
        return Origin(reason=f"{file} is malformed: {reason}")
    if not package.described:
        return Origin(reason=f"{package.folder} has no metadata with a name and a version")
    if not package.is_wheel:
        return Origin(reason="it was not installed as a wheel, so its origin is unknown")
    try:
        record = direct_url(package.folder)
    except FileError as error:
        return Origin(reason=f"{package.folder / DIRECT_URL} is malformed: {error.reason}")
    return Origin() if record is None else _of_direct_url(record)


def _of_direct_url(record: DirectUrl) -> Origin:
    url = without_secrets(record.url)
    if record.vcs_info is not None:
        return Origin(reason=f"it was installed from a repository ({url})")
    if record.dir_info is not None:
        return Origin(
            reason="it is an editable install" if record.dir_info.editable else "it was installed from a folder"
        )
    assert record.archive_info is not None  # exactly one of the three is there
    hashes = tuple(sorted(it for it in (record.archive_info.hashes or {}).items() if it[0] in _STRONG))
    is_local = not url.startswith(("http://", "https://"))
    if not hashes and is_local:
        return Origin(reason="it was installed from a file without a recorded digest")
    if not is_local and not url.partition("#")[0].endswith(".whl"):
        return Origin(reason=f"it was built from {url}")
    return Origin(url, hashes, is_local)


def _pin(package: Package, files: ExactFiles) -> Pin | Missing:
    origin = origin_of(package)
    label = Missing(package.name, package.version, origin.reason)
    if origin.reason:
        return label
    url = origin.url.partition("#")[0]
    if origin.hashes and not origin.is_local:
        file = PackageFile(url.partition("?")[0].rpartition("/")[2], url, origin.hashes)
        return Pin(package.name, package.version, (file,), None)
    listed = files.of(package.name, package.version)
    if listed is None:
        reason = _why_not(origin, None) if url else "no index has this version"
        return label._replace(reason=reason, unfit=None if url else Unfit.NO_FILE)
    chosen = tuple(it for it in listed.fitting if any(algorithm in _STRONG for algorithm, _ in it.hashes))
    if url:
        chosen = tuple(it for it in chosen if set(origin.hashes) & set(it.hashes) or it.url == url)
    if not chosen:
        return label._replace(reason=_why_not(origin, listed.unfit), unfit=None if url else listed.unfit)
    chosen = _described_alike(package, chosen)
    if not chosen:
        return label._replace(reason="the package on the index with this name and version has different metadata")
    return Pin(package.name, listed.version, chosen, listed.index_url, requires_python=chosen[0].requires_python)


def _described_alike(package: Package, files: Sequence[PackageFile]) -> tuple[PackageFile, ...]:
    """``files`` without those whose metadata differ from the installed one.

    Installers copy METADATA unchanged, and an index may publish its digest (PEP 658).
    """
    content = bytes_of(package.folder / "METADATA", _LONGEST_METADATA)
    digest = sha256(content or b"").hexdigest()
    digests = ((file, dict(file.metadata or ()).get("sha256")) for file in files)
    return tuple(file for file, known in digests if known is None or known == digest)


def _why_not(origin: Origin, unfit: Unfit | None) -> str:
    if origin.is_local:
        return "it was installed from a local file, and no index has a file with its digest"
    if origin.url:
        return f"it was installed from {origin.url} without a recorded digest, and no index has it"
    return "the index has no digests for its files" if unfit is None else unfit.value


def _requires(packages: Sequence[Package], markers: Markers) -> dict[str, set[str]]:
    """The other installed packages that each package requires, with the extras that these require."""
    extras = required_extras(packages, markers)
    return {
        it.name: {need.name for need in it.needs if need.name in extras and applies(need, extras[it.name], markers)}
        - {it.name}
        for it in packages
    }
