"""Which CUDA libraries a framework really loaded: whose they are, and whether they go together.

What is found here has happened, unlike what the static checks foresee: the loader of the running process decided.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from envsolve.binary.elf import read_library
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.model.finding import Finding, Severity
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.inventory import Inventory
from envsolve.validation.report import Library, Owner
from envsolve.validation.static.installed import is_of_driver

_COMPATIBILITY = re.compile(r"/(?:compat|cuda-compat[^/]*)/")
_SONAME_NUMBER = re.compile(r"\.so\.(\d+)|(?:64)?_(\d+)\.dll$")


def loaded_libraries(answers: Sequence[Mapping[str, object]], inventory: Inventory) -> tuple[Library, ...]:
    """Whose each loaded file is. ``answers`` are those of :mod:`envsolve.validation.inside.loaded`."""
    return tuple(_library(answer, inventory) for answer in answers)


def audit(loaded: Sequence[Library], own: Sequence[Library]) -> tuple[Finding, ...]:
    """What is wrong with what was loaded; ``own`` are the libraries that the environment brings."""
    return (*_foreign(loaded, own), *_majors(loaded), *_drivers(loaded))


def _library(answer: Mapping[str, object], inventory: Inventory) -> Library:
    path, version = Path(str(answer["path"])), answer["version"]
    owner = _owner(path, inventory)
    return Library(_soname(path), path, owner, str(version) if version else None)


def _soname(path: Path) -> str:
    """The name that programs load a file by: a process knows it by its real one, such as libcublas.so.12.1.3.1."""
    if path.suffix.casefold() == ".dll":
        return path.name
    try:
        return read_library(path, truncated=True).soname or path.name
    except UnreadableLibraryError:
        return path.name


def _owner(path: Path, inventory: Inventory) -> Owner:
    if is_of_driver(path.name):
        return Owner.DRIVER
    return Owner.ENVIRONMENT if inventory.owns(path) else Owner.SYSTEM


def _foreign(loaded: Sequence[Library], own: Sequence[Library]) -> Iterator[Finding]:
    """Files from elsewhere, in place of the environment's own or where it has none."""
    for library in loaded:
        if library.owner is not Owner.SYSTEM:
            continue
        instead_of = next((it for it in own if it.soname == library.soname), None)
        if instead_of is not None:
            yield _in_place_of(library, instead_of)
        else:
            yield _from_elsewhere(library)


def _in_place_of(library: Library, own: Library) -> Finding:
    older = _is_older(library, own)
    said = f"{library.path}{_versioned(library)} was loaded instead of {own.path}{_versioned(own)}"
    return Finding(
        "foreign-library",
        f"{library.soname} came from outside the environment",
        Severity.ERROR if older else Severity.WARNING,
        f"{said}: LD_LIBRARY_PATH or a setting of the loader leads away from the environment's own file"
        + (", to an older one than the framework was tested with" if older else ""),
        f"take {library.path.parent} out of LD_LIBRARY_PATH before starting programs of this environment",
        ("unset LD_LIBRARY_PATH",),
        (said,),
        about=library.soname,
    )


def _from_elsewhere(library: Library) -> Finding:
    said = f"{library.path}{_versioned(library)} was loaded, and the environment brings no {library.soname}"
    return Finding(
        "system-library",
        f"{library.soname} is the machine's, not the environment's",
        Severity.WARNING,
        f"{said}: what is installed on the machine decides whether it goes with the framework",
        "install the CUDA libraries into the environment; a lock made by envsolve holds them",
        evidence=(said,),
        about=library.soname,
    )


def _majors(loaded: Sequence[Library]) -> Iterator[Finding]:
    """Two majors of one component in one process: what one of them allocated the other does not know."""
    by_component: dict[str, dict[str, Library]] = defaultdict(dict)
    for library in loaded:
        component, number = component_of(library.soname), _major(library)
        if library.owner is not Owner.DRIVER and component is not None and number is not None:
            by_component[component.partition("_")[0]].setdefault(number, library)
    for component, found in by_component.items():
        if len(found) > 1:
            paths = [f"{library.path}{_versioned(library)}" for library in found.values()]
            yield Finding(
                "two-cuda-majors",
                f"{component} was loaded in versions {' and '.join(sorted(found))}",
                Severity.ERROR,
                f"one process has {' and '.join(paths)}: handles and memory of one are unknown to the other",
                "make the environment again with one CUDA major for all frameworks, as envsolve's locks have it",
                ("envsolve create",),
                tuple(paths),
                about=component,
            )


def _major(library: Library) -> str | None:
    """The major of CUDA's component as the file name has it; the libraries whose names lie about it tell a version."""
    match = _SONAME_NUMBER.search(library.soname)
    return None if match is None else (match[1] or match[2])


def _drivers(loaded: Sequence[Library]) -> Iterator[Finding]:
    for library in loaded:
        place = library.path.as_posix()
        if library.owner is Owner.DRIVER and "/stubs/" in place:
            yield _stub(library)
        elif library.owner is Owner.DRIVER and _COMPATIBILITY.search(place):
            yield _compatibility(library)


def _stub(library: Library) -> Finding:
    return Finding(
        "stub-driver-library",
        "the toolkit's stub of the driver library was loaded",
        Severity.ERROR,
        f"{library.path} is a stub for linking, which refuses every call, and the loader found it before the driver's",
        "take the stubs directory out of LD_LIBRARY_PATH",
        ("unset LD_LIBRARY_PATH",),
        (str(library.path),),
        about="libcuda",
    )


def _compatibility(library: Library) -> Finding:
    return Finding(
        "forward-compatibility-driver",
        "a forward-compatibility driver library is in use",
        Severity.WARNING,
        f"{library.path} stands in for the driver's own library; NVIDIA supports that on data-centre GPUs alone, and a "
        "driver that is newer than it does not work with it",
        "where programs fail with error 803 or 804, take its directory out of LD_LIBRARY_PATH",
        evidence=(str(library.path),),
    )


def _is_older(library: Library, own: Library) -> bool:
    """Whether the foreign file is known to be older than the environment's own."""
    if library.version is None or own.version is None:
        return False
    try:
        return Version(library.version) < Version(own.version)
    except ValueError:
        return False


def _versioned(library: Library) -> str:
    return f" ({library.version})" if library.version else ""
