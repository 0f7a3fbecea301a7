"""What each format of a lock holds, and so what is lost where a lock is written as another.

The table in docs/exporting.md is made from it, and a test holds every format to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum

from envsolve.boundary.display import one_line
from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.conda_dependencies import dependencies
from envsolve.lockfile.conda_header import capabilities_in, stack_name
from envsolve.lockfile.conda_locks import channels_of, named_channel
from envsolve.lockfile.exact_environment import channel_named, indexes_of
from envsolve.lockfile.lock import (
    Lock,
    Made,
    Stack,
    bare_files,
    file_name_in,
    is_specifier,
    moment,
    sorted_pins,
    strong_digests,
    version_in,
)
from envsolve.lockfile.package_address import package_of
from envsolve.lockfile.sound_packages import sound_packages
from envsolve.lockfile.sound_pins import STRONG, sound_url
from envsolve.model.conda import CondaPackage
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
    FRAMEWORKS = "the request, and the frameworks that the lock is built around"


_BY_PIP = frozenset({Content.ALL_FILES, Content.REASONS, Content.FRAMEWORKS, Content.DEFAULT_INDEX})
HOLDS: Mapping[str, frozenset[Content]] = {
    "requirements": _BY_PIP,
    "dockerfile": _BY_PIP,
    "pylock": frozenset(Content) - {Content.CONDA, Content.DIGESTS, Content.DEFAULT_INDEX},
    "conda-lock": frozenset(
        {Content.CONDA, Content.DIGESTS, Content.ADDRESSES, Content.REQUIREMENTS, Content.FRAMEWORKS}
    ),
    "explicit": frozenset({Content.CONDA, Content.ADDRESSES}),
    "environment": frozenset({Content.CONDA, Content.ALL_FILES, Content.DEFAULT_INDEX}),
}
"""What the formats hold beside names, versions, builds, a digest, and who made the lock with which command.

``environment`` is an environment.yml of single builds.
"""


def restricted(lock: Lock, format_name: str) -> Lock:
    """What a file in one of the formats of ``HOLDS`` says of ``lock``."""
    holds = HOLDS[format_name]
    if Content.CONDA in holds:
        return _of_conda(lock, format_name, holds)
    return _of_python(lock, holds)


def _of_python(lock: Lock, holds: Collection[Content]) -> Lock:
    plain = Content.DEFAULT_INDEX in holds and lock.default_is_plain
    pins = (_restricted(pin, holds, lock.default_index if plain else None) for pin in sorted_pins(lock.pins))
    lock = lock._replace(pins=tuple(pins), conda=(), channels=(), asked=(), sources=(), environment="", remarks=())
    if Content.DEFAULT_INDEX not in holds:
        return lock._replace(default_index="", default_is_plain=True, indexes=())
    lock = lock._replace(default_index="" if plain else lock.default_index)
    return lock if Content.PYTHONS in holds else lock._replace(requires_python="")


def _of_conda(lock: Lock, format_name: str, holds: Collection[Content]) -> Lock:
    """A foreign file that was not exported has nothing but its packages."""
    made = lock.made
    is_told = made is not None or lock.exported_from is not None
    if made is not None and Content.FRAMEWORKS not in holds:
        command = one_line(made.command).rstrip()
        made = Made(made.envsolve_version, command, None, made.matrix_date, own_matrix=made.own_matrix)
    conda = tuple(sorted(lock.conda, key=lambda it: it.name))
    kept = Lock(
        (),
        lock.platform,
        next((it.version for it in conda if it.name == "python"), ""),
        made=made,
        exported_from=lock.exported_from,
        virtual_packages=lock.virtual_packages if made is not None else (),
        variables=lock.variables if is_told or format_name == "environment" else (),
        remarks=lock.remarks if is_told else (),
        environment=lock.environment if is_told or format_name == "environment" else "",
    )
    if made is not None:
        glibc = {it.name: it.version for it in lock.virtual_packages}.get("__glibc")
        kept = kept._replace(stack=_stack(lock.stack, holds), glibc=glibc)
    if format_name == "environment":
        return _of_environment(lock, kept, conda)
    pins = tuple(_at_address(pin, holds) for pin in sorted_pins(lock.pins))
    kept = kept._replace(pins=pins, conda=tuple(_package(it, holds) for it in sound_packages(conda)))
    if format_name == "explicit":
        return kept._replace(channels=channels_of(kept.conda, "" if made is None else made.command))
    channels = tuple(named_channel(without_secrets(it)) for it in lock.channels)
    return kept._replace(
        channels=channels, sources=lock.sources, environment=stack_name(kept.stack) or kept.environment
    )


def _of_environment(lock: Lock, kept: Lock, conda: Collection[CondaPackage]) -> Lock:
    default = lock.default_index if lock.pins and not lock.default_is_plain else ""
    indexes = indexes_of(lock) if lock.pins else ()
    pins = []
    for pin in sorted_pins(lock.pins):
        bare = _restricted(pin, HOLDS["environment"], None)
        pins.append(bare if pin.index_url is None else bare._replace(index_url="" if indexes else default))
    names = (channel_named(it, lock.channels) if it.url else it.channel for it in conda)
    packages = zip(conda, names, strict=True)
    return kept._replace(
        pins=tuple(pins),
        conda=tuple(CondaPackage(it.name, it.version, it.build, "", "", channel=name) for it, name in packages),
        channels=tuple(map(without_secrets, lock.channels)),
        default_index=default,
        default_is_plain=not default,
        indexes=indexes,
    )


def _stack(stack: Stack | None, holds: Collection[Content]) -> Stack | None:
    if stack is None or Content.FRAMEWORKS in holds:
        return stack
    told = Stack((), tuple(capabilities_in(stack.machines)), stack.minimum_driver, machines=stack.machines)
    return told if stack.machines else None


def _package(package: CondaPackage, holds: Collection[Content]) -> CondaPackage:
    """What an address tells, and what stands beside it."""
    if Content.REQUIREMENTS not in holds:
        sha256 = None if package.md5 else package.sha256
        return package_of(CondaPackage("", "", "", "", package.url, package.md5, sha256))
    depends = tuple(f"{name} {rest}".rstrip() for name, rest in dependencies(package).items())
    stated = CondaPackage(package.name, package.version, package.build, "", package.url, package.md5, package.sha256)
    return package_of(stated._replace(depends=depends))


def _at_address(pin: Pin, holds: Collection[Content]) -> Pin:
    """A package that pip installs, by the address of the one file that it takes first."""
    url = sound_url(pin.files[0].url)
    hashes = tuple((kind, digest) for kind, digest in pin.files[0].hashes if kind == "sha256")
    keeps = Content.REQUIREMENTS in holds
    return Pin(
        pin.name,
        pin.version if keeps else version_in(pin.name, url),
        (PackageFile(file_name_in(url), url, hashes),),
        None,
        requires=tuple(sorted(set(pin.requires))) if keeps else (),
    )


def _restricted(pin: Pin, holds: Collection[Content], unsaid_index: str | None) -> Pin:
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
