"""What each format of a lock holds, and so what is lost where a lock is written as another.

The table in docs/exporting.md is made from it, and a test holds every format to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum

from envsolve.boundary.display import one_line
from envsolve.lockfile.lock import (
    Lock,
    bare_files,
    file_name_in,
    is_specifier,
    moment,
    sorted_pins,
    strong_digests,
    version_in,
)
from envsolve.lockfile.sound_pins import STRONG, sound_url
from envsolve.model.package import PackageFile, Pin


class Content(StrEnum):
    """What some formats hold and others do not, in words for the documentation."""

    CONDA = "packages of conda"
    DIGESTS = "both digests of a conda package"
    ADDRESSES = "the names and addresses of files"
    UPLOADS = "the sizes and upload times of files"
    ALL_FILES = "more than one file of a wheel's version, and digests other than sha256"
    REQUIREMENTS = "what a package requires"
    REASONS = "what requires a package, why it has its version, and where it is installed if not everywhere"
    PYTHONS = "which versions of Python a package is for"
    DEFAULT_INDEX = "which index is asked where a package names none, and in which order the others are"


_BY_PIP = frozenset({Content.ALL_FILES, Content.REASONS, Content.DEFAULT_INDEX})
HOLDS: Mapping[str, frozenset[Content]] = {
    "requirements": _BY_PIP,
    "dockerfile": _BY_PIP,
    "pylock": frozenset(Content) - {Content.CONDA, Content.DIGESTS, Content.DEFAULT_INDEX},
    "conda-lock": frozenset({Content.CONDA, Content.DIGESTS, Content.ADDRESSES, Content.REQUIREMENTS}),
    "explicit": frozenset({Content.CONDA, Content.ADDRESSES}),
    "environment": frozenset({Content.CONDA, Content.ALL_FILES, Content.DEFAULT_INDEX}),
}
"""What the formats hold beside names, versions, builds, a digest, what was asked for and what the lock rests on.

``environment`` is an environment.yml of single builds.
"""


def restricted(lock: Lock, format_name: str) -> Lock:
    """What a file in one of the formats of ``HOLDS`` says of ``lock``."""
    holds = HOLDS[format_name]
    if Content.CONDA in holds:
        from envsolve.lockfile.conda_restriction import of_conda

        found = of_conda(lock, format_name, holds)
    else:
        found = _of_python(lock, holds)
    made = found.made
    return found if made is None else found._replace(made=made._replace(packages_digest=found.packages_digest))


def _of_python(lock: Lock, holds: Collection[Content]) -> Lock:
    plain = Content.DEFAULT_INDEX in holds and lock.default_is_plain
    pins = (restricted_pin(pin, holds, lock.default_index if plain else None) for pin in sorted_pins(lock.pins))
    lock = lock._replace(pins=tuple(pins), conda=(), channels=(), asked=(), sources=(), environment="", remarks=())
    if Content.DEFAULT_INDEX not in holds:
        return lock._replace(default_index="", default_is_plain=True, indexes=())
    lock = lock._replace(default_index="" if plain else lock.default_index)
    return lock if Content.PYTHONS in holds else lock._replace(requires_python="")


def restricted_pin(pin: Pin, holds: Collection[Content], unsaid_index: str | None) -> Pin:
    """What is left of ``pin``; an index that is ``unsaid_index`` is not named."""
    keeps_pythons, keeps_reasons = Content.PYTHONS in holds, Content.REASONS in holds
    pin = pin._replace(
        via=tuple(sorted({one_line(it) for it in pin.via})) if keeps_reasons else (),
        because=tuple(map(one_line, pin.because)) if keeps_reasons else (),
        requires=tuple(sorted(pin.requires)) if Content.REQUIREMENTS in holds else (),
        requires_python=pin.requires_python if keeps_pythons and is_specifier(pin.requires_python or "") else None,
        unknown_extras=(),
        marker=pin.marker if keeps_reasons else "",
    )
    if pin.index_url is None:
        return _direct(pin, holds)
    files = tuple(_files(pin)) if Content.ADDRESSES in holds else bare_files(strong_digests(pin))
    return pin._replace(files=files, index_url="" if pin.index_url in ("", unsaid_index) else sound_url(pin.index_url))


def _direct(pin: Pin, holds: Collection[Content]) -> Pin:
    """A package that is given by its address, which every format holds; the version of a wheel's not every one."""
    url = sound_url(pin.files[0].url)
    file = _file(pin.files[0])._replace(name=file_name_in(url))
    if Content.ADDRESSES in holds:
        return pin._replace(files=(file,), version=pin.version if file.is_wheel else version_in(pin.name, url))
    bare = file._replace(size=None, upload_time=None)
    return pin._replace(files=(bare,), version=version_in(pin.name, url))


def _files(pin: Pin) -> Iterator[PackageFile]:
    """Wheels, then the one source distribution that a pylock.toml has room for."""
    sdists = [file for file in pin.files if not file.is_wheel]
    yield from map(_file, (*(it for it in pin.files if it.is_wheel), *sdists[:1]))


def _file(file: PackageFile) -> PackageFile:
    uploaded = None if file.upload_time is None else moment(file.upload_time)
    hashes = tuple(sorted((kind, digest) for kind, digest in file.hashes if kind in STRONG))
    return PackageFile(file.name, sound_url(file.url), hashes, file.size, uploaded)
