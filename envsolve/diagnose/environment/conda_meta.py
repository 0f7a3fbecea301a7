"""The packages of a conda prefix: conda writes a record to conda-meta for each package that it links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from envsolve.boundary.files import FileError, json_value, read_bytes
from envsolve.boundary.reading import names_of
from envsolve.validation.metadata import Package

_LONGEST = 32 * 1024 * 1024
"""Bytes of one record; those of the largest packages, with 30,000 files, have 8 MB."""


class CondaPackage(NamedTuple):
    """An installed conda package; ``files`` are relative to the prefix, as written."""

    name: str
    version: str
    build: str
    channel: str
    depends: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def label(self) -> str:
        """Its name in sentences."""
        return f"{self.name} {self.version} ({self.build})"

    def needs(self, name: str) -> bool:
        """Whether it depends on ``name``, in any version."""
        return any(entry.partition(" ")[0].partition("=")[0] == name for entry in self.depends)


class CondaMeta:
    """The packages of a conda prefix; empty for any other directory."""

    def __init__(self, prefix: Path) -> None:
        self._directory = prefix / "conda-meta"

    @cached_property
    def packages(self) -> tuple[CondaPackage, ...]:
        """All packages by name; a record that cannot be read is in :attr:`malformed`."""
        return tuple(it for it in self._read.values() if isinstance(it, CondaPackage))

    @cached_property
    def malformed(self) -> Mapping[Path, str]:
        """The records that cannot be read, with the reasons."""
        return {path: it for path, it in self._read.items() if isinstance(it, str)}

    @cached_property
    def _read(self) -> Mapping[Path, CondaPackage | str]:
        paths = (self._directory / name for name in names_of(self._directory) if name.endswith(".json"))
        return {path: _package(path) for path in paths}

    @cached_property
    def by_name(self) -> Mapping[str, CondaPackage]:
        """The packages by name."""
        return {package.name: package for package in self.packages}

    @cached_property
    def owners(self) -> Mapping[str, CondaPackage]:
        """The package that each file belongs to."""
        return {file: package for package in self.packages for file in package.files}

    @cached_property
    def distributions(self) -> Mapping[str, CondaPackage]:
        """The packages that are Python distributions, by the folder of their metadata in the prefix."""
        return {folder: package for package in self.packages for folder in _folders(package)}

    def without(self, packages: Iterable[Package]) -> tuple[Package, ...]:
        """The Python packages that conda did not install."""
        return tuple(it for it in packages if not it.is_of_conda and self._below(it.folder) not in self.distributions)

    def _below(self, folder: Path) -> str:
        prefix = self._directory.parent
        return folder.relative_to(prefix).as_posix() if folder.is_relative_to(prefix) else ""


def _folders(package: CondaPackage) -> Iterator[str]:
    for file in package.files:
        if file.endswith((".dist-info/METADATA", ".egg-info/PKG-INFO")):
            yield PurePosixPath(file).parent.as_posix()


def record_at(path: Path) -> Mapping[str, Any]:
    """The record at ``path``; its fields have the right types. Raises FileError if it is no record."""
    content = read_bytes(path, _LONGEST)
    record = json_value(content or b"")
    if not isinstance(record, dict):
        raise FileError("it is no object")
    for key in ("name", *(it for it in ("version", "build") if it in record)):
        if not isinstance(record.get(key), str):
            raise FileError(f"its {key} is no text")
    for key in ("depends", "files"):
        value = record.get(key, [])
        if not isinstance(value, list) or not all(isinstance(it, str) for it in value):
            raise FileError(f"its {key} is no list of texts")
    return record


def _package(path: Path) -> CondaPackage | str:
    """The package of a record, or the reason why it cannot be read."""
    try:
        record = record_at(path)
    except FileError as error:
        return error.reason
    return CondaPackage(
        name=record["name"],
        version=record.get("version", ""),
        build=record.get("build", ""),
        channel=_channel(str(record.get("channel", ""))),
        depends=tuple(record.get("depends", ())),
        files=tuple(record.get("files", ())),
    )


def _channel(address: str) -> str:
    """``conda-forge`` for https://conda.anaconda.org/conda-forge/linux-64, without a login."""
    parts = [part for part in address.partition("://")[2].split("/")[1:] if part] if "://" in address else [address]
    names = [part for part in parts if part not in ("linux-64", "linux-aarch64", "win-64", "noarch", "t")]
    return names[-1] if names else ""
