"""Files that are in the place of a library and are none: cut off, empty, or a link to nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from envsolve.binary.dll import read_dll
from envsolve.binary.elf import Abi, read_library
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.findings.catalogue import make_finding
from envsolve.model.finding import Finding
from envsolve.validation.inventory import Distribution
from envsolve.validation.static.installed import Files


def damaged(paths: Iterable[Path], files: Files, abi: Abi | None, library_path: str | None = None) -> Iterator[Finding]:
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
            owner = next((it for it in files.inventory.distributions if _belongs(file, it, files)), None)
            by_variable = str(file.parent) in re.split("[:;]", library_path or "")
            yield make_finding(
                "library-damaged",
                [str(error)],
                about=str(file),
                library=file.name,
                path=file,
                detail=error.detail,
                damage=error.damage.value,
                package=None if owner is None else owner.name,
                version=None if owner is None else owner.version,
                cut="unset LD_LIBRARY_PATH" if by_variable else None,
            )


def _belongs(file: Path, distribution: Distribution, files: Files) -> bool:
    """Whether the distribution lists the file as its own."""
    if not file.is_relative_to(distribution.location):
        return False
    own = files.records.files(distribution.location, distribution.name)
    return file.relative_to(distribution.location).as_posix() in own
