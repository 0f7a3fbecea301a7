"""The installed packages for a search around them: which stay, which may change, and what each requires.

A framework, its CUDA, and packages that no index has stay, as nothing could install them again. If the matrix does not
have a framework, all compiled packages that it needs stay too: metadata do not say what it works with.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from envsolve.app.environment.installed_wheels import captured, origin_of
from envsolve.boundary.reading import is_file, text_of
from envsolve.frameworks import FRAMEWORKS
from envsolve.model.need import Markers, Need
from envsolve.model.package import Present
from envsolve.resolve.closure.resolve import Conflict
from envsolve.resolve.closure.unknown_builds import OF_CUDA
from envsolve.validation.inventory import Inventory
from envsolve.validation.metadata import Package, Packages

_STAYS = "the environment"
_NOT_PURE = re.compile(r"^Tag: (?!.*-none-any\s*$)", re.MULTILINE)
_LONGEST = 64 * 1024


class InstalledPackages:
    """The installed packages, and which may change. ``replaced`` are requirements by address."""

    def __init__(self, inventory: Inventory, markers: Markers, replaced: Collection[str]) -> None:
        packages = Packages(inventory.search_path)
        self.by_name = packages.by_name
        self._markers, self._replaced = markers, replaced
        self._needs = {name: tuple(need for need in it.needs if not need.url) for name, it in self.by_name.items()}
        self._of_label = {_label(it): name for name, it in self.by_name.items()}

    @cached_property
    def frameworks(self) -> Mapping[str, str]:
        """The packages of frameworks, with the framework of each."""
        every = FRAMEWORKS.values()
        return {name: it.name for name in self.by_name for it in every if it.is_installed_as(name)}

    def _needed_by(self, names: Iterable[str]) -> set[str]:
        """``names`` and all their dependencies."""
        waiting, found = list(names), set[str]()
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self._requires[name]
        return found

    @cached_property
    def _requires(self) -> Mapping[str, set[str]]:
        return captured(self.by_name.values(), self._markers)[1]

    @cached_property
    def _of_cuda(self) -> set[str]:
        """The packages that only work with a framework, and the CUDA packages that they need."""
        beside = {name for name in self.by_name if any(it.is_beside(name) for it in FRAMEWORKS.values())}
        return beside | {it for it in self._needed_by((*self.frameworks, *beside)) if it.startswith(OF_CUDA)}

    def why_it_stays(self, name: str, unknown: Collection[str]) -> str:
        """Why no other version may be installed, "" if one may. ``unknown`` frameworks are not in the matrix."""
        package = self.by_name[name]
        origin = origin_of(package)
        if name in self.frameworks:
            return "it is a framework"
        if _is_compiled(package) and (name in self._of_cuda or name in self._needed_by(unknown)):
            return f"{' and '.join(self.by_name[it].label for it in self.frameworks)} may need this version"
        if package.is_of_conda:
            return "conda installed it"
        if name not in self._replaced and (origin.reason or origin.url or "+" in package.version):
            return origin.reason or "it is not from an index"
        return "" if is_file(package.folder / "RECORD") else "pip cannot uninstall it: it has no RECORD"

    def present(self, names: Iterable[str]) -> dict[str, Present]:
        """``names``, which stay unchanged, for the search."""
        found = ((name, self.by_name[name]) for name in names)
        return {name: Present(it.version, name, self._needs[name]) for name, it in found}

    def requirements_of(self, fixed: Collection[str]) -> Iterator[tuple[Need, str]]:
        """The requirements of packages that are not ``fixed``: to stay installed, and to fit those that are."""
        for name, package in self.by_name.items():
            if name not in fixed:
                yield Need(name, (), "", ""), _STAYS
                continue
            for need in self._needs[name]:
                if need.name in self.by_name and need.name not in fixed and self._markers.holds(need.marker):
                    yield need, _label(package)

    def in_the_way(self, conflict: Conflict, fixed: Collection[str]) -> set[str]:
        """The ``fixed`` packages that have no place in any answer."""
        requirements = [requirement for requirement, _ in conflict.causes]
        names = {
            *(it.name for it in requirements),
            *(self._of_label[it.origin] for it in requirements if it.origin in self._of_label),
        }
        return names & set(fixed)


def _label(package: Package) -> str:
    return f"the installed {package.label}"


def _is_compiled(package: Package) -> bool:
    """Whether a wheel is for one platform only; assumed if it does not say."""
    tags = text_of(package.folder / "WHEEL", _LONGEST)
    return tags is None or _NOT_PURE.search(tags) is not None
