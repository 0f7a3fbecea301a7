"""pixi.lock, versions 4 to 7 of the format, which rattler's crate rattler_lock reads and writes (conda/rattler).

For each environment and platform the file lists the addresses of packages, and further down describes each package
once. From version 6 on, facts in the address are left out. Since version 7 a platform has its own name besides conda's,
the name of a machine. A package built from source has a separate key since then; before, it was a conda package without
a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.index.settings import default_index
from envsolve.lockfile.conda_header import Comments
from envsolve.lockfile.conda_locks import assembled, read_channel, with_wheels
from envsolve.lockfile.lock import Lock, Open
from envsolve.lockfile.package_address import package_of
from envsolve.lockfile.pip_package import markers_of, pin_at
from envsolve.lockfile.text_file import shown
from envsolve.lockfile.yaml_document import document_of, mapping, sequence, text, text_or_none
from envsolve.model.conda import CondaPackage
from envsolve.model.need import Markers
from envsolve.model.package import Pin

_DEFAULT = "default"
"""The name of the environment that every project has."""
_VERSIONS = ("4", "5", "6", "7")
_FIRST_INDEX_IS_DEFAULT = ("7",)
_KINDS = ("conda", "pypi", "conda_source")
_PACKAGE_FILE = (".conda", ".tar.bz2")
_BUILD_NUMBER = re.compile(r"(?<!\d)\d{1,9}\Z")
"""The build number of a build that states none (rattler_lock, derive_build_number_from_build)."""
_COUNT = re.compile(r"\d{1,15}\Z", re.ASCII)
_DIRECT = "direct+"
_Table = Mapping[str, object]


class _Machine(NamedTuple):
    """A platform with pixi's name for it, and its packages: kind and address of each."""

    name: str
    platform: str
    packages: Sequence[tuple[str, str]]


def read(content: str, environment: str | None = None) -> tuple[Lock, ...]:
    """Return the locks of one ``environment``, None for the default one, for each platform in it.

    If one platform has several machines, the one with the platform's name counts, else the first. Raises FileError if
    the text is not a pixi.lock, or has no such environment.
    """
    table = mapping(document_of(content), "it")
    version = text_or_none(table.get("version"), "its version") or ""
    if version not in _VERSIONS:
        known = f"envsolve reads {_VERSIONS[0]} to {_VERSIONS[-1]}"
        raise FileError(f"it is version {shown(version)} of the format of pixi.lock, and {known}")
    if "environments" not in table:
        raise FileError("it has no environments, which every pixi.lock has")
    packages = _Packages(sequence(table.get("packages"), "its list of packages"))
    platforms = dict(map(_platform, sequence(table.get("platforms"), "its list of platforms")))
    environments = mapping(table["environments"], "its table of environments")
    name = _name(environments, environment)
    if name is None:
        return ()
    described = mapping(environments[name], f"the environment {shown(name)}")
    machines = list(_machines(described, name, platforms))
    chosen: dict[str, _Machine] = {}
    for machine in sorted(machines, key=lambda it: it.name != it.platform):
        chosen.setdefault(machine.platform, machine)
    left_out = (
        *_left_out("environment", [it for it in environments if it != name]),
        *_left_out("machine", [it.name for it in machines if it not in chosen.values()]),
    )
    channels = tuple(map(read_channel, sequence(described.get("channels"), "a list of channels")))
    indexes = [without_secrets(text(it, "an index")) for it in sequence(described.get("indexes"), "indexes")]
    is_known = len(indexes) == 1 and not described.get("find-links")
    index = indexes[0] if indexes and (is_known or version in _FIRST_INDEX_IS_DEFAULT) else None
    default = indexes[0].rstrip("/") if indexes else ""
    bare = Lock(
        (), default_index=default, default_is_plain=default in ("", default_index().rstrip("/")), left_out=left_out
    )
    return tuple(_lock(bare, it, packages, index)._replace(channels=channels) for it in chosen.values())


def _name(environments: _Table, wanted: str | None) -> str | None:
    if wanted is None:
        return _DEFAULT if _DEFAULT in environments else next(iter(environments), None)
    if wanted not in environments:
        named = ", ".join(map(shown, environments)) or "none"
        raise FileError(f"it has no environment {shown(wanted)}: it has {named}")
    return wanted


def _platform(entry: object) -> tuple[str, str]:
    table = mapping(entry, "a platform")
    name = text(table.get("name"), "the name of a platform")
    return name, text_or_none(table.get("subdir"), "the subdir of a platform") or name


