"""A lock as a value: the packages to install, with their files, and the facts that the choice is based on.

A lock is for one platform. A file for several platforms, such as conda-lock.yml or pixi.lock, is read as one lock for
each and written from as many. What such a file says about all platforms is in each of them.

Every format is read into a lock and written from one. Not every format can express all of it, so reading gives what the
file contains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.checked_pins import STRONG
from envsolve.lockfile.options import Options
from envsolve.model.host import Platform
from envsolve.model.names import is_name, normalized
from envsolve.model.package import PackageFile, Pin
from envsolve.model.reference import file_name_in, parse_reference
from envsolve.model.versions import LibcVersion

if TYPE_CHECKING:
    from envsolve.index.fitting import Interpreter
    from envsolve.model.conda import CondaPackage, VirtualPackage

_OF_PLATFORM = ("os_name", "platform_machine", "platform_system", "sys_platform")
"""The marker variables that depend on the platform."""
MAIN = "main"
"""The category of packages that an environment always needs (conda-lock's name)."""


class RequestedSpec(NamedTuple):
    """A spec that a lock was resolved for: a conda match spec or, with ``by_pip``, a requirement as in PEP 508.

    ``reason`` is a sentence for users. ``category`` is its group: ``main``, ``dev`` and so on. ``of_stack`` is true if
    the stack requires it, and not the user. ``index`` is the only index that has it, if that is not the default one.
    """

    spec: str
    reason: str = ""
    category: str = MAIN
    by_pip: bool = False
    of_stack: bool = False
    index: str = ""  # type: ignore[assignment]  # no one wants tuple.index


class LockedFramework(NamedTuple):
    """A framework of a stack: its name in envsolve, and its version, package, source and build in the matrix."""

    framework: str
    version: str
    package: str
    source: str
    build: str


class Stack(NamedTuple):
    """The frameworks that a lock is built around, and their requirements on a machine.

    ``capabilities`` are the compute capabilities that it was made for, () for the CPU. ``machines`` describes these
    machines in words. Fields that do not apply to the CPU are None.
    """

    frameworks: tuple[LockedFramework, ...]
    capabilities: tuple[str, ...] = ()
    minimum_driver: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    machines: str = ""


class Made(NamedTuple):
    """How envsolve made a lock: its version, the command, and everything besides the indexes that affected the result.

    ``command`` is for users. ``request`` are the frameworks and requirements as requested, None if unknown; other
    requests are compared with it and with ``options``. ``exclude_newer`` is the time after which uploads do not count.
    ``request_digest`` is a digest of everything requested, including the contents of files. ``matrix_date`` is the date
    of the compatibility matrix, None if no framework was requested. ``own_matrix`` is true if it is not the matrix that
    envsolve ships. ``packages_digest`` is :attr:`Lock.packages_digest` at the time of writing: if it differs, the
    packages were changed since. ``evidence`` are names of packages with CUDA code, by the source of the facts about
    them (envsolve.app.packages.lock_evidence).
    """

    envsolve_version: str
    command: str = ""
    request: tuple[str, ...] | None = ()
    matrix_date: str | None = None
    own_matrix: bool = False
    exclude_newer: str | None = None
    notes: tuple[str, ...] = ()
    request_digest: str | None = None
    packages_digest: str | None = None
    options: Options = ()
    evidence: Options = ()

    def option(self, key: str) -> tuple[str, ...]:
        """Return the values of one option, () if it was not given."""
        return dict(self.options).get(key, ())


class Open(NamedTuple):
    """An entry that leaves something open, described by ``reason``; ``name`` is None if it has none.

    ``line`` is its line in the file, if that helps. ``of_conda`` is true for a conda package, ``optional`` for one that
    is only installed with an extra or a group.
    """

    reason: str
    name: str | None = None
    line: int | None = None
    of_conda: bool = False
    optional: bool = False


class Lock(NamedTuple):
    """A lock for one platform: Python packages, conda packages that they are installed with, or only one of these.

    ``pins`` are sorted by name. A name may occur several times with different markers. A pin's ``index_url`` is "" if
    the lock does not say which index it is from. ``python`` is the full version ``3.11.7``, and ``glibc`` the newest
    that may be needed, if the lock has them. ``made`` and ``stack`` are None for a lock of another tool, and ``stack``
    if no framework was requested.

    ``default_index`` is the index of packages that name none, and ``default_is_plain`` is true if installers use it by
    default. ``indexes`` are the other indexes, and ``find_links`` pages and directories of files, in their order.
    ``requires_python`` is the range of Pythons in another tool's lock. ``exported_from`` is the name of the file that
    it was exported from. ``open`` are entries that the file leaves open, so the lock is incomplete. ``left_out`` are
    sentences about other content of the file that is not in the lock.
    """

    pins: tuple[Pin, ...]
    platform: str = ""
    python: str = ""
    glibc: str | None = None
    stack: Stack | None = None
    made: Made | None = None
    default_index: str = ""
    default_is_plain: bool = True
    indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    requires_python: str = ""
    exported_from: str | None = None
    open: tuple[Open, ...] = ()
    left_out: tuple[str, ...] = ()
    conda: tuple[CondaPackage, ...] = ()
    channels: tuple[str, ...] = ()
    virtual_packages: tuple[VirtualPackage, ...] = ()
    requested: tuple[RequestedSpec, ...] = ()
    sources: tuple[str, ...] = ()
    environment: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def versions(self) -> dict[str, str]:
        """The version of each package by name. If conda and pip have the same package, conda's counts."""
        return {pin.name: pin.version for pin in self.pins} | {it.name: it.version for it in self.conda}

    @property
    def addresses(self) -> dict[str, str]:
        """The location of each package that a requirement gave by address."""
        return {pin.name: pin.files[0].url for pin in self.pins if pin.index_url is None and pin.files}

    @property
    def interpreter(self) -> Interpreter | None:
        """The Python and the platform that it is for, or None if one of them is unknown."""
        from envsolve.index.fitting import Interpreter

        try:
            major, minor, patch = (*Version(self.python).release, 0, 0)[:3]
            libc = None if self.glibc is None else LibcVersion.parse(self.glibc)
            return Interpreter((major, minor, patch), Platform(self.platform), libc)
        except ValueError:
            return None

    @property
    def is_unresolved(self) -> bool:
        """Whether it has no packages, but the requirements of a stack for a solver."""
        return any(it.of_stack for it in self.requested) and not self.conda and not self.pins

    def pins_for(self, platform: Platform) -> tuple[Pin, ...]:
        """Return the pins whose markers may hold on ``platform`` for some Python, or cannot be parsed."""
        from envsolve.index.fitting import Interpreter
        from envsolve.lockfile.marker_ways import may_hold, ways_of

        values = Interpreter((3, 0, 0), platform).marker_values()
        known = {name: value for name, value in values.items() if value and name in _OF_PLATFORM}

        def may_be_installed(marker: str) -> bool:
            try:
                return may_hold(ways_of(marker), known)
            except FileError:
                return True

        return tuple(pin for pin in self.pins if not pin.marker or may_be_installed(pin.marker))

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories of packages that are not for everyone, sorted."""
        found = {name for it in self.conda for name in it.categories} | {n for it in self.pins for n in it.categories}
        return tuple(sorted(found))

    @property
    def packages_digest(self) -> str:
        """A digest of the packages' versions, files, indexes and markers, as ``sha256:0a...``."""
        import hashlib
        import json

        pins = [(pin.name, pin.version, pin.marker, pin.index_url, pin.files) for pin in self.pins]
        conda = [(it.name, it.version, it.build, it.url, it.md5, it.sha256) for it in self.conda]
        text = json.dumps([pins, conda], separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def with_digest(self, write: Callable[[Lock], str], read: Callable[[str], Lock]) -> Lock:
        """Return the lock with the digest of the packages as ``read`` finds them in a file written by ``write``.

        The lock is unchanged if ``made`` is None, or if such a file cannot be read. Raises what ``write`` raises.
        """
        if self.made is None:
            return self
        text = write(self)
        try:
            digest = read(text).packages_digest
        except FileError:
            return self
        return self._replace(made=self.made._replace(packages_digest=digest))

    def with_requirers(self) -> Lock:
        """Return the lock with ``via`` and ``requires`` of its pins completed from each other.

        Some formats have what a package requires, others what requires a package.
        """
        names = {pin.name for pin in self.pins}
        requires: dict[str, set[str]] = {name: set() for name in names}
        via: dict[str, set[str]] = {name: set() for name in names}
        for pin in self.pins:
            for name in names.intersection(pin.requires):
                via[name].add(pin.name)
            words = (source.partition("[")[0] for source in pin.via)
            for name in names.intersection(normalized(word) for word in words if is_name(word)):
                requires[name].add(pin.name)
        pins = (
            pin._replace(
                requires=tuple(sorted(requires[pin.name].union(pin.requires))),
                via=pin.via or tuple(sorted(via[pin.name])),
            )
            for pin in self.pins
        )
        return self._replace(pins=tuple(pins))


def wheels_lock(pins: tuple[Pin, ...], interpreter: Interpreter, default_index: str, *, default_is_plain: bool) -> Lock:
    """Return a lock of only wheels for ``interpreter``.

    Indexes besides the default one are in the order of its pins.
    """
    used = dict.fromkeys(url for pin in pins if (url := pin.index_url) is not None and url != default_index)
    return Lock(
        pins,
        interpreter.platform,
        interpreter.full_version,
        None if interpreter.glibc is None else str(interpreter.glibc),
        default_index=default_index,
        default_is_plain=default_is_plain,
        indexes=tuple(used),
    )


def conda_lock(
    conda: Iterable[CondaPackage],
    pins: tuple[Pin, ...],
    platform: Platform,
    virtual_packages: tuple[VirtualPackage, ...],
    requested: tuple[RequestedSpec, ...],
) -> Lock:
    """Return a lock of ``conda`` packages for a machine with ``virtual_packages``, with wheels in addition."""
    conda = tuple(conda)
    return Lock(
        pins,
        platform.value,
        python=next((it.version for it in conda if it.name == "python"), ""),
        glibc=next((it.version for it in virtual_packages if it.name == "__glibc"), None),
        conda=conda,
        virtual_packages=virtual_packages,
        requested=requested,
    )


def sorted_pins(pins: Iterable[Pin]) -> list[Pin]:
    """Return ``pins`` in the order of every lock: by name, with those of one name in their given order."""
    return sorted(pins, key=lambda pin: pin.name)


def strong_digests(pin: Pin) -> tuple[str, ...]:
    """Return the secure digests of all files of ``pin``, as ``sha256:0a...``, sorted."""
    files = pin.files if pin.index_url is not None else pin.files[:1]
    return tuple(sorted({f"{kind}:{digest}" for file in files for kind, digest in file.hashes if kind in STRONG}))


def bare_files(digests: Iterable[str]) -> tuple[PackageFile, ...]:
    """Return files of which only a digest is known, ``sha256:0a...``, each once and sorted."""
    split = (it.partition(":") for it in sorted(set(digests)))
    return tuple(PackageFile("", "", ((kind, digest),)) for kind, _, digest in split)


def moment(text: str) -> str | None:
    """Return a time in RFC 3339 in UTC, or None if it is invalid, because nothing depends on it."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            return None
        return found.astimezone(UTC).isoformat()[: -len("+00:00")] + "Z"
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=64)
def is_specifier(versions: str) -> bool:
    """Whether ``versions`` is a valid range.

    Old packages have ``>=2.7.*``, for which readers refuse a whole pylock.toml.
    """
    try:
        return bool(SpecifierSet(versions))
    except InvalidSpecifier:
        return False


def requires_python_of(python: str) -> str:
    """Return the Python versions that a lock for ``python`` supports: the same minor, not older."""
    return f">={python},=={'.'.join(python.split('.')[:2])}.*" if python else ""


def repository_pin(pin: Pin, url: str) -> Pin | Open:
    """Return ``pin`` as the commit of a repository at ``url``, or Open for any other revision, which may change."""
    try:
        reference = parse_reference(without_secrets(url))
    except ValueError as error:
        return Open(f"{pin.name}: {error}", pin.name)
    if not reference.has_commit:
        return Open(f"{pin.name} is from a repository, and not pinned to a commit", pin.name)
    file = PackageFile(file_name_in(reference.url), reference.url)
    return pin._replace(files=(file,), index_url=None)


def version_in(name: str, url: str) -> str:
    """Return the version in the address of a file of ``name``, or ""."""
    from envsolve.index.page import version_of

    return version_of(name, unquote(file_name_in(url))) or ""
