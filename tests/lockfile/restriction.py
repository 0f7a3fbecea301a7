"""What each format can express of a lock: tests compare the writer and the reader of the format with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum

from envsolve.boundary.display import one_line
from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.checked_packages import checked_packages
from envsolve.lockfile.checked_pins import STRONG, checked_address, checked_url, strong_hashes
from envsolve.lockfile.conda_dependencies import Node, categories, dependencies
from envsolve.lockfile.conda_header import stack_name
from envsolve.lockfile.conda_locks import channels_of, named_channel
from envsolve.lockfile.environment_yml import channel_named, indexes_of
from envsolve.lockfile.lock import (
    MAIN,
    Lock,
    bare_files,
    is_specifier,
    moment,
    requires_python_of,
    sorted_pins,
    strong_digests,
    version_in,
)
from envsolve.lockfile.package_address import package_of
from envsolve.model.conda import CondaPackage
from envsolve.model.package import PackageFile, Pin
from envsolve.model.reference import AddressKind, file_name_in, kind_of


class Content(StrEnum):
    """What some formats can express and others cannot, in words for the documentation."""

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
    (Content.PROOFS, Content.ALL_FILES, Content.REASONS, Content.MARKERS, Content.DEFAULT_INDEX, Content.RECORD)
)
_BY_CONDA = frozenset({Content.CONDA, Content.PROOFS, Content.ADDRESSES, Content.RECORD})
_BY_A_TOOL = frozenset({Content.PROOFS, Content.ALL_FILES, Content.REQUIREMENTS, Content.MARKERS})
HOLDS: Mapping[str, frozenset[Content]] = {
    "environment": frozenset((Content.CONDA, Content.PROOFS, Content.ALL_FILES, Content.DEFAULT_INDEX, Content.RECORD)),
    "json": frozenset({Content.CONDA}),
    "pixi": frozenset({Content.CONDA}),
    "requirements": _BY_PIP | {Content.SOURCES},
    "pylock": frozenset(Content) - {Content.CONDA, Content.DIGESTS, Content.CATEGORIES, Content.DEFAULT_INDEX},
    "dockerfile": _BY_PIP,
    "apptainer": _BY_PIP,
    "conda-lock": _BY_CONDA | {Content.DIGESTS, Content.REQUIREMENTS, Content.CATEGORIES},
    "explicit": _BY_CONDA,
    "pixi.lock": _BY_CONDA - {Content.RECORD} | {Content.DIGESTS, Content.REQUIREMENTS, Content.DEFAULT_INDEX},
    "uv.lock": _BY_A_TOOL | {Content.ADDRESSES, Content.UPLOADS, Content.PYTHONS},
    "poetry.lock": _BY_A_TOOL | {Content.PYTHONS},
    "pdm.lock": _BY_A_TOOL | {Content.ADDRESSES, Content.PYTHONS},
}
"""What each format holds of a lock (an environment.yml: with ``--exact``), beside names, versions, builds and what the
lock is for."""


def is_restricted(lock: Lock, format_name: str) -> bool:
    """Whether :func:`restricted` returns what a file in this format contains of ``lock``.

    Of a pixi.toml and an environment.yml of a stack a solver decides what they install: its readers are tested by
    themselves.
    """
    return format_name != "pixi" and not (format_name == "environment" and lock.is_unresolved)


def restricted(lock: Lock, format_name: str) -> Lock:
    """What a file in this format contains of ``lock``."""
    holds = HOLDS[format_name]
    found = _of_conda(lock, format_name, holds) if Content.CONDA in holds else _of_python(lock, holds)
    made = found.made
    if made is None or Content.RECORD not in holds or lock.is_unresolved:
        return found
    return found._replace(made=made._replace(packages_digest=found.packages_digest))


def _address(url: str) -> str:
    """``url`` without its fragment, except for the subdirectory of an archive that is built."""
    address, _, fragment = url.partition("#")
    return address + next((f"#{part}" for part in fragment.split("&") if part.startswith("subdirectory=")), "")


def _of_python(lock: Lock, holds: Collection[Content]) -> Lock:
    unsaid_index = lock.default_index if Content.DEFAULT_INDEX in holds else None
    pins = (_restricted_pin(pin, holds, unsaid_index) for pin in sorted_pins(lock.pins))
    lock = lock._replace(
        pins=tuple(pins), conda=(), channels=(), requested=(), sources=(), environment="", remarks=(), left_out=()
    )
    if lock.made is None:
        pythons = lock.requires_python or requires_python_of(lock.python)
        lock = lock._replace(platform="", python="", glibc=None, stack=None, variables=(), virtual_packages=())
        lock = lock._replace(requires_python=pythons)
    if Content.DEFAULT_INDEX not in holds:
        return lock._replace(default_index="", default_is_plain=True, indexes=(), find_links=())
    lock = lock._replace(default_index="" if lock.default_is_plain else lock.default_index)
    if lock.made is not None or not lock.indexes:  # else what says nothing may be from any of several indexes
        with_index = (pin._replace(index_url=lock.default_index) if pin.index_url == "" else pin for pin in lock.pins)
        lock = lock._replace(pins=tuple(with_index))
    return lock if Content.PYTHONS in holds else lock._replace(requires_python="")


def _restricted_pin(pin: Pin, holds: Collection[Content], unsaid_index: str | None) -> Pin:
    """The parts of ``pin`` that the format holds; an index that is ``unsaid_index`` is not named."""
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
    return pin._replace(
        files=files, index_url="" if pin.index_url in ("", unsaid_index) else checked_url(pin.index_url)
    )


def _direct(pin: Pin, holds: Collection[Content]) -> Pin:
    """A package given by its URL, which every format holds; the version of a wheel's not every one."""
    url = checked_address(pin.files[0].url)
    file = _file(pin.files[0])._replace(name=file_name_in(url))
    if not file.is_archive:
        keeps_version = Content.ADDRESSES in holds and kind_of(url) is AddressKind.REPOSITORY
        return pin._replace(files=(file,), version=pin.version if keeps_version else "")
    if Content.ADDRESSES in holds:
        file = file._replace(url=_address(url))
        return pin._replace(files=(file,), version=pin.version if file.is_wheel else version_in(pin.name, url))
    bare = file._replace(size=None, upload_time=None)
    return pin._replace(files=(bare,), version=version_in(pin.name, url))


