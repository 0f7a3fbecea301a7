"""What each format holds of a lock, and so what is lost where a lock is written as another.

The table in docs/exporting.md is made from it, and tests hold every format to it: what is written and read again is
``lock.restricted_to(format)``, whichever format the lock was read from before.

An environment.yml and a pixi.toml of a stack hold no packages. They say what the stack requires, in versions and
ranges, and a solver decides the rest: what they pin is read back, and all else is open. An answer in JSON is a report
of a solution; it is read as a lock, and no lock is written as one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from itertools import chain

from envsolve.boundary.display import one_line
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, Refused, UsageError
from envsolve.lockfile.formats import IMAGE_FORMATS
from envsolve.lockfile.lock import (
    Lock,
    address_in,
    bare_files,
    is_specifier,
    moment,
    requires_python_of,
    sorted_pins,
    strong_digests,
    version_in,
)
from envsolve.lockfile.sound_pins import STRONG, sound_address, sound_url
from envsolve.model.host import Platform
from envsolve.model.package import PackageFile, Pin
from envsolve.model.reference import EDITABLE, AddressKind, file_name_in, kind_of, named


class Content(StrEnum):
    """What some formats hold and others do not, in words for the documentation."""

    CONDA = "packages of conda"
    DIGESTS = "both digests of a conda package"
    PROOFS = "a digest of each wheel"
    ADDRESSES = "the names and addresses of files"
    UPLOADS = "the sizes and upload times of files"
    ALL_FILES = "more than one file of a wheel's version"
    REQUIREMENTS = "what a package requires"
    REASONS = "what requires a package, and why it has its version"
    MARKERS = "where a package is installed, if not everywhere"
    CATEGORIES = "for whom a package is there, if not for everybody"
    PYTHONS = "which versions of Python a package is for"
    DEFAULT_INDEX = "the default index, and the order of the others"
    SOURCES = "repositories and folders"
    RECORD = "the table of facts that envsolve records"


_BY_PIP = frozenset(
    {
        *(Content.PROOFS, Content.ALL_FILES, Content.REASONS, Content.MARKERS, Content.DEFAULT_INDEX, Content.RECORD),
    }
)
_BY_CONDA = frozenset({Content.CONDA, Content.PROOFS, Content.ADDRESSES, Content.RECORD})
_BY_A_TOOL = frozenset({Content.PROOFS, Content.ALL_FILES, Content.REQUIREMENTS, Content.MARKERS})
HOLDS: Mapping[str, frozenset[Content]] = {
    "requirements": _BY_PIP | {Content.SOURCES},
    **dict.fromkeys(IMAGE_FORMATS, _BY_PIP),
    "pylock": frozenset(Content) - {Content.CONDA, Content.DIGESTS, Content.CATEGORIES, Content.DEFAULT_INDEX},
    "conda-lock": _BY_CONDA | {Content.DIGESTS, Content.REQUIREMENTS, Content.CATEGORIES},
    "explicit": _BY_CONDA,
    "environment": frozenset(
        {Content.CONDA, Content.PROOFS, Content.ALL_FILES, Content.DEFAULT_INDEX, Content.RECORD},
    ),
    "pixi": frozenset({Content.CONDA}),
}
"""What the formats hold that a lock is written as, beside names, versions, builds and what the lock is for.

