"""What each format holds of a lock, and so what is lost where a lock is written as another.

What each holds is in :mod:`envsolve.model.lock_format`, and tests hold every format to it: what is written and read
again is ``lock.restricted_to(format)``, whichever format the lock was read from before.

An environment.yml and a pixi.toml of a stack hold no packages. They say what the stack requires, in versions and
ranges, and a solver decides the rest: what they pin is read back, and all else is open. An answer in JSON is a report
of a solution; it is read as a lock, and no lock is written as one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from envsolve.boundary.display import one_line
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, Refused, UsageError
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
from envsolve.model.lock_format import FORMATS, Content
from envsolve.model.package import PackageFile, Pin
from envsolve.model.reference import EDITABLE, AddressKind, as_typed, file_name_in, kind_of, named


def restricted(lock: Lock, format_name: str) -> Lock:
    """What a file in this format says of ``lock``."""
    holds = FORMATS[format_name].holds
    if Content.CONDA in holds:
        from envsolve.lockfile.conda_restriction import of_conda

        found = of_conda(lock, format_name, holds)
    else:
        found = _of_python(lock, holds)
    made = found.made
    if made is None or Content.RECORD not in holds or lock.asks_alone:
        return found
    return found._replace(made=made._replace(packages_digest=found.packages_digest))


def require_sources(urls: Mapping[str, str], format_name: str, *, beside_conda: bool = False) -> None:
    """Raise UsageError where one of ``urls``, by package, is a repository or a folder, which the format cannot have.

    ``beside_conda``: the request has conda packages too, which the formats for such packages cannot have.
    """
    if Content.SOURCES in FORMATS[format_name].holds:
        return
    formats = " or ".join(f"--format {it.name}" for it in FORMATS.values() if Content.SOURCES in it.holds)
    way = f"move the requirements of pip to a requirements file, and lock that with {formats}"
    refused = {name: kind for name, url in urls.items() if (kind := kind_of(url)) is not AddressKind.FILE}
    if refused:
        listed = ", ".join(f"{name}, which is from a {kind.value}" for name, kind in refused.items())
        raise UsageError(
            "direct-reference-not-supported",
            f"the format {format_name!r} does not support {listed}",
            tuple(as_typed(without_secrets(named(urls[name])).removesuffix(EDITABLE)) for name in refused),
            (Hint(way if beside_conda else f"use {formats}"),),
            refused=tuple(
                Refused(name, "", f"is from a {kind.value}, which the format {format_name!r} does not support")
                for name, kind in refused.items()
            ),
        )


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
