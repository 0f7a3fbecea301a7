"""What was requested of pip, uv or Poetry, and which wheels of it the matrix knows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.model.release import Release
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
_COMPANIONS = ("torchvision", "torchaudio")
_OF_CUDA = re.compile(
    r"(?:onnxruntime|tensorflow|paddlepaddle)-gpu|cupy-cuda\w+|jax-cuda1\d-\w+|nvidia-(?!ml-py|pyindex).+|.+-cu1\d"
)
"""Packages that hold code for CUDA in every wheel."""
_PLACEHOLDER = Version("0.0.0")
_FIRST_TORCH = Version("0.4")
"""What is older on the index are placeholders without a wheel."""
_WITHOUT_VERSION = ("no-matching-distribution", "placeholder-package")
"""Symptoms whose lines may leave out the version, which the text names elsewhere."""


class Requested(NamedTuple):
    """A package that was requested of an installer: the pinned version with its local part, and the versions it found.

    ``listed`` is None without a list, and empty for ``none``.
    """

    package: str
    version: Version | None
    listed: tuple[Version, ...] | None

    @property
    def framework(self) -> str | None:
        """The framework of the matrix that it belongs to."""
        return FRAMEWORK_OF.get(self.package)

    @property
    def lowest(self) -> str | None:
        """The oldest version in the list."""
        return self.listed[0].public if self.listed else None

    @property
    def highest(self) -> str | None:
        """The newest version in the list."""
        return self.listed[-1].public if self.listed else None


def requested(case: Case, lines: Lines) -> Requested:
    """What the lines request, by the one with a list of versions."""
    line = next((it for it in lines if it.get("versions") is not None), lines[0])
    version = line.get("pinned") or line.get("version") or line.get("lost_version")
    specifier = line.get("specifier") or (f"=={version}" if version else "")
    asked = _asked_for(requested_package(lines) or "", specifier, line.get("versions"))
    known = case.version_of(asked.framework) if asked.framework is not None else None
    if asked.version is None and not asked.listed and known is not None and line.symptom in _WITHOUT_VERSION:
        return asked._replace(version=parsed_version(known.partition("+")[0]))
    return asked


def requested_package(lines: Lines) -> str | None:
    """The package that a line of an installer is about, by its normalized name."""
    fields = merged(lines)
    if lines[0].symptom == "placeholder-package" and fields.get("package", "pytorch") == "pytorch":
        return "torch"
    names = (fields.get(it) for it in ("package", "listed", "absent", "conda_package", "lost"))
    name = next(filter(None, names), None) or fields.get("file", "").split("-")[0]
    return normalized(name) if name else None


def _asked_for(package: str, specifier: str, versions: str | None) -> Requested:
    """What a line of an installer names. Placeholders, such as 0.0.0.dev0, are no versions."""
    specifiers = _specifiers(specifier)
    pinned = next((it.version for it in specifiers if it.operator in ("==", "===")), None)
    pinned = pinned or next((it.version.rpartition(".")[0] for it in specifiers if it.operator == "~="), None)
    listed = None
    if versions is not None:
        found = (parsed_version(text.strip()) for text in versions.split(","))
        first = _FIRST_TORCH if normalized(package) == "torch" else _PLACEHOLDER
        listed = tuple(it for it in found if it is not None and it.release > _PLACEHOLDER.release and it >= first)
    return Requested(normalized(package), parsed_version(pinned.removesuffix(".*")) if pinned else None, listed)


def _specifiers(text: str) -> SpecifierSet:
    try:
        return SpecifierSet(text.replace(" ", "").strip(","))
    except ValueError:
        return SpecifierSet()


def is_for_cuda(package: str) -> bool:
    """Whether every wheel of ``package`` is one for CUDA."""
    return _OF_CUDA.fullmatch(package) is not None


def wheels_of(case: Case, asked: Requested, platform: Platform | None = None) -> tuple[Release, ...]:
    """The wheels in the matrix of the version that is requested; those that a companion goes with."""
    if asked.framework is None or asked.version is None:
        return ()
    releases = case.knowledge.all_releases(asked.framework, platform or case.platform)
    every = [it for it in releases if it.source.is_wheel and is_of(asked.package, it)]
    wanted = asked.version.release
    if asked.package in _COMPANIONS:
        return tuple(it for it in every if _goes_with(it, asked.package, Version(asked.version.public)))
    return tuple(it for it in every if it.version.release[: len(wanted)] == wanted)


def is_of(package: str, release: Release) -> bool:
    """Whether a wheel of the framework counts for ``package``: one for the CPU does not for a package for CUDA."""
    return release.cuda is not None or not is_for_cuda(package)


def _goes_with(release: Release, companion: str, version: Version) -> bool:
    return any(name == companion and SpecifierSet(text).contains(version) for name, text in release.companions)


def pythons_of(releases: Iterable[Release]) -> tuple[str, ...]:
    """The Pythons that some of these wheels is for, in order; abi3 wheels are for newer ones as well."""
    return tuple(sorted({python for it in releases for python in it.pythons}, key=Version))


def version_span(versions: Sequence[str]) -> str | None:
    """``3.7 to 3.11``, or the only one."""
    if not versions:
        return None
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
