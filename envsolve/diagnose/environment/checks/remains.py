"""Remains of interrupted installations: renamed folders, metadata without a record, two versions of one package.

pip renames a package it replaces, its first letter to ``~``, and removes the renamed one at the end
(``pip/_internal/req/req_uninstall.py``, AdjacentTempDirectory); an interruption leaves it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.diagnose.environment.reading import is_directory, names_of
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding, Severity
from envsolve.model.names import normalized

_MODULES = ("site-packages", "dist-packages")
_WITH_RECORD = ("pip", "uv")
"""Installers that always write a RECORD and read it to uninstall."""
_SHOWN = 8


def closed_directories(scene: Scene) -> Iterator[Finding]:
    """Directories of the environment that cannot be listed: their content was not examined."""
    for directory in (*scene.inventory.search_path, scene.inventory.prefix / "conda-meta"):
        if is_directory(directory):
            try:
                os.scandir(directory).close()
            except OSError as error:
                why = error.strerror or str(error)
                yield scene.finding(
                    "directory-not-readable", (f"{directory}: {why}",), directory=str(directory), reason=why
                )


def renamed(scene: Scene) -> Iterator[Finding]:
    """Folders that pip renamed and did not remove."""
    for directory in module_directories(scene):
        remains = [name for name in names_of(directory) if name.startswith("~")]
        if remains:
            known = sorted({it for name in remains if (it := _meant(name, scene)) is not None})
            shown = remains[:_SHOWN]
            yield scene.finding(
                "remains-of-installation",
                [str(directory / name) for name in shown],
                about=known[0] if known else None,
                severity=_severity(known),
                packages=tuple(known),
                files=tuple(shown),
                files_typed=" ".join(shlex.quote(str(directory / name)) for name in shown),
                directory=str(directory),
            )


def recorded_twice(scene: Scene) -> Iterator[Finding]:
    """Packages with the metadata of two versions in one directory."""
    for (directory, name), packages in scene.packages.together.items():
        versions = sorted({package.version for package in packages})
        if len(versions) > 1:
            finding = scene.finding(
                "two-versions-recorded",
                (str(package.folder) for package in packages),
                about=name,
                severity=_severity([name]),
                package=name,
                versions=tuple(versions),
                directory=str(directory),
            )
            uninstall = f"pip uninstall -y {name}"  # # a package that is recorded twice must be uninstalled twice
            yield finding._replace(commands=(uninstall, uninstall, f"pip install {name}"))


def without_record(scene: Scene) -> Iterator[Finding]:
    """Packages whose metadata was partly removed: no RECORD although the installer writes one, or no METADATA."""
    for package in scene.packages.every:
        if not package.is_wheel or len(scene.packages.together[package.location, package.name]) > 1:
            continue
        writes_record = package.installer in _WITH_RECORD or not package.described
        has_record = scene.packages.record(package) is not None
        lacks = (["RECORD"] if writes_record and not has_record else []) + ([] if package.described else ["METADATA"])
        if lacks:
            yield scene.finding(
                "half-removed-package",
                (str(package.folder),),
                about=package,
                severity=_severity([package.name]),
                directory=str(package.folder),
                path_typed=shlex.quote(str(package.folder)),
                files=tuple(lacks),
            )


def module_directories(scene: Scene) -> tuple[Path, ...]:
    """The directories that packages are installed in."""
    return tuple(it for it in dict.fromkeys(scene.inventory.search_path) if it.name in _MODULES)


def _meant(remains: str, scene: Scene) -> str | None:
    """The package that was renamed: ``~orch`` and ``~orch-2.8.0.dist-info`` belonged to torch."""
    stem = normalized(remains.lstrip("~").removesuffix(".dist-info").partition("-")[0])
    names = (name for name in scene.packages.by_name if name[1:] == stem)
    return next(names, None)


def _severity(names: Iterable[str]) -> Severity | None:
    return Severity.WARNING if any(map(is_of_gpu_stacks, names)) else None
