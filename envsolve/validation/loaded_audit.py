"""The CUDA libraries that a framework really loaded: their owners, and whether they match.

Unlike the static checks, which predict, this reports what the loader of the running process did.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from envsolve.binary.elf import read_library
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.findings.catalogue import make_finding
from envsolve.host.loader import COMPATIBILITY_DIRECTORY
from envsolve.model.finding import Finding, Severity
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.installed import owner_of
from envsolve.validation.inventory import Inventory
from envsolve.validation.report import Library, Owner

_SONAME_NUMBER = re.compile(r"\.so\.(\d+)|(?:64)?_(\d+)\.dll$")


def loaded_libraries(answers: Sequence[Mapping[str, object]], inventory: Inventory) -> tuple[Library, ...]:
    """The loaded files with their owners. ``answers`` are those of :mod:`envsolve.validation.inside.loaded`."""
    return tuple(_library(answer, inventory) for answer in answers)


def audit(by_process: Sequence[Sequence[Library]], own: Sequence[Library], preloads: str = "") -> tuple[Finding, ...]:
    """Findings on the libraries that each process loaded.

    ``own`` are those of the environment, ``preloads`` is the value of LD_PRELOAD.
    """
    loaded = tuple(dict.fromkeys(library for libraries in by_process for library in libraries))
    majors = dict.fromkeys(finding for libraries in by_process for finding in _majors(libraries))
    return (*_from_elsewhere(loaded, own, preloads), *majors, *_drivers(loaded))


def _library(answer: Mapping[str, object], inventory: Inventory) -> Library:
    path, version = Path(str(answer["path"])), answer["version"]
    return Library(_soname(path), path, owner_of(path, inventory), str(version) if version else None)


def _soname(path: Path) -> str:
    """The name that programs load a file by: a process shows its real one, such as libcublas.so.12.1.3.1."""
    if path.suffix.casefold() == ".dll":
        return path.name
    try:
        return read_library(path, truncated=True).soname or path.name
    except UnreadableLibraryError:
        return path.name


def _from_elsewhere(loaded: Sequence[Library], own: Sequence[Library], preloads: str) -> Iterator[Finding]:
    """One finding for each directory with files in place of the environment's own, or in addition to them."""
    owned = {library.soname: library for library in own}
    foreign: dict[Path, list[Library]] = defaultdict(list)
    added: dict[Path, list[Library]] = defaultdict(list)
    for library in loaded:
        if library.owner is Owner.SYSTEM:
            (foreign if library.soname in owned else added)[library.path.parent].append(library)
    preloaded = {os.path.dirname(os.path.realpath(it)) for it in re.split("[ :]", preloads) if "/" in it}  # noqa: PTH120
    for directory, libraries in foreign.items():
        libraries.sort(key=lambda it: not _is_older(it, owned[it.soname]))
        first, instead_of = libraries[0], owned[libraries[0].soname]
        older = _is_older(first, instead_of)
        yield make_finding(
            "foreign-library",
            [f"{_placed(it)} was loaded, not {_placed(owned[it.soname])}" for it in libraries],
            about=str(directory),
            severity=Severity.ERROR if older else Severity.WARNING,
            library=first.soname,
            more_files=len(libraries) - 1 or None,
            path=_placed(first),
            own_path=_placed(instead_of),
            directory=directory,
            older=older,
            preloaded=str(directory) in preloaded,
        )
    for directory, libraries in added.items():
        yield make_finding(
            "system-library",
            map(_placed, libraries),
            about=str(directory),
            library=libraries[0].soname,
            more_files=len(libraries) - 1 or None,
            path=_placed(libraries[0]),
        )


def _majors(loaded: Sequence[Library]) -> Iterator[Finding]:
    """Two majors of one component in one process: each does not know what the other allocated."""
    by_component: dict[str, dict[str, Library]] = defaultdict(dict)
    for library in loaded:
        component, number = component_of(library.soname), _major(library)
        if library.owner is not Owner.DRIVER and component is not None and number is not None:
            by_component[component.partition("_")[0]].setdefault(number, library)
    for component, found_here in by_component.items():
        if len(found_here) > 1:
            paths = [_placed(library) for library in found_here.values()]
            yield make_finding(
                "two-cuda-majors",
                paths,
                about=component,
                component=component,
                majors=tuple(sorted(found_here)),
                in_one_process=True,
            )


def _major(library: Library) -> str | None:
    """The major of a CUDA component, from the file name, or from the version for libraries with a misleading name."""
    match = _SONAME_NUMBER.search(library.soname)
    return None if match is None else (match[1] or match[2])


def _drivers(loaded: Sequence[Library]) -> Iterator[Finding]:
    for path in (library.path for library in loaded if library.owner is Owner.DRIVER):
        if "stubs" in path.parts:
            yield make_finding("stub-driver-library", [str(path)], about="libcuda", stub_path=path)
        elif COMPATIBILITY_DIRECTORY.search(path.as_posix()):
            yield make_finding("forward-compatibility-driver", [str(path)], path=path)


def _is_older(library: Library, own: Library) -> bool:
    """Whether the foreign file is known to be older than the environment's own."""
    if library.version is None or own.version is None:
        return False
    try:
        return Version(library.version) < Version(own.version)
    except ValueError:
        return False


def _placed(library: Library) -> str:
    return f"{library.path} ({library.version})" if library.version else str(library.path)
