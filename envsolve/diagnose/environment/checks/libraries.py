"""Libraries that are damaged, from elsewhere, or of two majors."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from envsolve.binary.dll import read_dll
from envsolve.binary.elf import read_library
from envsolve.binary.lookup import Rule
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.boundary.reading import real
from envsolve.diagnose.environment.scene import Scene
from envsolve.matrix.library_names import LibraryNames
from envsolve.model.finding import Finding, Severity
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.installed import is_of_driver
from envsolve.validation.report import Owner

_NUMBER = re.compile(r"\.so\.(\d+)")


class Foreign(NamedTuple):
    """A CUDA library that LD_LIBRARY_PATH puts in the place of ``own``, and the CUDA majors of both if they differ."""

    name: str
    path: str
    own: str
    their_cuda: str | None
    own_cuda: str | None

    @property
    def directory(self) -> str:
        """The directory, as the loader wrote it."""
        return os.path.dirname(self.path)  # noqa: PTH120


def foreign(scene: Scene) -> Iterator[Foreign]:
    """The CUDA libraries from elsewhere that are found through LD_LIBRARY_PATH, for each framework."""
    for loading, without in zip(scene.loads.with_path, scene.loads.without_path, strict=True):
        instead = dict(without.found())
        by_variable = {it.path for it in loading.lookups if it.rule is Rule.LIBRARY_PATH}
        for name, path in loading.found():
            owner = scene.files.located(name, path).owner
            own = instead.get(name) or (str(scene.files.own[name]) if name in scene.files.own else None)
            if path not in by_variable or owner is not Owner.SYSTEM or own is None or real(path) == real(own):
                continue
            theirs = cuda_major(path, scene.names)
            ours = cuda_major(own, scene.names) or loading.framework.built_cuda_major
            differ = theirs is not None and ours is not None and theirs != ours
            yield Foreign(name, path, own, *((theirs, ours) if differ else (None, None)))


def foreign_libraries(scene: Scene) -> Iterator[Finding]:
    """One finding for each directory of LD_LIBRARY_PATH with foreign libraries, on the worst of them."""
    by_directory: dict[str, dict[str, Foreign]] = defaultdict(dict)
    for it in foreign(scene):
        by_directory[it.directory].setdefault(it.name, it)
    for directory, found in by_directory.items():
        first, *others = sorted(found.values(), key=lambda it: it.their_cuda is None)
        yield scene.finding(
            "foreign-library",
            (
                f"LD_LIBRARY_PATH={scene.loads.library_path}",
                *(f"{os.path.normpath(it.path)}, not {os.path.normpath(it.own)}" for it in (first, *others)),
            ),
            about=real(directory),
            severity=Severity.ERROR if first.their_cuda is not None else Severity.WARNING,
            library=first.name,
            more_files=len(others) or None,
            path=os.path.normpath(first.path),
            own_path=os.path.normpath(first.own),
            directory=directory,
            their_cuda=first.their_cuda,
            own_cuda=first.own_cuda,
            **scene.loads.facts_where_driver_stays([directory]),
        )


def two_majors(scene: Scene) -> Iterator[Finding]:
    """Components with two majors that frameworks would load; worse if one framework loads both."""
    by_component: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for loading in scene.loads.with_path:
        for name, path in loading.found():
            component, number = component_of(name), _NUMBER.search(name)
            if component is not None and number is not None and not is_of_driver(name):
                by_component[component.partition("_")[0]][number[1]].setdefault(loading.title, path)
    for component, majors in by_component.items():
        if len(majors) > 1:
            titles = [set(by) for by in majors.values()]
            alone = sorted(set.intersection(*titles))
            yield scene.finding(
                "two-cuda-majors",
                (f"{title}: {os.path.normpath(path)}" for by in majors.values() for title, path in by.items()),
                about=component,
                severity=Severity.ERROR if alone else Severity.WARNING,
                component=component,
                majors=tuple(sorted(majors, key=int)),
                title=tuple(alone),
                in_one_process=bool(alone),
            )


def cuda_major(path: str, names: LibraryNames) -> str | None:
    """The major of CUDA that a file belongs to, by its own name, or by what it needs or what is in its directory.

    libcusolver.so.11 belongs to CUDA 11 and to CUDA 12. It needs a libcublas of one of them, and a directory of a
    toolkit contains the libraries of one toolkit.
    """
    own = names.cuda_majors(Path(path).name)
    if len(own) == 1:
        return next(iter(own))
    place = Path(real(path))
    others = [file.name for file in place.parent.glob("lib*.so.*")]
    with suppress(UnreadableLibraryError):
        others += read_library(place, truncated=True).needed
    sure = {next(iter(majors)) for name in others if len(majors := names.cuda_majors(name)) == 1}
    sure = sure & own if own else sure
    return next(iter(sure)) if len(sure) == 1 else None


def damaged_libraries(scene: Scene) -> Iterator[Finding]:
    """One finding for each damaged library: the environment's own, and those at which the loader stops."""
    own = list(scene.files.libraries) if scene.platform.is_windows else list(_own_files(scene))
    by_variable = scene.loads.directories
    found: dict[str, Path] = {}
    for file in (*own, *scene.loads.failed):
        found.setdefault(real(file), file)
    for file in found.values():
        try:
            if file.suffix.lower() in (".dll", ".pyd"):
                read_dll(file)
            else:
                read_library(file, abi=scene.loads.abi)
        except UnreadableLibraryError as error:
            owner = scene.owners.of(file)
            of_pip = owner is not None and owner.by == "pip"
            yield scene.finding(
                "library-damaged",
                [str(error)],
                about=str(file),
                broken=[owner.name] if owner is not None and of_pip else (),
                library=file.name,
                path=file,
                detail=error.detail,
                damage=error.damage.value,
                package=owner.name if owner is not None and of_pip else None,
                version=owner.version if owner is not None and of_pip else None,
                **(scene.loads.facts_without([str(file.parent)]) if str(file.parent) in by_variable else {}),
            )


def _own_files(scene: Scene) -> Iterator[Path]:
    """The libraries that are checked whether or not anything loads them."""
    yield from scene.files.libraries
    for framework in scene.files.frameworks:
        yield from framework.own_files
        for directory in dict.fromkeys(file.parent for file in framework.own_files):
            yield from sorted(directory.glob("*.so*"))
