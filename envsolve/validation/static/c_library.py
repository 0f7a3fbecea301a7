"""Frameworks that were built for a newer C library than the machine has: none of their versions loads there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from envsolve.binary.elf import read_needed_versions
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.findings.catalogue import make_finding
from envsolve.model.finding import Finding
from envsolve.model.versions import LibcVersion
from envsolve.validation.static.installed import Files, Installed

_GLIBC = "GLIBC_"


def too_old_for(files: Files, glibc: LibcVersion | None) -> Iterator[Finding]:
    """One finding for each framework whose libraries ask for symbols of a newer glibc; none where that is unknown."""
    if glibc is None:
        return
    for framework in files.frameworks:
        asked = {file: least for file in _libraries(framework) if (least := needed_glibc(file)) is not None}
        newer = {file: version for file, version in asked.items() if version > glibc}
        if newer:
            yield make_finding(
                "glibc-too-old",
                (f"{file} asks for GLIBC_{version}" for file, version in newer.items()),
                about=framework,
                glibc_least=max(newer.values()),
                glibc_here=glibc,
            )


def needed_glibc(file: Path) -> LibcVersion | None:
    """The newest glibc whose symbols a library asks for (``.gnu.version_r``); None where it asks for none."""
    versions = []
    with suppress(UnreadableLibraryError):
        for needed in read_needed_versions(file):
            with suppress(ValueError):  # GLIBC_PRIVATE, GLIBC_ABI_DT_RELR
                if needed.version.startswith(_GLIBC):
                    versions.append(LibcVersion.parse(needed.version.removeprefix(_GLIBC)))
    return max(versions, default=None)


def _libraries(framework: Installed) -> tuple[Path, ...]:
    """The libraries of a framework that its import loads, or that hold its kernels."""
    return framework.files(*framework.libraries.roots, *framework.libraries.code)
