"""The owner of each library of the environment, and its version: from the package if the file name lacks it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from envsolve.boundary.reading import placed, real
from envsolve.diagnose.environment.conda_meta import CondaMeta
from envsolve.diagnose.environment.families import is_for
from envsolve.model.versions import parsed_version
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.installed import version_in
from envsolve.validation.metadata import LIBRARY, Packages


class Owner(NamedTuple):
    """The package that installed a file; ``by`` is ``pip`` or ``conda``."""

    name: str
    version: str
    by: str

    @property
    def label(self) -> str:
        """Its name in sentences."""
        return f"{self.name} {self.version} of {self.by}"


class Owners:
    """The packages of an environment by their libraries."""

    def __init__(self, packages: Packages, conda: CondaMeta, prefix: Path) -> None:
        self._packages = packages
        self._conda = conda
        self._prefix = prefix

    def of(self, path: Path | str) -> Owner | None:
        """The owner of a file, by its own path or by the path that it leads to; None if unknown."""
        return self._by_path.get(placed(path)) or self._by_path.get(real(path))

    def version_of(self, path: Path | str) -> Version | None:
        """The version of the library in a file: by the real file's name, or else that of the package for it alone."""
        version = version_in(real(path))
        if version is not None:
            return parsed_version(version)
        owner = self.of(path)
        component = component_of(os.path.basename(path))  # noqa: PTH119 - text
        if owner is None or component is None or not is_for(owner.name, component):
            return None
        return parsed_version(owner.version)

    @cached_property
    def _by_path(self) -> Mapping[str, Owner]:
        found: dict[str, Owner] = {}
        for file, package in self._conda.owners.items():
            if LIBRARY.search(file):
                owner = Owner(package.name, package.version, "conda")
                found[placed(self._prefix / file)] = owner
        for installed in self._packages.every:
            owner = Owner(installed.name, installed.version, "pip")
            for row in () if installed.is_of_conda else self._packages.record(installed) or ():
                if LIBRARY.search(row.path):
                    found[placed(installed.location / row.path)] = owner
        for path, owner in tuple(found.items()):  # some installers make links into their cache
            found.setdefault(real(path), owner)
        return found