def _files(pin: Pin) -> Iterator[PackageFile]:
    """Wheels, then the one source distribution that a pylock.toml can have."""
    sdists = [file for file in pin.files if not file.is_wheel]
    yield from map(_file, (*(it for it in pin.files if it.is_wheel), *sdists[:1]))


def _file(file: PackageFile) -> PackageFile:
    uploaded = None if file.upload_time is None else moment(file.upload_time)
    hashes = tuple(sorted((kind, digest) for kind, digest in file.hashes if kind in STRONG))
    return PackageFile(file.name, checked_address(file.url), hashes, file.size, uploaded)


def _of_conda(lock: Lock, format_name: str, holds: Collection[Content]) -> Lock:
    """A foreign file that was not exported has only its packages."""
    made = lock.made
    is_known = made is not None or lock.exported_from is not None
    conda = tuple(sorted(lock.conda, key=lambda it: it.name))
    limited = Lock(
        (),
        lock.platform,
        next((it.version for it in conda if it.name == "python"), ""),
        made=made,
        exported_from=lock.exported_from,
        virtual_packages=lock.virtual_packages if made is not None else (),
        variables=lock.variables if is_known or format_name == "environment" else (),
        remarks=lock.remarks if is_known else (),
        environment=lock.environment if is_known or format_name == "environment" else "",
    )
    if made is not None:
        glibc = {it.name: it.version for it in lock.virtual_packages}.get("__glibc")
        limited = limited._replace(stack=lock.stack, glibc=glibc)
    if format_name == "environment":
        return _of_environment(lock, limited, conda, holds)
    limited = limited._replace(environment=stack_name(limited.stack) or limited.environment)
    of_whom = categories(lock) if Content.CATEGORIES in holds else {}

    def others(manager: str, name: str) -> tuple[str, ...]:
        found = of_whom.get(Node(manager, name), ())
        return () if MAIN in found else found

    pins = (_at_address(pin, holds) for pin in sorted_pins(lock.pins))
    packages = (_package(it, holds) for it in checked_packages(conda))
    limited = limited._replace(
        pins=tuple(it._replace(categories=others("pip", it.name)) for it in pins),
        conda=tuple(it._replace(categories=others("conda", it.name)) for it in packages),
    )
    if format_name == "explicit":
        return limited._replace(channels=channels_of(limited.conda, made))
    channels = tuple(named_channel(without_secrets(it)) for it in lock.channels)
    return limited._replace(channels=channels, sources=lock.sources)


def _of_environment(lock: Lock, limited: Lock, conda: Collection[CondaPackage], holds: Collection[Content]) -> Lock:
    default = lock.default_index if lock.pins and not lock.default_is_plain else ""
    indexes = indexes_of(lock) if lock.pins else ()
    pins = []
    for pin in sorted_pins(lock.pins):
        bare = _restricted_pin(pin, holds, None)
        pins.append(bare if pin.index_url is None else bare._replace(index_url="" if indexes else default))
    channels = tuple(dict.fromkeys(lock.channels))
    names = (channel_named(it, channels) for it in conda)
    packages = zip(conda, names, strict=True)
    return limited._replace(
        pins=tuple(pins),
        conda=tuple(CondaPackage(it.name, it.version, it.build, "", "", channel=name) for it, name in packages),
        channels=tuple(map(without_secrets, channels)),
        default_index=default,
        default_is_plain=not default,
        indexes=indexes,
        find_links=lock.find_links if lock.pins else (),
    )


def _package(package: CondaPackage, holds: Collection[Content]) -> CondaPackage:
    """The facts in a URL, and those next to it."""
    if Content.REQUIREMENTS not in holds:
        sha256 = None if package.md5 else package.sha256
        return package_of(CondaPackage("", "", "", "", package.url, package.md5, sha256))
    depends = tuple(f"{name} {rest}".rstrip() for name, rest in dependencies(package).items())
    stated = CondaPackage(package.name, package.version, package.build, "", package.url, package.md5, package.sha256)
    return package_of(stated._replace(depends=depends))


def _at_address(pin: Pin, holds: Collection[Content]) -> Pin:
    """A package that pip installs, by the URL of the first file that it would choose, and one digest of it."""
    url = _address(checked_url(pin.files[0].url))
    keeps = Content.REQUIREMENTS in holds
    return Pin(
        pin.name,
        pin.version if keeps else version_in(pin.name, url),
        (PackageFile(file_name_in(url), url, strong_hashes(pin, pin.files[0])[:1]),),
        None,
        requires=tuple(sorted(set(pin.requires))) if keeps else (),
    )