``environment`` is an environment.yml of single builds.
"""
HOLDS_WHEN_READ: Mapping[str, frozenset[Content]] = {
    "json": frozenset({Content.CONDA}),
    "pixi.lock": _BY_CONDA - {Content.RECORD} | {Content.DIGESTS, Content.REQUIREMENTS, Content.DEFAULT_INDEX},
    "uv.lock": _BY_A_TOOL | {Content.ADDRESSES, Content.UPLOADS, Content.PYTHONS},
    "poetry.lock": _BY_A_TOOL | {Content.PYTHONS},
    "pdm.lock": _BY_A_TOOL | {Content.ADDRESSES, Content.PYTHONS},
}
"""The same of formats that are read alone."""
_IMAGES = (Platform.LINUX_64, Platform.LINUX_AARCH64)


def restricted(lock: Lock, format_name: str) -> Lock:
    """What a file in one of the formats of ``HOLDS`` says of ``lock``."""
    holds = HOLDS[format_name]
    if Content.CONDA in holds:
        from envsolve.lockfile.conda_restriction import of_conda

        found = of_conda(lock, format_name, holds)
    else:
        found = _of_python(lock, holds)
    made = found.made
    if made is None or Content.RECORD not in holds or (format_name == "environment" and lock.asks_alone):
        return found
    return found._replace(made=made._replace(packages_digest=found.packages_digest))


def lacking(lock: Lock, format_name: str) -> str | None:
    """What of a lock with packages a file in one of the formats of ``HOLDS`` needs and ``lock`` has not, in words.

    None where it can be written.
    """
    holds = HOLDS[format_name]
    if Content.CONDA in holds and lock.platform not in tuple(Platform):
        return "platform"
    if format_name in IMAGE_FORMATS and (lock.interpreter is None or lock.platform not in _IMAGES):
        return "Python for Linux"
    if Content.PROOFS not in holds or (format_name == "environment" and lock.asks_alone):
        return None
    found = chain(_lacking_of_conda(lock, format_name, holds), _lacking_of_wheels(lock, format_name, holds))
    return next(found, None)


def require_sources(urls: Mapping[str, str], format_name: str, *, beside_conda: bool = False) -> None:
    """Raise UsageError where one of ``urls``, by package, is a repository or a folder, which the format cannot have.

    ``beside_conda``: the request has conda packages too, which the formats for such packages cannot have.
    """
    if Content.SOURCES in HOLDS[format_name]:
        return
    formats = " or ".join(f"--format {it}" for it in HOLDS if Content.SOURCES in HOLDS[it])
    way = f"move the requirements of pip to a requirements file, and lock that with {formats}"
    refused = {name: kind for name, url in urls.items() if (kind := kind_of(url)) is not AddressKind.FILE}
    if refused:
        listed = ", ".join(f"{name}, which is from a {kind.value}" for name, kind in refused.items())
        raise UsageError(
            "direct-reference-not-supported",
            f"the format {format_name!r} does not support {listed}",
            tuple(without_secrets(named(urls[name])).removesuffix(EDITABLE) for name in refused),
            (Hint(way if beside_conda else f"use {formats}"),),
            refused=tuple(
                Refused(name, "", f"is from a {kind.value}, which the format {format_name!r} does not support")
                for name, kind in refused.items()
            ),
        )


def _lacking_of_conda(lock: Lock, format_name: str, holds: Collection[Content]) -> Iterator[str]:
    for package in lock.conda if Content.CONDA in holds else ():
        if set("*^") & set(package.build):
            yield f"single build of {package.name}"
        if Content.ADDRESSES not in holds:
            continue
        if not package.url:
            yield f"address of {package.name}"
        elif package.md5 is None and (package.sha256 is None or format_name == "conda-lock"):
            yield f"{'md5' if format_name == 'conda-lock' else 'md5 and no sha256'} of {package.file_name}"


def _lacking_of_wheels(lock: Lock, format_name: str, holds: Collection[Content]) -> Iterator[str]:
    for pin in lock.pins:
        if not all(file.is_archive for file in pin.files):
            if Content.SOURCES not in holds:
                yield f"wheel or archive of {pin.name}"
            continue
        files = pin.files if Content.ALL_FILES in holds else pin.files[:1]
        digests = strong_digests(pin._replace(files=files))
        if not digests or (format_name == "conda-lock" and not any(it.startswith("sha256:") for it in digests)):
            yield f"sha256 of {pin.name}"
        if Content.ADDRESSES in holds and not all(it.url for it in files):
            yield f"address of {pin.name}"
        elif format_name == "conda-lock" and "#subdirectory=" in files[0].url:
            yield f"whole archive of {pin.name}"
        if not pin.version and (pin.index_url is not None or format_name == "conda-lock"):
            yield f"version of {pin.name}"


def _of_python(lock: Lock, holds: Collection[Content]) -> Lock:
    unsaid_index = lock.default_index if Content.DEFAULT_INDEX in holds else None
    pins = (restricted_pin(pin, holds, unsaid_index) for pin in sorted_pins(lock.pins))
    lock = lock._replace(
        pins=tuple(pins), conda=(), channels=(), asked=(), sources=(), environment="", remarks=(), left_out=()
    )
    if lock.made is None:
        pythons = lock.requires_python or requires_python_of(lock.python)
        lock = lock._replace(platform="", python="", glibc=None, stack=None, variables=(), virtual_packages=())
        lock = lock._replace(requires_python=pythons)
    if Content.DEFAULT_INDEX not in holds:
        return lock._replace(default_index="", default_is_plain=True, indexes=(), find_links=())
    lock = lock._replace(default_index="" if lock.default_is_plain else lock.default_index)
    if lock.made is not None or not lock.indexes:  # else what says nothing may be from any of several indexes
        said = (pin._replace(index_url=lock.default_index) if pin.index_url == "" else pin for pin in lock.pins)
        lock = lock._replace(pins=tuple(said))
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
        marker=pin.marker if Content.MARKERS in holds else "",
        categories=(),
    )
    if pin.index_url is None:
        return _direct(pin, holds)
    files = tuple(_files(pin)) if Content.ADDRESSES in holds else bare_files(strong_digests(pin))
    return pin._replace(files=files, index_url="" if pin.index_url in ("", unsaid_index) else sound_url(pin.index_url))


def _direct(pin: Pin, holds: Collection[Content]) -> Pin:
    """A package that is given by its address, which every format holds; the version of a wheel's not every one."""
    url = sound_address(pin.files[0].url)
    file = _file(pin.files[0])._replace(name=file_name_in(url))
    if not file.is_archive:
        keeps_version = Content.ADDRESSES in holds and kind_of(url) is AddressKind.REPOSITORY
        return pin._replace(files=(file,), version=pin.version if keeps_version else "")
    if Content.ADDRESSES in holds:
        file = file._replace(url=address_in(url))
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
    return PackageFile(file.name, sound_address(file.url), hashes, file.size, uploaded)
