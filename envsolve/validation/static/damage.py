"""Files that are in the place of a library and are none: cut off, empty, or a link to nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from envsolve.binary.dll import read_dll
from envsolve.binary.elf import Abi, read_library
from envsolve.binary.unreadable import Damage, UnreadableLibraryError
from envsolve.findings.catalogue import found
from envsolve.model.finding import Finding
from envsolve.validation.inventory import Distribution
from envsolve.validation.static.installed import Files

_SAID = {
    Damage.BROKEN_LINK: "is a broken link",
    Damage.EMPTY: "is empty",
    Damage.NO_LIBRARY: "is not a library",
    Damage.OTHER_MACHINE: "is for another machine",
    Damage.TRUNCATED: "is truncated",
    Damage.UNREADABLE: "cannot be read",
}


def damaged(paths: Iterable[Path], files: Files, abi: Abi | None) -> Iterator[Finding]:
    """One finding for each of ``paths`` that is damaged; ``abi`` is that of the interpreter, None on Windows."""
    seen = set()
    for file in paths:
        try:
            place = Path(os.path.realpath(file))
            if place in seen:
                continue
            seen.add(place)
            if file.suffix.lower() in (".dll", ".pyd"):
                read_dll(file)
            else:
                read_library(file, abi=abi)
        except UnreadableLibraryError as error:
            yield _damaged(file, error, files)


def _damaged(file: Path, error: UnreadableLibraryError, files: Files) -> Finding:
    owner = next((it for it in files.inventory.distributions if _belongs(file, it, files)), None)
    return found(
        "library-damaged",
        [str(error)],
        library=file.name,
        damage=_SAID[error.damage],
        path=file,
        detail=error.detail,
        package=None if owner is None else f"{owner.name}=={owner.version}",
    )


def _belongs(file: Path, distribution: Distribution, files: Files) -> bool:
    """Whether the distribution lists the file as its own."""
    if not file.is_relative_to(distribution.location):
        return False
    own = files.records.files(distribution.location, distribution.name)
    return file.relative_to(distribution.location).as_posix() in own
