"""The names of conda packages on package indexes, and of a project of an index on conda channels.

Most Python packages have the same name everywhere, spelled with dashes, underscores or dots. The others are in
envsolve.conda.name_table, and those of frameworks in data/frameworks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from envsolve.conda.name_table import IN_CUDA_BUILDS, OF_THE_SAME_NAME, RENAMED, WITHOUT_PROJECT
from envsolve.frameworks import FRAMEWORKS
from envsolve.model.conda import CondaPackage
from envsolve.model.names import is_name, normalized
from envsolve.model.package import Present

PROJECTS = RENAMED | {name: projects for it in FRAMEWORKS.values() for name, projects in it.conda_holds.items()}
"""The projects that a conda package contains, if its name does not say so."""
PROJECTS_IN_BUILDS = IN_CUDA_BUILDS | {
    name: projects for it in FRAMEWORKS.values() for name, projects in it.conda_builds_hold.items()
}
"""What some builds of a conda package contain in addition, by a word in the name of the build."""
SAME_NAME = OF_THE_SAME_NAME | {
    name
    for it in FRAMEWORKS.values()
    for projects in it.conda_holds.values()
    for name in projects
    if name in it.conda_packages
}
"""Conda packages with the name of a project that others contain as well."""


def python_names(package: CondaPackage) -> tuple[str, ...]:
    """The projects that ``package`` installs, normalized; none if it is not for Python."""
    if not package.is_python_package or package.name in WITHOUT_PROJECT:
        return ()
    own = normalized(package.name)
    names = PROJECTS.get(package.name, (own,) if is_name(own) else ())
    builds = PROJECTS_IN_BUILDS.get(package.name, {})
    return (*names, *(name for word, more in builds.items() if word in package.build for name in more))


def conda_names(project: str) -> tuple[str, ...]:
    """The conda packages that may be ``project``, the most likely first, whether or not a channel has them."""
    name = normalized(project)
    return _carriers().get(name) or tuple(
        it for it in _spellings(name) if it not in PROJECTS and it not in WITHOUT_PROJECT
    )


def present_projects(packages: Iterable[CondaPackage]) -> Mapping[str, Present]:
    """The projects that ``packages`` install, by normalized name."""
    found: dict[str, list[CondaPackage]] = {}
    for package in packages:
        for name in python_names(package):
            found.setdefault(name, []).append(package)
    holders = {name: _with_the_files(several) for name, several in found.items()}
    return {name: Present(package.version, package.name) for name, package in holders.items()}


def _with_the_files(packages: Sequence[CondaPackage]) -> CondaPackage:
    """Of several packages for one project, the one that the others require: matplotlib only adds to matplotlib-base."""
    names = {it.name for it in packages}
    return next((it for it in packages if not names & set(it.requires)), packages[0])


@cache
def _carriers() -> Mapping[str, tuple[str, ...]]:
    """The conda packages of each project with a differently named one, first one of the same name if it exists."""
    found: dict[str, list[str]] = {normalized(it): [it] for it in sorted(SAME_NAME)}
    in_builds = [(it, name) for it, builds in PROJECTS_IN_BUILDS.items() for names in builds.values() for name in names]
    for package, name in (*((it, name) for it, names in PROJECTS.items() for name in names), *in_builds):
        carriers = found.setdefault(name, [])
        carriers.insert(0 if normalized(package) == name else len(carriers), package)
    return {name: tuple(carriers) for name, carriers in found.items()}


def _spellings(name: str) -> tuple[str, ...]:
    """How channels may write a normalized name, the usual ways first: all but one in a hundred have dashes."""
    dotted = name.replace("-", ".", 1)
    ways = (name, name.replace("-", "_"), name.replace("-", "."), dotted, dotted.replace("-", "_"))
    return tuple(dict.fromkeys(ways))
