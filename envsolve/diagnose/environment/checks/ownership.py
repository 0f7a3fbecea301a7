"""Files that two packages have written: which of them is there depends on the order in which they were installed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.diagnose.environment.metadata import Package
from envsolve.diagnose.environment.owners import LIBRARY
from envsolve.diagnose.environment.record import Row
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.environment.words import listed
from envsolve.model.finding import Finding

TWO_DISTRIBUTIONS = "two-distributions"
_COMMON = {"test", "tests", "testing", "doc", "docs", "example", "examples", "benchmarks", "scripts", "tools"}
"""Folders that many packages leave among the modules by mistake, and that nobody imports."""


def shared_files(scene: Scene) -> Iterator[Finding]:
    """Packages that have written different files to one place, and that validation does not know as such a pair."""
    pairs: dict[tuple[str, ...], list[str]] = defaultdict(list)
    packages: dict[tuple[str, ...], list[Package]] = {}
    for (_, path), claims in scene.packages.claims.items():
        if _matters(path) and _differ(claims):
            names = tuple(sorted({package.name for package, _ in claims}))
            pairs[names].append(path)
            packages[names] = [package for package, _ in claims]
    for names, paths in pairs.items():
        if not is_known_pair(scene, *names):
            yield _shared(packages[names], sorted(paths), scene)


def is_known_pair(scene: Scene, *names: str) -> bool:
    """Whether validation has a finding of its own on these packages, as on two builds of one framework."""
    titles = (finding.title.split() for finding in scene.static.findings if finding.id == TWO_DISTRIBUTIONS)
    return any(set(names) <= set(title) for title in titles)


def _matters(path: str) -> bool:
    if PurePosixPath(path).parts[0] in _COMMON:
        return False
    return path.endswith(".py") or LIBRARY.search(path) is not None


def _differ(claims: tuple[tuple[Package, Row], ...]) -> bool:
    """Whether the packages brought different files; of those that do not say, nothing is assumed."""
    digests = {row.sha256 for _, row in claims}
    return len(digests) > 1 and None not in digests


def _shared(packages: list[Package], paths: list[str], scene: Scene) -> Finding:
    names = [package.name for package in packages]
    return scene.finding(
        "shared-files",
        [f"both own {path}" for path in paths],
        owners=tuple(package.label for package in packages),
        owners_typed=" ".join(names),
        files=listed(PurePosixPath(path).name for path in paths),
        outside=not any(map(is_of_gpu_stacks, names)),
    )
