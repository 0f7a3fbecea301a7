"""A lock as a value: what is installed, file by file, and what that choice rests on.

A lock is for one platform. A file for several, as conda-lock.yml and pixi.lock are, is read into one lock for each and
written from as many; what such a file says of all of them is in each.

Every format is read into one and written from one. Not every format can hold all of it: what a file holds of a lock is
what is read of it.
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
"""The variables of markers that a platform decides."""
MAIN = "main"
"""The category of what an environment needs in any case (conda-lock's word)."""


class RequestedSpec(NamedTuple):
    """One thing that was requested: a match spec of conda or, with ``by_pip``, a requirement as PEP 508 has it.

    ``reason`` is a sentence for people. ``category`` is what it is for: ``main``, or ``dev`` and the like.
    ``of_stack`` says that the stack requires it, and no request by name. ``index`` is the only index that has it, if
    that is not the default one.
    """

    spec: str
    reason: str = ""
    category: str = MAIN
    by_pip: bool = False
    of_stack: bool = False
    index: str = ""  # type: ignore[assignment]  # no one wants tuple.index


class LockedFramework(NamedTuple):
    """One framework of a stack: its name in envsolve, and its version, package, source and build in the matrix."""

    framework: str
    version: str
    package: str
    source: str
    build: str


class Stack(NamedTuple):
    """The frameworks that a lock is built around, and what they need of a machine.

    ``capabilities`` are the compute capabilities that it was made for, () for the CPU. ``machines`` says in words which
    machines those are. What the CPU does without is None.
    """

    frameworks: tuple[LockedFramework, ...]
    capabilities: tuple[str, ...] = ()
    minimum_driver: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    machines: str = ""


class Made(NamedTuple):
    """How envsolve came to a lock: its version, the command, and what shaped the answer beside the indexes.

    ``command`` is for people; what another request is compared with are ``request``, the frameworks and requirements
    as requested, None if they are not known, and ``options``. ``exclude_newer`` is the moment after which uploads
    do not count. ``request_digest`` is a digest of all that was requested, that of files among it.
    ``matrix_date`` is that of the compatibility matrix, None if no framework was requested; ``own_matrix`` says that
    it is not the one that envsolve ships. ``packages_digest`` is :attr:`Lock.packages_digest` as it was when the file
    was written: another one says that the packages were changed since. ``evidence`` are names of packages with CUDA
    code, by where the facts about them come from (envsolve.app.packages.lock_evidence).
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
        """The values of one option; () where it was not given."""
        return dict(self.options).get(key, ())


class Open(NamedTuple):
    """An entry that leaves something to be decided, which ``reason`` says; ``name`` is None if it has none.

    ``line`` is that of the file, where it helps; ``of_conda`` says that the entry is about a package of conda,
    ``optional`` that it is only installed with an extra or a group.
    """

    reason: str
    name: str | None = None
    line: int | None = None
    of_conda: bool = False
    optional: bool = False


class Lock(NamedTuple):
    """A lock for one platform: the packages of Python, those of conda that they are installed beside, or either alone.

    ``pins`` are sorted by name; a name may come more than once, under different markers. Of a pin ``index_url`` is ""
    where the lock does not say which index it is from. ``python`` is the full version ``3.11.7`` and ``glibc`` the
    newest that may be needed, where the lock says so. ``made`` and ``stack`` are None for a lock of another tool, and
    ``stack`` where no framework was requested.

    ``default_index`` is where a package comes from that says nothing else, and ``default_is_plain`` says that an
    installer looks there by default; ``indexes`` are those beside it and ``find_links`` pages and folders of
    files, in their order. ``requires_python`` is what another tool's lock says of its Pythons. ``exported_from`` is the
    name of the file that it was read from before it was written as this one. ``open`` is what the file leaves open, so
    that it is no whole lock, and ``left_out`` are sentences on what else is in the file and not in the lock.
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
        """The version of each package, by name; what conda installs stands for what pip does."""
        return {pin.name: pin.version for pin in self.pins} | {it.name: it.version for it in self.conda}

    @property
    def addresses(self) -> dict[str, str]:
        """Where each package is that a requirement gave by its address."""
        return {pin.name: pin.files[0].url for pin in self.pins if pin.index_url is None and pin.files}

    @property
    def interpreter(self) -> Interpreter | None:
        """The Python and the platform that it is for; None if it does not say one of them."""
        from envsolve.index.fitting import Interpreter

        try:
            major, minor, patch = (*Version(self.python).release, 0, 0)[:3]
            libc = None if self.glibc is None else LibcVersion.parse(self.glibc)
            return Interpreter((major, minor, patch), Platform(self.platform), libc)
        except ValueError:
            return None

    @property
    def is_unresolved(self) -> bool:
        """Whether it has no packages and says what a stack requires: these are for a solver to choose."""
        return any(it.of_stack for it in self.requested) and not self.conda and not self.pins

    def pins_for(self, platform: Platform) -> tuple[Pin, ...]:
        """The pins whose markers may hold on ``platform``, for some Python; one with a marker not understood does."""
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
        """For whom there are packages that are not for everyone, sorted."""
        found = {name for it in self.conda for name in it.categories} | {n for it in self.pins for n in it.categories}
        return tuple(sorted(found))

    @property
    def packages_digest(self) -> str:
        """A digest of the packages, as ``sha256:0a...``: of their versions, files, indexes and markers."""
        import hashlib
        import json

        pins = [(pin.name, pin.version, pin.marker, pin.index_url, pin.files) for pin in self.pins]
        conda = [(it.name, it.version, it.build, it.url, it.md5, it.sha256) for it in self.conda]
        text = json.dumps([pins, conda], separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def with_digest(self, write: Callable[[Lock], str], read: Callable[[str], Lock]) -> Lock:
        """The lock with the digest of the packages that a file with it holds, as ``read`` finds them in it.

        It is as it was where ``made`` is None, or where such a file cannot be read back. Raises what ``write`` does.
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
        """The same with ``via`` and ``requires`` of its pins each completed by the other.

        Some formats say what a package requires, others what requires a package.
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
    """A lock of wheels alone for ``interpreter``, with the indexes beside the default one in the order of its pins."""
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
    """A lock of ``conda`` packages for a machine that has ``virtual_packages``, with the wheels beside them."""
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
    """``pins`` in the order of every lock: by name, those of one name as they are."""
    return sorted(pins, key=lambda pin: pin.name)


def strong_digests(pin: Pin) -> tuple[str, ...]:
    """The digests of all files of ``pin`` that prove what they are, as ``sha256:0a...``, sorted."""
    files = pin.files if pin.index_url is not None else pin.files[:1]
    return tuple(sorted({f"{kind}:{digest}" for file in files for kind, digest in file.hashes if kind in STRONG}))


def bare_files(digests: Iterable[str]) -> tuple[PackageFile, ...]:
    """Files of which no more than a digest is known, ``sha256:0a...``, each once and sorted."""
    split = (it.partition(":") for it in sorted(set(digests)))
    return tuple(PackageFile("", "", ((kind, digest),)) for kind, _, digest in split)


def moment(text: str) -> str | None:
    """A moment as RFC 3339 has it, in UTC; None for what is none, as nothing depends on it."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            return None
        return found.astimezone(UTC).isoformat()[: -len("+00:00")] + "Z"
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=64)
def is_specifier(versions: str) -> bool:
    """Whether ``versions`` is a range: old packages say ``>=2.7.*``, for which readers refuse a whole pylock.toml."""
    try:
        return bool(SpecifierSet(versions))
    except InvalidSpecifier:
        return False


def requires_python_of(python: str) -> str:
    """The versions of Python that a lock made for ``python`` is for: of the same minor, and no older."""
    return f">={python},=={'.'.join(python.split('.')[:2])}.*" if python else ""


def repository_pin(pin: Pin, url: str) -> Pin | Open:
    """``pin`` as the commit of a repository at ``url``; what is no commit may be another one tomorrow."""
    try:
        reference = parse_reference(without_secrets(url))
    except ValueError as error:
        return Open(f"{pin.name}: {error}", pin.name)
    if not reference.has_commit:
        return Open(f"{pin.name} is from a repository, and not pinned to a commit", pin.name)
    file = PackageFile(file_name_in(reference.url), reference.url)
    return pin._replace(files=(file,), index_url=None)


def address_in(url: str) -> str:
    """``url`` without what is behind the sign ``#``, but for the folder of an archive that is built."""
    address, _, fragment = url.partition("#")
    return address + next((f"#{part}" for part in fragment.split("&") if part.startswith("subdirectory=")), "")


def version_in(name: str, url: str) -> str:
    """The version in the address of a file of ``name``; "" if it says none."""
    from envsolve.index.page import version_of

    return version_of(name, unquote(file_name_in(url))) or ""
