"""A project with versions that its index lacks and another index has, such as a folder of PyTorch's own index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from packaging.version import Version

from envsolve.index.one_index import Index, identity
from envsolve.index.page import Project, RawFile
from envsolve.model.versions import parsed_version


class Elsewhere(NamedTuple):
    """The index of a version, and its spelling there: ``2.14.1+cu126``."""

    index_url: str
    version: str


More = Mapping[str, Mapping[str, Sequence[Elsewhere]]]
"""Further versions of packages."""


class Part(NamedTuple):
    """The part of a project that the index ``of`` has."""

    of: Index
    project: Project


class ExtendedProject(Project):
    """``base``, None if its index does not know the name, with the versions of ``more`` that it lacks.

    The indexes in ``more`` for a version are read when the version is needed, until one has it.
    """

    def __init__(self, name: str, base: Part | None, more: Mapping[str, Sequence[tuple[Index, str]]]) -> None:
        there = () if base is None else base.project.versions
        known = set(map(parsed_version, there))
        self._base = base
        self._more = {version: it for version, it in more.items() if parsed_version(version) not in known}
        self._owners: dict[str, Part] = {}
        versions = sorted((*there, *self._more), key=Version)
        super().__init__(name, "" if base is None else base.project.url, dict.fromkeys(versions, ()))

    def files(self, position: int) -> tuple[RawFile, ...]:
        """See Project."""
        part, files = self._found(self.versions[position])
        for file in files if part is not None else ():
            assert part is not None
            self._owners[identity(file)] = part
        return files

    def owner(self, file: RawFile) -> Part:
        """The index that has ``file``, which :meth:`files` returned before."""
        return self._owners[identity(file)]

    def is_elsewhere(self, version: str) -> bool:
        """Whether its index lacks one of its versions."""
        return version in self._more

    @property
    def first_index(self) -> Index:
        """The index that it extends, or if that one does not know the name, the first of the others."""
        return next(iter(self._more.values()))[0][0] if self._base is None else self._base.of

    def _found(self, version: str) -> tuple[Part | None, tuple[RawFile, ...]]:
        if version not in self._more:
            assert self._base is not None
            return self._base, _files_in(self._base.project, version)
        for index, spelled in self._more[version]:
            project = index.project(self.name)
            files = () if project is None else _files_in(project, spelled)
            if project is not None and files:
                return Part(index, project), files
        return None, ()


def _files_in(project: Project, version: str) -> tuple[RawFile, ...]:
    keys = list(map(parsed_version, project.versions))
    return project.files(keys.index(parsed_version(version))) if parsed_version(version) in keys else ()
