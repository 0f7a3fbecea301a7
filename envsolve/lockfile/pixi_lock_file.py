"""pixi.lock, versions 4 to 7 of the format, which rattler's crate rattler_lock reads and writes (conda/rattler).

For each environment and platform the file names packages by their address, and below tells each once. What follows from
an address is left out from version 6 on. Since version 7 a platform has a name of its own beside conda's; a package
built from source has another key then, where it was a conda package without a file before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError, read_text
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import UsageError
from envsolve.lockfile.package_address import package_of
from envsolve.lockfile.pip_package import PipPackage, pip_package
from envsolve.lockfile.text_file import shown
from envsolve.lockfile.yaml_document import document_of, mapping, sequence, text, text_or_none
from envsolve.model.conda import CondaPackage

LONGEST = 16 * 1024 * 1024
"""Bytes; the lock of a large project with many environments takes two MiB."""
DEFAULT = "default"
"""The name of the environment that a project has in any case."""
_VERSIONS = ("4", "5", "6", "7")
_FIRST_INDEX_IS_DEFAULT = ("7",)
_KINDS = ("conda", "pypi", "conda_source")
_PACKAGE_FILE = (".conda", ".tar.bz2")
_BUILD_NUMBER = re.compile(r"(?<!\d)\d{1,9}\Z")
"""What the number of a build is that states none (rattler_lock, derive_build_number_from_build)."""
_COUNT = re.compile(r"\d{1,15}\Z", re.ASCII)
_DIRECT = "direct+"


class PixiPlatform(NamedTuple):
    """What one environment holds for one platform, in its order.

    ``name`` is pixi's, ``subdir`` conda's. ``sources`` are the packages that are built first, as the file names them.
    """

    name: str
    subdir: str
    conda: tuple[CondaPackage, ...]
    pip: tuple[PipPackage, ...]
    sources: tuple[str, ...] = ()
    virtual_packages: tuple[str, ...] = ()


class PixiEnvironment(NamedTuple):
    """One environment. ``channels`` and ``indexes`` are those that were asked, in their order."""

    name: str
    channels: tuple[str, ...]
    indexes: tuple[str, ...]
    platforms: tuple[PixiPlatform, ...]


class PixiLockFile(NamedTuple):
    """What a pixi.lock holds, without credentials."""

    version: str
    environments: tuple[PixiEnvironment, ...]


def read_pixi_lock(path: Path) -> PixiLockFile:
    """What the pixi.lock at ``path`` holds. Raises UsageError ``held-unreadable`` where it is none."""
    try:
        content = read_text(path, LONGEST)
        if content is None:
            raise FileError("there is no such file")
        return pixi_lock_of(document_of(content))
    except FileError as error:
        raise UsageError("held-unreadable", f"cannot read {error.at(path)}: {error.reason}") from None


def pixi_lock_of(document: object) -> PixiLockFile:
    """What a parsed pixi.lock holds. Raises FileError where it is none."""
    table = mapping(document, "it")
    version = text_or_none(table.get("version"), "its version") or ""
    if version not in _VERSIONS:
        read = f"envsolve reads {_VERSIONS[0]} to {_VERSIONS[-1]}"
        raise FileError(f"it is version {shown(version)} of the format of pixi.lock, and {read}")
    if "environments" not in table:
        raise FileError("it has no environments, which every pixi.lock has")
    packages = _Packages(sequence(table.get("packages"), "its list of packages"))
    stated = [_stated(it) for it in sequence(table.get("platforms"), "its list of platforms")]
    platforms = {platform.name: platform for platform in stated}
    return PixiLockFile(
        version,
        tuple(
            _environment(name, mapping(entry, f"the environment {shown(name)}"), packages, platforms, version)
            for name, entry in mapping(table["environments"], "its table of environments").items()
        ),
    )


class _Packages:
    """The packages that the file tells of, each read once and only where an environment holds it."""

    def __init__(self, entries: Sequence[object]) -> None:
        self._told: dict[tuple[str, str], Mapping[str, object]] = {}
        self._conda: dict[str, CondaPackage] = {}
        self._pip: dict[str, PipPackage] = {}
        for position, entry in enumerate(entries, start=1):
            table = mapping(entry, f"package {position}")
            self._told[_reference(table, f"package {position}")] = table

    def conda(self, address: str) -> CondaPackage:
        """The package at ``address``, which is a file."""
        if address not in self._conda:
            self._conda[address] = _conda(self._of("conda", address), address)
        return self._conda[address]

    def pip(self, address: str) -> PipPackage:
        """The package at ``address``, which may be a folder or a repository."""
        if address not in self._pip:
            self._pip[address] = _pip(self._of("pypi", address), address)
        return self._pip[address]

    def _of(self, kind: str, address: str) -> Mapping[str, object]:
        found = self._told.get((kind, address))
        if found is None:
            raise FileError(f"an environment holds {shown(address)}, of which nothing is told below")
        return found


def _reference(table: Mapping[str, object], what: str) -> tuple[str, str]:
    """The kind of a package and its address: under one key since version 6, under two before."""
    for kind in _KINDS:
        if kind in table:
            return kind, text(table[kind], f"the address of {what}")
    kind = text_or_none(table.get("kind"), f"the kind of {what}") or ""
    address = table.get("url") or table.get("path")
    return kind, text(address, f"the address of {what}")


def _stated(entry: object) -> PixiPlatform:
    table = mapping(entry, "a platform")
    name = text(table.get("name"), "the name of a platform")
    virtual = sequence(table.get("virtual-packages"), "a list of virtual packages")
    subdir = text_or_none(table.get("subdir"), "the subdir of a platform") or name
    return PixiPlatform(name, subdir, (), (), virtual_packages=tuple(text(it, "a virtual package") for it in virtual))


def _environment(
    name: str,
    table: Mapping[str, object],
    packages: _Packages,
    platforms: Mapping[str, PixiPlatform],
    version: str,
) -> PixiEnvironment:
    channels = sequence(table.get("channels"), "a list of channels")
    indexes = tuple(without_secrets(text(it, "an index")) for it in sequence(table.get("indexes"), "indexes"))
    only_index = len(indexes) == 1 and not table.get("find-links")
    index = indexes[0] if indexes and (only_index or version in _FIRST_INDEX_IS_DEFAULT) else None
    held = mapping(table.get("packages"), f"the packages of the environment {shown(name)}")
    return PixiEnvironment(
        name,
        tuple(_channel(it) for it in channels),
        indexes,
        tuple(
            _platform(
                platforms.get(platform) or PixiPlatform(platform, platform, (), ()),
                [_reference(mapping(it, "a package"), "a package") for it in sequence(entries, "a list of packages")],
                packages,
                index,
            )
            for platform, entries in held.items()
        ),
    )


def _platform(
    stated: PixiPlatform, held: Sequence[tuple[str, str]], packages: _Packages, index: str | None
) -> PixiPlatform:
    """``stated`` with its packages; what is of an index and does not say of which is of ``index``."""
    files = [address for kind, address in held if kind == "conda" and address.endswith(_PACKAGE_FILE)]
    pip = [packages.pip(address) for kind, address in held if kind == "pypi"]
    return stated._replace(
        conda=tuple(packages.conda(address) for address in files),
        pip=tuple(it if it.is_direct or it.index_url else it._replace(index_url=index) for it in pip),
        sources=tuple(address for kind, address in held if kind != "pypi" and not address.endswith(_PACKAGE_FILE)),
    )


def _channel(entry: object) -> str:
    url = mapping(entry, "a channel").get("url") if isinstance(entry, dict) else entry
    return without_secrets(text(url, "the address of a channel")).rstrip("/")


def _conda(table: Mapping[str, object], address: str) -> CondaPackage:
    def said(key: str) -> str | None:
        return text_or_none(table.get(key), f"the {key} of {shown(address)}")

    def several(key: str) -> tuple[str, ...]:
        return tuple(text(it, f"the {key} of {shown(address)}") for it in sequence(table.get(key), key))

    package = package_of(
        CondaPackage(
            said("name") or "",
            said("version") or "",
            said("build") or "",
            said("subdir") or "",
            address,
            said("md5"),
            said("sha256"),
            _count(said("size")),
            depends=several("depends"),
            constrains=several("constrains"),
            channel=said("channel") or "",
        )
    )
    number = _count(said("build_number"))
    if number is None:
        derived = _BUILD_NUMBER.search(package.build)
        number = 0 if derived is None else int(derived[0])
    return package._replace(build_number=number)


def _count(written: str | None) -> int | None:
    return int(written) if written is not None and _COUNT.match(written) else None


def _pip(table: Mapping[str, object], address: str) -> PipPackage:
    def said(key: str) -> str | None:
        return text_or_none(table.get(key), f"the {key} of {shown(address)}")

    url = address.removeprefix(_DIRECT)
    is_direct = url != address or not url.startswith(("https://", "http://"))
    requires = sequence(table.get("requires_dist"), f"what {shown(address)} requires")
    stated = PipPackage(said("name") or "", said("version") or "", url, said("sha256"), said("index"), is_direct)
    package = stated._replace(requires=tuple(text(it, "a requirement") for it in requires))
    return pip_package(package)
