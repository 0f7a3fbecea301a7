"""conda-lock.yml as conda-lock 1 to 4, mamba, conda-lockfiles and envsolve write it: version 1 of the format.

CEP 37 has it. What it asks of writers is not asked of a file here: fields that are not needed may be missing.
https://conda.org/learn/ceps/cep-0037
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from envsolve.boundary.files import FileError, read_text
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import UsageError
from envsolve.lockfile.lock import MAIN
from envsolve.lockfile.package_address import package_of
from envsolve.lockfile.pip_package import PipPackage, pip_package
from envsolve.lockfile.text_file import shown
from envsolve.lockfile.yaml_document import document_of, is_null, mapping, sequence, text, text_or_none
from envsolve.model.conda import CondaPackage

LONGEST = 16 * 1024 * 1024
"""Bytes; six hundred packages take a third of one MiB for each platform."""
_VERSION = "1"
_VIRTUAL = "__"
_PIP = ("pip", "pypi")
Package = TypeVar("Package")


class Locked(NamedTuple, Generic[Package]):
    """A package, and what it is for: ``main``, or ``dev`` and the like."""

    package: Package
    categories: tuple[str, ...]


class LockedPlatform(NamedTuple):
    """What the lock holds for one platform, in its order."""

    platform: str
    conda: tuple[Locked[CondaPackage], ...]
    pip: tuple[Locked[PipPackage], ...]


class CondaLockFile(NamedTuple):
    """What a conda-lock.yml holds, without credentials.

    ``channels`` are names or addresses. ``content_hash`` tells for each platform what was asked when it was locked, in
    conda-lock's own way. ``custom_metadata`` is whatever its writer put there.
    """

    platforms: tuple[LockedPlatform, ...]
    channels: tuple[str, ...] = ()
    content_hash: tuple[tuple[str, str], ...] = ()
    sources: tuple[str, ...] = ()
    custom_metadata: tuple[tuple[str, str], ...] = ()


def read_conda_lock(path: Path) -> CondaLockFile:
    """What the conda-lock.yml at ``path`` holds. Raises UsageError ``held-unreadable`` where it is none."""
    try:
        content = read_text(path, LONGEST)
        if content is None:
            raise FileError("there is no such file")
        return conda_lock_of(document_of(content))
    except FileError as error:
        raise UsageError("held-unreadable", f"cannot read {error.at(path)}: {error.reason}") from None


def conda_lock_of(document: object) -> CondaLockFile:
    """What a parsed conda-lock.yml holds. Raises FileError where it is none."""
    table = mapping(document, "it")
    version = text_or_none(table.get("version"), "its version") or _VERSION
    if version != _VERSION:
        raise FileError(f"it is version {shown(version)} of the format, and envsolve reads version {_VERSION}")
    if "package" not in table:
        raise FileError("it has no list of packages, which every conda-lock.yml has")
    metadata = mapping(table.get("metadata"), "its metadata")
    return CondaLockFile(
        _platforms(sequence(table["package"], "its list of packages"), metadata),
        tuple(_channel(it) for it in sequence(metadata.get("channels"), "its list of channels")),
        _pairs(metadata, "content_hash"),
        tuple(text_or_none(it, "a source") or "" for it in sequence(metadata.get("sources"), "its list of sources")),
        _pairs(metadata, "custom_metadata"),
    )


def _platforms(packages: Sequence[object], metadata: Mapping[str, object]) -> tuple[LockedPlatform, ...]:
    """By platform, those without packages too. A package comes once for each of its categories."""
    stated = sequence(metadata.get("platforms"), "its list of platforms")
    conda: dict[str, dict[CondaPackage, list[str]]] = {text(it, "a platform"): {} for it in stated}
    pip: dict[str, dict[PipPackage, list[str]]] = {}
    for position, entry in enumerate(packages, start=1):
        what = f"package {position}"
        table = mapping(entry, what)
        platform = text(table.get("platform"), f"the platform of {what}")
        category = text_or_none(table.get("category"), f"the category of {what}") or MAIN
        held = conda.setdefault(platform, {})
        if text_or_none(table.get("manager"), f"the manager of {what}") in _PIP:
            pip.setdefault(platform, {}).setdefault(_pip(table, what), []).append(category)
        elif not text(table.get("name"), f"the name of {what}").startswith(_VIRTUAL):
            held.setdefault(_conda(table, what), []).append(category)
    return tuple(LockedPlatform(name, _locked(conda[name]), _locked(pip.get(name, {}))) for name in conda)


def _locked(found: Mapping[Package, list[str]]) -> tuple[Locked[Package], ...]:
    return tuple(Locked(package, tuple(dict.fromkeys(categories))) for package, categories in found.items())


def _conda(table: Mapping[str, object], what: str) -> CondaPackage:
    depends = mapping(table.get("dependencies"), f"the list of what {what} depends on")
    digests = mapping(table.get("hash"), f"the hashes of {what}")
    return package_of(
        CondaPackage(
            text(table.get("name"), f"the name of {what}"),
            text(table.get("version"), f"the version of {what}"),
            text_or_none(table.get("build"), f"the build of {what}") or "",
            "",
            text(table.get("url"), f"the address of {what}"),
            text_or_none(digests.get("md5"), f"the md5 of {what}"),
            text_or_none(digests.get("sha256"), f"the sha256 of {what}"),
            depends=tuple(_depends(name, spec) for name, spec in depends.items()),
        )
    )


def _depends(name: str, spec: object) -> str:
    return name if is_null(spec) else f"{name} {text(spec, f'what is required of {shown(name)}')}"


def _pip(table: Mapping[str, object], what: str) -> PipPackage:
    digests = mapping(table.get("hash"), f"the hashes of {what}")
    return pip_package(
        PipPackage(
            text(table.get("name"), f"the name of {what}"),
            text(table.get("version"), f"the version of {what}"),
            text(table.get("url"), f"the address of {what}"),
            text_or_none(digests.get("sha256"), f"the sha256 of {what}"),
            is_direct=not is_null(table.get("source")),
            requires=tuple(mapping(table.get("dependencies"), f"the list of what {what} depends on")),
        )
    )


def _channel(entry: object) -> str:
    """An address by itself, or as conda-lock has it, beside the variables with its credentials."""
    url = mapping(entry, "a channel").get("url") if isinstance(entry, dict) else entry
    return without_secrets(text(url, "the address of a channel")).rstrip("/")


def _pairs(metadata: Mapping[str, object], key: str) -> tuple[tuple[str, str], ...]:
    """What a table of text holds; a value that is a table or a list itself is none of the format's and left out."""
    found = mapping(metadata.get(key), key)
    return tuple((name, value) for name, value in found.items() if isinstance(value, str))
