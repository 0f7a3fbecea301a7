"""The directories of modules: remains of interrupted installations, .pth files that do not work, closed directories.

pip renames a package it replaces, its first letter to ``~``, and removes the renamed one at the end
(``pip/_internal/req/req_uninstall.py``, AdjacentTempDirectory); an interruption leaves it.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.reading import bytes_of, is_directory, names_of
from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.diagnose.environment.from_files import LONGEST_PATH_FILE, module_lines
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding, Severity
from envsolve.model.names import normalized

_MODULES = ("site-packages", "dist-packages")
_WITH_RECORD = ("pip", "uv")
"""Installers that always write a RECORD and read it to uninstall."""
_SHOWN = 8
_IMPORT = re.compile(r"import\s+(\w+)\s*(?:[;,].*)?\Z")
_EDITABLE = re.compile(r"_{1,2}editable")


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
                broken=known,
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
            yield scene.finding(
                "two-versions-recorded",
                (str(package.folder) for package in packages),
                about=name,
                broken=[name],
                severity=_severity([name]),
                package=name,
                versions=tuple(versions),
                directory=str(directory),
            )


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
                broken=[package.name],
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


class _Fault(NamedTuple):
    """What is wrong with a .pth file: it is ``closed`` or ``binary``, or a directory or ``module`` is ``missing``."""

    kind: str
    severity: Severity
    value: str = ""
    editable: bool = False


def path_files(scene: Scene) -> Iterator[Finding]:
    """One finding for each .pth file that does not work."""
    for directory in module_directories(scene):
        for name in names_of(directory):
            if name.endswith(".pth") and not name.startswith("."):
                faults = list(_faults(directory / name, scene))
                if faults:
                    yield _broken(directory / name, faults, scene)


def _faults(file: Path, scene: Scene) -> Iterator[_Fault]:
    content = bytes_of(file, LONGEST_PATH_FILE)
    if content is None:
        yield _Fault("closed", Severity.INFO)
        return
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError:
        yield _Fault("binary", Severity.WARNING)
        return
    for line in module_lines(file):
        if not os.path.exists(file.parent / line):  # noqa: PTH110 - never raises
            editable = _EDITABLE.match(file.name) is not None
            yield _Fault("missing", Severity.WARNING if editable else Severity.INFO, line, editable=editable)
    for line in content.decode("utf-8-sig").splitlines():
        match = _IMPORT.match(line)
        if match is not None and not _is_there(match[1], scene):
            yield _Fault("module", Severity.WARNING, match[1])


def _is_there(module: str, scene: Scene) -> bool:
    if module in sys.stdlib_module_names:
        return True
    search = scene.inventory.search_path
    return any(
        os.path.exists(directory / f"{module}.py")  # noqa: PTH110 - never raises
        or os.path.isdir(directory / module)  # noqa: PTH112 - never raises
        or any(name.startswith(f"{module}.") and name.endswith((".so", ".pyd")) for name in names_of(directory))
        for directory in search
    )


def _broken(file: Path, faults: list[_Fault], scene: Scene) -> Finding:
    first = faults[0]
    return scene.finding(
        "path-file-broken",
        [f"{file}: {it.kind}: {it.value}" if it.value else f"{file}: {it.kind}" for it in faults],
        about=file.name,
        severity=min((it.severity for it in faults), key=lambda it: it.rank),
        path=str(file),
        library=file.name,
        fault=first.kind,
        directory=first.value,
        module=first.value,
        editable=first.editable,
    )
