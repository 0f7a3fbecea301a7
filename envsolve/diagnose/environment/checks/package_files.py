"""The files of packages against what their RECORD says: gone, or not those that were installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from envsolve.diagnose.environment.altered import Altered, judged_packages
from envsolve.diagnose.environment.checks.ownership import is_known_pair
from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.diagnose.environment.metadata import Package
from envsolve.diagnose.environment.owners import LIBRARY
from envsolve.diagnose.environment.remedies import quoted, reinstall
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.environment.words import listed
from envsolve.model.finding import Finding, Severity
from envsolve.validation.inside.library_versions import component_of

_UNUSED = {"test", "tests"}
"""Folders that images are made smaller by leaving out."""
_SHOWN = 6


def missing_files(scene: Scene) -> Iterator[Finding]:
    """Packages of the GPU stack whose modules or libraries are gone."""
    for package in judged_packages(scene.packages):
        counted = [row.path for row in scene.packages.record(package) or () if _counts(row.path)]
        lost = [path for path in counted if not os.path.lexists(os.path.join(package.location, path))]  # noqa: PTH118
        if lost:
            yield _missing(package, lost, len(counted))
    yield from _missing_of_conda(scene)


def overwritten_files(scene: Scene) -> Iterator[Finding]:
    """Libraries of the GPU stack that another package, or somebody, has written over."""
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
        yield _overwritten(files)


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
            command = (
                f"conda install -p {quoted(scene.inventory.prefix)} --force-reinstall {package.name}={package.version}"
            )
            yield _gone(package.name, package.version, lost, len(libraries), str(scene.inventory.prefix), command)


def _missing(package: Package, lost: list[str], count: int) -> Finding:
    return _gone(package.name, package.version, lost, count, str(package.location), reinstall(package))


def _gone(name: str, version: str, lost: list[str], count: int, place: str, command: str) -> Finding:
    starts = [path for path in lost if path.endswith("/__init__.py") and path.count("/") == 1]
    names = listed(PurePosixPath(path).name for path in lost)
    worst = len(lost) * 2 > count or bool(starts)
    how_many = "its file is" if len(lost) == count == 1 else f"{len(lost)} of its {count} files are"
    return Finding(
        "package-files-missing",
        f"files of {name} are missing",
        Severity.ERROR if worst else Severity.WARNING,
        f"{name} {version} is recorded as installed in {place}, but {how_many} not there: {names}. A package that "
        "shared them was uninstalled, they were removed by hand, or an installation did not come to its end",
        f"install {name} again",
        (command,),
        tuple(f"missing: {place}/{path}" for path in lost[:_SHOWN]),
        about=name,
    )


def _overwritten(files: list[Altered]) -> Finding:
    package, winner = files[0].package, files[0].winner
    names = listed(PurePosixPath(altered.path).name for altered in files)
    what = "a library" if len(files) == 1 else f"{len(files)} libraries"
    one, them = len(files) == 1, "it" if len(files) == 1 else "them"
    by = f"{winner.label} has written over {them}" if winner else f"something wrote over {them} after the installation"
    fix = f"uninstall {winner.name} if nothing needs it, and install" if winner else "install"
    return Finding(
        "file-overwritten",
        f"{what} of {package.name} {'was' if one else 'were'} written over",
        Severity.ERROR if winner else Severity.WARNING,
        f"{names} in {package.location} {'is' if one else 'are'} not what {package.label} brought: {by}. Libraries of "
        "one package that are of two releases fail when they are used together",
        f"{fix} {package.name} again",
        ((f"pip uninstall {winner.name}",) if winner else ()) + (reinstall(package),),
        tuple(seen(altered) for altered in files[:_SHOWN]),
        about=package.name,
    )


def seen(altered: Altered) -> str:
    """The file as it is, and as its package brought it."""
    file = Path(altered.package.location, altered.path)
    if altered.size != altered.row.size:
        return f"{file} has {altered.size} bytes, its RECORD says {altered.row.size}"
    return f"{file} has another sha256 than its RECORD says"
