"""What Requires-Dist requires, in the terms of the matrix: the CUDA toolkits and the cuDNN that a wheel admits."""

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
"""A lock around Python's own parser, for example for strings in a marker: before 3.11.8 two threads in it at once may
raise SystemError (python/cpython#106905)."""

_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_COMPILER = re.compile(r"nvidia-(cuda-nvcc|nvjitlink|nvvm)(-cu\d+)?")
"""Sometimes required in a newer version than the libraries. The driver and the libraries decide, not these."""
_RUNTIME = re.compile(r"nvidia[-_]cuda[-_]runtime([-_]cu\d+)?")
_MARKERS = {
    "linux-64": ("Linux", "linux", "x86_64"),
    "linux-aarch64": ("Linux", "linux", "aarch64"),
    "win-64": ("Windows", "win32", "AMD64"),
    "osx-64": ("Darwin", "darwin", "x86_64"),
    "osx-arm64": ("Darwin", "darwin", "arm64"),
}
"""platform_system, sys_platform and platform_machine in markers (PEP 508)."""
_METAPACKAGE = "cuda-toolkit"


def header(metadata: str, name: str) -> list[str]:
    """Return the values of one header field of a METADATA text, in order."""
    fields, _, _ = metadata.replace("\r\n", "\n").partition("\n\n")
    return [
        line.partition(":")[2].strip() for line in fields.splitlines() if line.lower().startswith(f"{name.lower()}:")
    ]


def requirements(lines: Iterable[str], *, extra: str | None = None) -> list[Requirement]:
    """Return the requirements in Requires-Dist ``lines`` that apply without an extra, or those that ``extra`` adds.

    Lines that do not follow PEP 508 are skipped, because old setuptools accepted them.
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
    """Return the extras in Requires-Dist ``lines``."""
    return {str(canonicalize_name(match[1])) for line in lines if (match := _EXTRA.search(line)) is not None}


class CudaReleases:
    """The toolkits that a wheel's requirements admit, by the components of each release of the toolkit."""

    def __init__(self, components: ComponentTable) -> None:
        self._components = components
        self._packages = {part.package for release in components.releases for part in release.components}

    def admitted(self, required: Sequence[Requirement]) -> str | None:
        """Return the CUDA minors that ``required`` admits, as a specifier: ``==12.4``, ``>=12.6,<13``.

        Exact pins are read from the metapackage or the runtime, whose version is the toolkit's. For ranges, every
        library's range must contain the version of that library in the toolkit. The result is None if ``required`` has
        no CUDA package, or if no toolkit meets it.
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

        It is open up to the next major if they include the newest known minor and no limit is a pin, so that later
        releases are admitted as well.
        """
        if not minors:
            return None
        oldest, last = min(minors), max(minors)
        newest = max(it.cuda for it in self._components.releases if it.cuda.major == last.major)
        if last == newest and not any(_is_pin(limit) for limit in limits):
            return f">={oldest},<{last.major + 1}"
        return f"=={oldest}" if oldest == last else f">={oldest},<{last.major}.{last.minor + 1}"


def specifier_text(specifier: SpecifierSet) -> str:
    """Return a specifier as the matrix writes it: lower bound first, ``<10`` for ``<10.0``."""
    clauses = [str(clause) for clause in specifier]
    lower_first = sorted(clauses, key=lambda clause: (clause.startswith("<"), clause))
    return ",".join(re.sub(r"^(<\d+)\.0$", r"\1", clause) for clause in lower_first)


def only_version(specifier: SpecifierSet) -> str | None:
    """Return the version of an exact pin, or None."""
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
