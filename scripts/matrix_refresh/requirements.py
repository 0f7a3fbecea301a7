"""What Requires-Dist asks for, in the words of the matrix: which CUDA toolkits and which cuDNN a wheel takes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_COMPILER = re.compile(r"nvidia-(cuda-nvcc|nvjitlink|nvvm)(-cu\d+)?")
"""Asked for in a newer version than the libraries at times; the driver and the libraries decide, not they."""
_RUNTIME = re.compile(r"nvidia[-_]cuda[-_]runtime([-_]cu\d+)?")
_MARKERS = {
    "linux-64": ("Linux", "linux", "x86_64"),
    "linux-aarch64": ("Linux", "linux", "aarch64"),
    "win-64": ("Windows", "win32", "AMD64"),
    "osx-64": ("Darwin", "darwin", "x86_64"),
    "osx-arm64": ("Darwin", "darwin", "arm64"),
}
"""platform_system, sys_platform and platform_machine as markers have them (PEP 508)."""
_METAPACKAGE = "cuda-toolkit"


def header(metadata: str, name: str) -> list[str]:
    """The values of one header field of a METADATA text, in order."""
    fields, _, _ = metadata.partition("\n\n")
    return [
        line.partition(":")[2].strip() for line in fields.splitlines() if line.lower().startswith(f"{name.lower()}:")
    ]


def requirements(lines: Iterable[str], *, extra: str | None = None) -> list[Requirement]:
    """The requirements among Requires-Dist ``lines`` that hold without an extra, or those that ``extra`` adds.

    Lines that are not PEP 508 are passed over: setuptools of old let them through.
    """
    found = []
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        match = _EXTRA.search(str(requirement.marker or ""))
        named = None if match is None else str(canonicalize_name(match[1]))
        if named == extra:
            found.append(requirement)
    return found


def holds_on(requirement: Requirement, platform: str | None, pythons: Sequence[str]) -> bool:
    """Whether a requirement's marker holds on ``platform`` with the newest of ``pythons``, without any extra."""
    if requirement.marker is None:
        return True
    system, sys_platform, machine = _MARKERS.get(platform or "", _MARKERS["linux-64"])
    python = pythons[-1] if pythons else "3.12"
    environment = {
        "platform_system": system,
        "sys_platform": sys_platform,
        "platform_machine": machine,
        "python_version": python,
        "python_full_version": f"{python}.0",
        "extra": "",
    }
    return requirement.marker.evaluate(environment)


def extras(lines: Iterable[str]) -> set[str]:
    """The extras that Requires-Dist ``lines`` name."""
    return {str(canonicalize_name(match[1])) for line in lines if (match := _EXTRA.search(line)) is not None}


class CudaRelease(NamedTuple):
    """One release of the CUDA toolkit and the version of each of its Python packages."""

    version: Version
    cuda: str
    components: Mapping[str, SpecifierSet]


class CudaReleases:
    """The CUDA releases of ``cuda_components.toml``."""

    def __init__(self, releases: Sequence[CudaRelease]) -> None:
        self._releases = sorted(releases)

    @classmethod
    def load(cls, path: Path) -> CudaReleases:
        """Those in the file at ``path``; without a file, none."""
        if not path.exists():
            return cls(())
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return cls(
            [
                CudaRelease(
                    Version(row["version"]),
                    row["cuda"],
                    {str(canonicalize_name(name)): SpecifierSet(pin) for name, pin in row["components"].items()},
                )
                for row in document["toolkit"]
            ]
        )

    def admitted(self, asked: Sequence[Requirement]) -> str | None:
        """The CUDA minors that ``asked`` takes, as a specifier: ``==12.4``, ``>=12.6,<13``.

        Exact pins are read off the metapackage or the runtime, whose version is the toolkit's; for ranges every
        library's range must hold the version of that library in the release. None where ``asked`` names no CUDA
        package, or no release meets it.
        """
        metapackage = next((it for it in asked if canonicalize_name(it.name) == _METAPACKAGE), None)
        if metapackage is not None:
            return _range(
                [it.cuda for it in self._releases if metapackage.specifier.contains(it.version)], self._newest
            )
        runtime = next((it for it in asked if _RUNTIME.fullmatch(it.name)), None)
        pin = None if runtime is None else only_version(runtime.specifier)
        if pin is not None:
            return f"=={'.'.join(pin.split('.')[:2])}"
        libraries = [it for it in asked if self._is_library(it)]
        if not libraries:
            return None
        minors = [it.cuda for it in self._releases if all(_meets(it, wanted) for wanted in libraries)]
        return _range(minors, self._newest)

    def _is_library(self, requirement: Requirement) -> bool:
        name = str(canonicalize_name(requirement.name))
        return not _COMPILER.fullmatch(name) and any(name in it.components for it in self._releases)

    def _newest(self, major: int) -> Version:
        """The newest minor known of a CUDA major."""
        return max(minor for it in self._releases if (minor := Version(it.cuda)).major == major)


def _meets(release: CudaRelease, wanted: Requirement) -> bool:
    pin = release.components.get(str(canonicalize_name(wanted.name)))
    version = next((clause.version.removesuffix(".*") for clause in pin or () if clause.operator == "=="), None)
    return version is not None and wanted.specifier.contains(version)


def _range(minors: Sequence[str], newest: Callable[[int], Version]) -> str | None:
    """The specifier of ``minors``; open to the next major where they reach the newest that is known."""
    versions = sorted({Version(minor) for minor in minors})
    if not versions:
        return None
    oldest, last = versions[0], versions[-1]
    if last == newest(last.major):
        return f">={oldest},<{last.major + 1}"
    return f"=={oldest}" if oldest == last else f">={oldest},<={last}"


def specifier_text(specifier: SpecifierSet) -> str:
    """A specifier as the matrix writes it: lower bound first, ``<10`` for ``<10.0``."""
    clauses = [str(clause) for clause in specifier]
    lower_first = sorted(clauses, key=lambda clause: (clause.startswith("<"), clause))
    return ",".join(re.sub(r"^(<\d+)\.0$", r"\1", clause) for clause in lower_first)


def only_version(specifier: SpecifierSet) -> str | None:
    """The version that an exact pin names, or None."""
    clauses = list(specifier)
    if len(clauses) == 1 and clauses[0].operator == "==" and not clauses[0].version.endswith(".*"):
        return clauses[0].version
    return None


def floor(specifier: SpecifierSet) -> str | None:
    """The version of a lower bound, or of an exact pin."""
    return next((clause.version for clause in specifier if clause.operator in (">=", "==", "~=")), None)
