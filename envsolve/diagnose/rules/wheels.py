"""Which wheels there are for which Python, as the matrix has it: what pip's list of versions tells of the interpreter.

pip lists only versions that have a wheel for the Python it runs with: torch from 2.2.0 on is Python 3.12, TensorFlow up
to 2.11.0 is Python 3.7.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.diagnose.case import Case
from envsolve.diagnose.rules.named import known
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.model.release import Release, Source
from envsolve.model.versions import parsed_version

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

_OF_CUDA = re.compile(
    r"(?:onnxruntime|tensorflow|paddlepaddle)-gpu|cupy-cuda\w+|jax-cuda1\d-\w+|nvidia-(?!ml-py|pyindex).+|.+-cu1\d"
)
"""Packages that hold code for CUDA in every wheel."""

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
    releases = case.knowledge.all_releases(asked.framework, platform or case.platform)
    every = [it for it in releases if it.source.is_wheel and _is_of(asked.package, it)]
    wanted = asked.version.release
    if asked.package in ("torchvision", "torchaudio"):
        return tuple(it for it in every if _goes_with(it, asked.package, Version(asked.version.public)))
    return tuple(it for it in every if it.version.release[: len(wanted)] == wanted)


def is_for_cuda(package: str) -> bool:
    """Whether every wheel of ``package`` is one for CUDA."""
    return _OF_CUDA.fullmatch(package) is not None


def _is_of(package: str, release: Release) -> bool:
    """Whether a wheel of the framework counts for ``package``: one for the CPU does not for a package for CUDA."""
    return release.cuda is not None or not is_for_cuda(package)


def first_for(case: Case, package: str, platform: Platform) -> Release | None:
    """The first wheel on pip's index of a package for CUDA for ``platform``; None where there is none."""
    every = case.knowledge.all_releases(FRAMEWORK_OF.get(package, ""), platform)
    having = (it for it in every if it.source is Source.PYPI and it.package == package)
    return min(having, key=lambda it: it.version, default=None)


def newest_pythons(case: Case, package: str) -> tuple[str, ...]:
    """The Pythons that the newest release of ``package`` on pip's index has wheels for."""
    every = case.knowledge.all_releases(FRAMEWORK_OF.get(package, ""), case.platform)
    wheels = [it for it in every if it.source is Source.PYPI and _is_of(package, it)]
    newest = max((it.version for it in wheels), default=None)
    return pythons_of([it for it in wheels if it.version == newest])


def _goes_with(release: Release, companion: str, version: Version) -> bool:
    return any(name == companion and SpecifierSet(text).contains(version) for name, text in release.companions)


def pythons_of(releases: Sequence[Release]) -> tuple[str, ...]:
    """The Pythons that some of these wheels is for, in order; abi3 wheels are for newer ones as well."""
    return tuple(sorted({python for it in releases for python in it.pythons}, key=Version))


def span(versions: Sequence[str]) -> str:
    """``3.7 to 3.11``, or the only one."""
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


def versions_by_python(case: Case, asked: Asked) -> Mapping[str, list[Version]]:
    """The releases on pip's index of what is asked for, or of its framework, for each Python, in order."""
    found: dict[str, set[Version]] = defaultdict(set)
    for release in case.knowledge.all_releases(asked.framework or "", case.platform):
        if release.source in (Source.PYPI, Source.PYTORCH) and _is_of(asked.package, release):
            for python in release.pythons:
                found[python].add(release.version)
    return {python: sorted(found[python]) for python in sorted(found, key=Version)}


def inferred_pythons(case: Case, asked: Asked) -> tuple[str, ...]:
    """The Pythons for which pip's list would begin and end as it does: the oldest release it knows is their oldest."""
    public = sorted({Version(it.base_version) for it in asked.listed or () if not it.is_prerelease})
    if asked.framework is None or asked.package not in (asked.framework, "torch", "tensorflow-gpu") or not public:
        return ()
    table = versions_by_python(case, asked)
    return tuple(
        python
        for python, versions in table.items()
        if versions[0] == public[0] and public[-1] in (*versions, versions[-1])
    )


def neighbours(case: Case, asked: Asked, pythons: Sequence[str]) -> dict[str, str]:
    """How far pip gets with the Python below those of a version, and from where on with the one above."""
    if asked.framework is None or not pythons:
        return {}
    table = versions_by_python(case, asked)
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
