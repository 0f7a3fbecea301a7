"""Files of packages that differ from their RECORD: gone, or not those that were installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from envsolve.diagnose.environment.altered import Altered, judged_packages
from envsolve.diagnose.environment.checks.ownership import is_known_pair, seen
from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.diagnose.environment.metadata import LIBRARY
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.environment.words import listed
from envsolve.model.finding import Finding, Severity
from envsolve.validation.inside.library_versions import component_of

_UNUSED = {"test", "tests"}
"""Folders that are often removed to make images smaller."""


def missing_files(scene: Scene) -> Iterator[Finding]:
    """Packages of the GPU stack whose modules or libraries are gone."""
    for package in judged_packages(scene.packages):
        counted = [row.path for row in scene.packages.record(package) or () if _counts(row.path)]
        lost = [path for path in counted if not os.path.lexists(os.path.join(package.location, path))]  # noqa: PTH118
        if lost:
            yield _gone(package.name, package.version, lost, len(counted), package.location, scene)
    yield from _missing_of_conda(scene)


def overwritten_files(scene: Scene) -> Iterator[Finding]:
    """Libraries of the GPU stack that another package, or someone, has overwritten."""
    damaged = {
        line.partition(": ")[0] for it in scene.static.findings if it.id == "library-damaged" for line in it.evidence
    }
    found: dict[tuple[str, str | None], list[Altered]] = {}
    for altered in scene.altered:
        if str(Path(altered.package.location, altered.path)) in damaged:
            continue
        if altered.winner is None or not is_known_pair(scene, altered.package.name, altered.winner.name):
            winner = altered.winner.name if altered.winner else None
            found.setdefault((altered.package.name, winner), []).append(altered)
    for files in found.values():
        by = files[0].winner
        yield scene.finding(
            "file-overwritten",
            map(seen, files),
            about=files[0].package,
            severity=Severity.ERROR if by else None,
            files=listed(PurePosixPath(altered.path).name for altered in files),
            other=None if by is None else by.label,
            other_name=None if by is None else by.name,
        )


def _counts(path: str) -> bool:
    """Whether programs need the file."""
    if LIBRARY.search(path):
        return True
    return path.endswith(".py") and not _UNUSED.intersection(PurePosixPath(path).parts)


def _missing_of_conda(scene: Scene) -> Iterator[Finding]:
    for package in scene.conda.packages:
        if not is_of_gpu_stacks(package.name):
            continue
        libraries = [it for it in package.files if LIBRARY.search(it) and component_of(it) is not None]
        lost = [it for it in libraries if not os.path.lexists(scene.inventory.prefix / it)]
        if lost:
            yield _gone(
                package.name, package.version, lost, len(libraries), scene.inventory.prefix, scene, by_conda=True
            )


def _gone(
    name: str, version: str, lost: list[str], count: int, place: Path, scene: Scene, *, by_conda: bool = False
) -> Finding:
    starts = [path for path in lost if path.endswith("/__init__.py") and path.count("/") == 1]
    worst = len(lost) * 2 > count or bool(starts)
    return scene.finding(
        "package-files-missing",
        (f"missing: {place}/{path}" for path in lost),
        about=name,
        severity=Severity.ERROR if worst else Severity.WARNING,
        package=name,
        version=version,
        lost=len(lost),
        count=count,
        files=listed(PurePosixPath(path).name for path in lost),
        in_conda_package=by_conda,
    )
