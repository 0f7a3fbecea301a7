"""Which wheels there are for which Python, as the matrix has it: what pip's list of versions tells of the interpreter.

pip lists only versions that have a wheel for the Python it runs with: torch from 2.2.0 on is Python 3.12, TensorFlow up
to 2.11.0 is Python 3.7.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.diagnose.case import Case, parsed_version
from envsolve.diagnose.rules.named import known
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.model.release import Release, Source

FRAMEWORK_OF = {
    "torch": "pytorch",
    "torchvision": "pytorch",
    "torchaudio": "pytorch",
    "tensorflow": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "tensorflow-cpu": "tensorflow",
    "jax": "jax",
    "jaxlib": "jax",
    "onnxruntime": "onnxruntime",
    "onnxruntime-gpu": "onnxruntime",
    "paddlepaddle": "paddlepaddle",
    "paddlepaddle-gpu": "paddlepaddle",
}
"""The framework of the matrix whose wheels a package is, or goes with."""

_FIRST_TORCH = Version("0.4")
"""What is older on the index are placeholders without a wheel."""


class Asked(NamedTuple):
    """A package that pip was asked for: the pinned version with its local part, and the versions that pip found.

    ``listed`` is None where no list was told, and empty for ``none``.
    """

    package: str
    version: Version | None
    specifier: str
    listed: tuple[Version, ...] | None

    @property
    def framework(self) -> str | None:
        """The framework of the matrix that it belongs to."""
        return FRAMEWORK_OF.get(self.package)


def asked_for(package: str, specifier: str, versions: str | None) -> Asked:
    """What a line of pip says; local parts and placeholders are kept apart by the callers."""
    pinned = next((it.version for it in _specifiers(specifier) if it.operator in ("==", "===")), None)
    listed = None
    if versions is not None:
        found = (parsed_version(text.strip()) for text in versions.split(","))
        listed = tuple(it for it in found if it is not None and (normalized(package) != "torch" or it >= _FIRST_TORCH))
    version = parsed_version(pinned.removesuffix(".*")) if pinned else None
    return Asked(normalized(package), version, specifier.replace(" ", ""), listed)


def _specifiers(text: str) -> SpecifierSet:
    try:
        return SpecifierSet(text.replace(" ", "").strip(","))
    except ValueError:
        return SpecifierSet()


def wheels_of(case: Case, asked: Asked, platform: Platform | None = None) -> tuple[Release, ...]:
    """The wheels in the matrix of the version that is asked for; those that a companion goes with."""
    if asked.framework is None or asked.version is None:
        return ()
    every = [it for it in case.knowledge.all_releases(asked.framework, platform or case.platform) if it.source.is_wheel]
    wanted = asked.version.release
    if asked.package in ("torchvision", "torchaudio"):
        return tuple(it for it in every if _goes_with(it, asked.package, Version(asked.version.public)))
    return tuple(it for it in every if it.version.release[: len(wanted)] == wanted)


def _goes_with(release: Release, companion: str, version: Version) -> bool:
    return any(name == companion and SpecifierSet(text).contains(version) for name, text in release.companions)


def pythons_of(releases: Sequence[Release]) -> tuple[str, ...]:
    """The Pythons that some of these wheels is for, in order; abi3 wheels are for newer ones as well."""
    return tuple(sorted({python for it in releases for python in it.pythons}, key=Version))


def span(versions: Sequence[str]) -> str:
    """``3.7 to 3.11``, or the only one."""
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


def versions_by_python(case: Case, framework: str, platform: Platform | None) -> Mapping[str, list[Version]]:
    """The releases of a framework on pip's index for each Python, in order."""
    found: dict[str, set[Version]] = defaultdict(set)
    for release in case.knowledge.all_releases(framework, platform):
        if release.source in (Source.PYPI, Source.PYTORCH):
            for python in release.pythons:
                found[python].add(release.version)
    return {python: sorted(found[python]) for python in sorted(found, key=Version)}


def inferred_pythons(case: Case, asked: Asked) -> tuple[str, ...]:
    """The Pythons for which pip's list would begin and end as it does: the oldest release it knows is their oldest."""
    public = sorted({Version(it.base_version) for it in asked.listed or () if not it.is_prerelease})
    if asked.framework is None or asked.package not in (asked.framework, "torch", "tensorflow-gpu") or not public:
        return ()
    table = versions_by_python(case, asked.framework, case.platform)
    return tuple(
        python
        for python, versions in table.items()
        if versions[0] == public[0] and public[-1] in (*versions, versions[-1])
    )


def neighbours(case: Case, asked: Asked, pythons: Sequence[str]) -> dict[str, str]:
    """How far pip gets with the Python below those of a version, and from where on with the one above."""
    if asked.framework is None or not pythons:
        return {}
    table = versions_by_python(case, asked.framework, case.platform)
    order = list(table)
    below = order[order.index(pythons[0]) - 1] if pythons[0] in order and order.index(pythons[0]) else None
    last = order.index(pythons[-1]) if pythons[-1] in order else len(order) - 1
    above = order[last + 1] if last + 1 < len(order) else None
    return known(
        older_python=below,
        older_newest=None if below is None else str(table[below][-1]),
        newer_python=above,
        newer_oldest=None if above is None else str(table[above][0]),
    )


def interpreter_of(case: Case) -> str | None:
    """The Python that runs, ``3.12`` of ``3.12.4``; tags of wheels (``310``) are of files and tell nothing of it."""
    python = case.python
    return None if python is None or "." not in python else ".".join(python.split(".")[:2])
