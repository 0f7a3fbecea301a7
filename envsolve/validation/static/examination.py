"""The static checks together: what an environment's files say about it, beside the GPUs and variables of this machine.

Nothing of the environment is run: libraries are read, and the loader is simulated (:mod:`envsolve.binary`).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from envsolve.binary.elf import Abi, read_library
from envsolve.binary.loader import Libraries
from envsolve.binary.loader_system import loader_system
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.host.machine import this_glibc, this_platform
from envsolve.matrix import Matrix
from envsolve.matrix.library_names import LibraryNames
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import Platform
from envsolve.validation.inventory import Inventory
from envsolve.validation.report import Library
from envsolve.validation.static import windows
from envsolve.validation.static.c_library import too_old_for
from envsolve.validation.static.coverage import Codes, coverage
from envsolve.validation.static.damage import damaged
from envsolve.validation.static.installed import Files
from envsolve.validation.static.loading import Loader, Loading, Shadowed
from envsolve.validation.static.misplaced import foreign, stubs, two_majors
from envsolve.validation.static.missing import missing
from envsolve.validation.static.packages import cpu_builds, two_owners
from envsolve.validation.static.scene import Scene


class StaticReport(NamedTuple):
    """What was found, the worst first, where each CUDA library of a framework would come from, and what it hides."""

    findings: tuple[Finding, ...]
    libraries: tuple[Library, ...]
    shadowed: tuple[Shadowed, ...] = ()


def examine(
    inventory: Inventory,
    capabilities: Sequence[ComputeCapability],
    environ: Mapping[str, str],
    *,
    platform: Platform | None = None,
    matrix: Matrix | None = None,
    frameworks: Collection[str] | None = None,
    for_gpu: bool | None = None,
) -> StaticReport:
    """Examine an environment for GPUs of ``capabilities`` (none: a machine without), with the variables ``environ``.

    ``platform`` is this machine's and ``matrix`` the shipped one unless given. ``frameworks`` are the names of those to
    look at, None for all. ``for_gpu`` says whether what only a GPU needs has to be there; unless given, where one is.
    """
    files = Files(inventory, frameworks)
    has_gpu = bool(capabilities) if for_gpu is None else for_gpu
    names = LibraryNames((matrix or Matrix()).document("libraries"))
    findings = [*(cpu_builds(files) if capabilities else ()), *two_owners(files), *too_old_for(files, this_glibc())]
    look = windows.examine_loading if (platform or this_platform()).is_windows else _examine_loading
    loaded, found, shadowed = look(files, names, environ, has_gpu=has_gpu)
    findings += found
    codes = Codes()
    for framework in files.frameworks:
        findings += coverage(framework, loaded.get(framework.name, {}), capabilities, codes)
    libraries = (files.located(name, path) for paths in loaded.values() for name, path in paths.items())
    once = dict.fromkeys(findings)
    ordered = sorted(once, key=lambda it: list(Severity).index(it.severity))
    return StaticReport(tuple(ordered), tuple(dict.fromkeys(libraries)), tuple(dict.fromkeys(shadowed)))


def _examine_loading(
    files: Files, names: LibraryNames, environ: Mapping[str, str], *, has_gpu: bool
) -> tuple[dict[str, dict[str, str]], list[Finding], list[Shadowed]]:
    """By framework the file of each CUDA library it would load on Linux, the findings, and the copies not taken."""
    abi = _abi(files.inventory.executable)
    findings = list(damaged(_own_files(files), files, abi))
    system = None if abi is None else loader_system(abi)
    if system is None:
        return {}, findings, []
    loader = Loader(files, Libraries(system), names)
    library_path = environ.get("LD_LIBRARY_PATH")
    loadings = tuple(loader.load(framework, library_path) for framework in files.frameworks)
    without = loadings
    if library_path:
        without = tuple(loader.load(framework, None) for framework in files.frameworks)
    scene = Scene(files, names, loadings, without, library_path, has_gpu)
    own = set(map(os.path.realpath, _own_files(files)))
    findings += damaged((it for it in _failed(loadings) if os.path.realpath(it) not in own), files, abi, library_path)
    findings += [*missing(scene), *foreign(scene), *two_majors(scene), *stubs(scene)]
    shadowed = [it for loading in loadings for it in loading.shadowed()]
    return {it.framework.name: dict(it.found()) for it in loadings}, findings, shadowed


def _abi(executable: Path) -> Abi | None:
    try:
        return read_library(Path(os.path.realpath(executable)), truncated=True).abi
    except UnreadableLibraryError:
        return None


def _own_files(files: Files) -> Iterator[Path]:
    """The libraries that are judged whether or not anything loads them."""
    yield from files.libraries
    for framework in files.frameworks:
        loaded = framework.files(*framework.libraries.roots, *framework.libraries.code)
        yield from loaded
        for directory in dict.fromkeys(file.parent for file in loaded):
            yield from sorted(directory.glob("*.so*"))


def _failed(loadings: Sequence[Loading]) -> Iterator[Path]:
    """The files at which the loader gives up."""
    for loading in loadings:
        yield from (lookup.failure.path for lookup in loading.lookups if lookup.failure is not None)
