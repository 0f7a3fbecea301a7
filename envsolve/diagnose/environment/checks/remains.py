"""What interrupted installations leave: renamed folders, metadata without a record, two versions of one.

pip renames a package it replaces, its first letter to ``~``, and takes the new name away at the end
(``pip/_internal/req/req_uninstall.py``, AdjacentTempDirectory); an interruption leaves it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.diagnose.environment.metadata import Package
from envsolve.diagnose.environment.reading import is_directory, names_of
from envsolve.diagnose.environment.remedies import quoted
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding, Severity
from envsolve.model.names import normalized

_MODULES = ("site-packages", "dist-packages")
_WITH_RECORD = ("pip", "uv")
"""Installers that always write a RECORD and read it to uninstall."""
_SHOWN = 8


def closed_directories(scene: Scene) -> Iterator[Finding]:
    """Directories of the environment that may not be listed: what they hold was not looked at."""
    for directory in (*scene.inventory.search_path, scene.inventory.prefix / "conda-meta"):
        if is_directory(directory):
            try:
                os.scandir(directory).close()
            except OSError as error:
                yield _closed(directory, error)


def renamed(scene: Scene) -> Iterator[Finding]:
    """Folders that pip renamed and left."""
    for directory in module_directories(scene):
        remains = [name for name in names_of(directory) if name.startswith("~")]
        if remains:
            known = sorted({it for name in remains if (it := _meant(name, scene)) is not None})
            yield _renamed(directory, remains, known)


def recorded_twice(scene: Scene) -> Iterator[Finding]:
    """Packages with the metadata of two versions in one directory."""
    for (directory, name), packages in scene.packages.together.items():
        versions = sorted({package.version for package in packages})
        if len(versions) > 1:
            yield _twice(directory, name, versions, packages)


def without_record(scene: Scene) -> Iterator[Finding]:
    """Packages whose metadata was half removed: no RECORD where the installer writes one, or no METADATA."""
    for package in scene.packages.every:
        if not package.is_wheel or len(scene.packages.together[package.location, package.name]) > 1:
            continue
        lacks = [name for name, lacking in _lacking(package, scene) if lacking]
        if lacks:
            yield _without(package, " and ".join(lacks))


def module_directories(scene: Scene) -> tuple[Path, ...]:
    """The directories that packages are installed in."""
    return tuple(it for it in dict.fromkeys(scene.inventory.search_path) if it.name in _MODULES)


def _lacking(package: Package, scene: Scene) -> Iterator[tuple[str, bool]]:
    writes_record = package.installer in _WITH_RECORD or not package.described
    yield "RECORD", writes_record and scene.packages.record(package) is None
    yield "METADATA", not package.described


def _meant(remains: str, scene: Scene) -> str | None:
    """The package that was renamed: ``~orch`` and ``~orch-2.8.0.dist-info`` were those of torch."""
    stem = normalized(remains.lstrip("~").removesuffix(".dist-info").partition("-")[0])
    names = (name for name in scene.packages.by_name if name[1:] == stem)
    return next(names, None)


def _closed(directory: Path, error: OSError) -> Finding:
    return Finding(
        "directory-not-readable",
        f"{directory} cannot be looked into",
        Severity.INFO,
        f"what {directory} holds was not looked at: {error.strerror or error}",
        "run the command as the user who owns the environment",
        evidence=(f"{directory}: {error.strerror or error}",),
    )


def _renamed(directory: Path, remains: list[str], known: list[str]) -> Finding:
    of = f" of {' and '.join(known)}" if known else ""
    return Finding(
        "half-removed-package",
        f"an interrupted installation has left remains{of}",
        Severity.WARNING if any(map(is_of_gpu_stacks, known)) else Severity.INFO,
        f"pip renames what it replaces and removes it at the end; {', '.join(remains[:_SHOWN])} in {directory} was "
        "left by one that did not come to its end. Python does not import it, but the package that took its place "
        "may not be whole, and pip warns of an invalid distribution",
        "remove what is left" + (f", and install {' and '.join(known)} again" if known else ""),
        (f"rm -r {' '.join(quoted(directory / name) for name in remains[:_SHOWN])}",),
        tuple(str(directory / name) for name in remains[:_SHOWN]),
        about=known[0] if known else None,
    )


def _twice(directory: Path, name: str, versions: list[str], packages: tuple[Package, ...]) -> Finding:
    return Finding(
        "two-versions-recorded",
        f"{name} is recorded in the versions {' and '.join(versions)}",
        Severity.WARNING if is_of_gpu_stacks(name) else Severity.INFO,
        f"{directory} holds the metadata of {name} {' and of '.join(versions)}: an installation was interrupted, or "
        "one installer wrote over what another had installed. Which version the modules are of cannot be told, and "
        "what asks for the version may get either",
        f"uninstall {name} until nothing of it is left, and install it once",
        (f"pip uninstall -y {name}", f"pip uninstall -y {name}", f"pip install {name}"),
        tuple(str(package.folder) for package in packages),
        about=name,
    )


def _without(package: Package, lacking: str) -> Finding:
    return Finding(
        "half-removed-package",
        f"{package.name} is only half there",
        Severity.WARNING if is_of_gpu_stacks(package.name) else Severity.INFO,
        f"{package.folder} has no {lacking}: an installation or removal did not come to its end, and pip can neither "
        "uninstall nor replace the package",
        f"remove {package.folder.name} and install {package.name} again",
        (f"rm -r {quoted(package.folder)}", f"pip install --force-reinstall --no-deps {package.name}"),
        (str(package.folder),),
        about=package.name,
    )