def _machines(environment: _Table, name: str, platforms: Mapping[str, str]) -> Iterator[_Machine]:
    packages = mapping(environment.get("packages"), f"the packages of the environment {shown(name)}")
    for machine, entries in packages.items():
        listed = sequence(entries, "a list of packages")
        references = [_reference(mapping(it, "a package"), "a package") for it in listed]
        yield _Machine(machine, platforms.get(machine, machine), references)


def _left_out(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"left out: {what} {' and '.join(map(shown, names))}"


def _lock(bare: Lock, machine: _Machine, packages: _Packages, index: str | None) -> Lock:
    """The lock for a platform. Packages that do not name their index are from ``index``."""
    files = [address for kind, address in machine.packages if kind == "conda" and address.endswith(_PACKAGE_FILE)]
    conda = [packages.conda(address) for address in files]
    python = next((it.version for it in conda if it.name == "python"), "")
    markers = markers_of(machine.platform, python)
    wheels = (packages.pip(address, index, markers) for kind, address in machine.packages if kind == "pypi")
    sources = (it for kind, it in machine.packages if kind != "pypi" and not it.endswith(_PACKAGE_FILE))
    built = (Open(f"{shown(it)} is built from source, which no other lock format supports") for it in sources)
    return assembled(with_wheels(bare, (*built, *wheels)), machine.platform, conda, None, Comments())


class _Packages:
    """The packages of the file, each parsed when an environment has it."""

    def __init__(self, entries: Sequence[object]) -> None:
        self._entries: dict[tuple[str, str], _Table] = {}
        for position, entry in enumerate(entries, start=1):
            table = mapping(entry, f"package {position}")
            self._entries[_reference(table, f"package {position}")] = table

    def conda(self, address: str) -> CondaPackage:
        """Return the package at ``address``, which is a file."""
        return _conda(self._of("conda", address), address)

    def pip(self, address: str, index: str | None, markers: Markers) -> Pin | Open:
        """Return the package at ``address``, which may be a directory or a repository."""
        return _pip(self._of("pypi", address), address, index, markers)

    def _of(self, kind: str, address: str) -> _Table:
        found = self._entries.get((kind, address))
        if found is None:
            raise FileError(f"an environment lists {shown(address)}, which is not among the packages")
        return found


def _reference(table: _Table, what: str) -> tuple[str, str]:
    """The kind of a package and its address: under one key since version 6, under two before."""
    for kind in _KINDS:
        if kind in table:
            return kind, text(table[kind], f"the address of {what}")
    kind = text_or_none(table.get("kind"), f"the kind of {what}") or ""
    address = table.get("url") or table.get("path")
    return kind, text(address, f"the address of {what}")


def _conda(table: _Table, address: str) -> CondaPackage:
    def field(key: str) -> str | None:
        return text_or_none(table.get(key), f"the {key} of {shown(address)}")

    def several(key: str) -> tuple[str, ...]:
        return tuple(text(it, f"the {key} of {shown(address)}") for it in sequence(table.get(key), key))

    package = package_of(
        CondaPackage(
            field("name") or "",
            field("version") or "",
            field("build") or "",
            field("subdir") or "",
            address,
            field("md5"),
            field("sha256"),
            _count(field("size")),
            depends=several("depends"),
            constrains=several("constrains"),
            channel=field("channel") or "",
        )
    )
    number = _count(field("build_number"))
    if number is None:
        derived = _BUILD_NUMBER.search(package.build)
        number = 0 if derived is None else int(derived[0])
    return package._replace(build_number=number)


def _count(written: str | None) -> int | None:
    return int(written) if written is not None and _COUNT.match(written) else None


def _pip(table: _Table, address: str, index: str | None, markers: Markers) -> Pin | Open:
    def field(key: str) -> str:
        return text_or_none(table.get(key), f"the {key} of {shown(address)}") or ""

    url = address.removeprefix(_DIRECT)
    is_direct = url != address or not url.startswith(("https://", "http://"))
    requires = sequence(table.get("requires_dist"), f"what {shown(address)} requires")
    return pin_at(
        field("name"),
        field("version"),
        url,
        f"sha256:{field('sha256')}",
        index_url=field("index") or (None if is_direct else index),
        requires=tuple(text(it, "a requirement") for it in requires),
        markers=markers,
    )
