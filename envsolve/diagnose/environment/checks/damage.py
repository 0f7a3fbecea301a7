"""Files in place of a library that are none: truncated, empty, or a broken link."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from envsolve.binary.dll import read_dll
from envsolve.binary.elf import read_library
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.diagnose.environment.reading import real
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding


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
