"""What Requires-Dist asks for, in the words of the matrix: which CUDA toolkits and which cuDNN a wheel takes."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from envsolve.matrix.tables import ComponentTable
from envsolve.model.versions import CudaVersion

PARSING = threading.Lock()
"""Held where Python's own parser reads a string, in a marker for one: before 3.11.8 two threads in it at once may raise
SystemError (python/cpython#106905)."""

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
    fields, _, _ = metadata.replace("\r\n", "\n").partition("\n\n")
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
            with PARSING:
                requirement = Requirement(line)
        except InvalidRequirement:
            continue
        match = _EXTRA.search(str(requirement.marker or ""))
        named = None if match is None else str(canonicalize_name(match[1]))
        if named == extra:
            found.append(requirement)
    return found


def applies_on(requirement: Requirement, platform: str | None, pythons: Sequence[str]) -> bool:
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


class CudaReleases:
    """Which toolkits a wheel's requirements take, by the components each release of the toolkit is made of."""

    def __init__(self, components: ComponentTable) -> None:
        self._components = components
        self._packages = {part.package for release in components.releases for part in release.components}

    def admitted(self, required: Sequence[Requirement]) -> str | None:
        """The CUDA minors that ``required`` takes, as a specifier: ``==12.4``, ``>=12.6,<13``.

        Exact pins are read off the metapackage or the runtime, whose version is the toolkit's; for ranges every
        library's range must hold the version of that library in the toolkit. None if ``required`` names no CUDA
        package, or no toolkit meets it.
        """
        metapackage = next((it for it in required if canonicalize_name(it.name) == _METAPACKAGE), None)
        if metapackage is not None:
            releases = self._components.releases
            minors = {it.cuda for it in releases if metapackage.specifier.contains(it.version)}
            return self._range(minors, [metapackage.specifier])
        runtime = next((it for it in required if _RUNTIME.fullmatch(it.name)), None)
        pin = None if runtime is None else only_version(runtime.specifier)
        if pin is not None:
            return f"=={'.'.join(pin.split('.')[:2])}"
        named = [(str(canonicalize_name(it.name)), it.specifier) for it in required]
        libraries = [(name, limit) for name, limit in named if name in self._packages and not _COMPILER.fullmatch(name)]
        if not libraries:
            return None
        toolkits = [set(self._components.toolkits_with(name, limit)) for name, limit in libraries]
        return self._range(set.intersection(*toolkits), [limit for _, limit in libraries])

    def _range(self, minors: set[CudaVersion], limits: Sequence[SpecifierSet]) -> str | None:
        """The specifier of ``minors``.

        Open to the next major where they reach the newest that is known and no limit is a pin: what NVIDIA releases
        later is admitted as well.
        """
        if not minors:
            return None
        oldest, last = min(minors), max(minors)
        newest = max(it.cuda for it in self._components.releases if it.cuda.major == last.major)
        if last == newest and not any(_is_pin(limit) for limit in limits):
            return f">={oldest},<{last.major + 1}"
        return f"=={oldest}" if oldest == last else f">={oldest},<{last.major}.{last.minor + 1}"


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


def _is_pin(specifier: SpecifierSet) -> bool:
    """Whether a minor is named: ``==13.0.3``, ``==12.6.*``; ``==13.*`` and ``~=13.0`` leave it open."""
    return any(
        clause.operator in ("==", "===", "~=")
        and clause.version.removesuffix(".*").count(".") > (clause.operator == "~=")
        for clause in specifier
    )
