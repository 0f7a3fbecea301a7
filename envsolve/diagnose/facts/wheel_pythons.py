"""Facts on the Pythons for which a requested version has wheels, and on the Python that runs.

pip lists only versions that have a wheel for the Python it runs with: torch from 2.2.0 on is Python 3.12, TensorFlow up
to 2.11.0 is Python 3.7. So its list shows the interpreter. What was ever published only the matrix knows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from packaging.version import Version

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.diagnose.facts.shared.requested import (
    FRAMEWORK_OF,
    Requested,
    is_of,
    pythons_of,
    requested,
    requested_package,
    version_span,
    wheels_of,
)
from envsolve.model.host import Platform
from envsolve.model.release import Source

_INDEX = re.compile(r"cu\d{2,3}")
_SYSTEMS = {Platform.LINUX_64: "Linux", Platform.LINUX_AARCH64: "Linux on ARM", Platform.WIN_64: "Windows"}
_LAST_INTEL_MAC = Version("2.2.2")


def wheel_pythons(case: Case, lines: Lines) -> str | None:
    """The Pythons that the version has wheels for, on the platform of the case."""
    return version_span(_pythons_with_wheel(case, lines))


def _pythons_with_wheel(case: Case, lines: Lines) -> tuple[str, ...]:
    """The same without the one that uv says has none, as wheels of other systems count if none is known."""
    tag = merged(lines).get("tag", "")
    refused = f"3.{tag[3:]}" if tag.startswith("cp3") else None
    return tuple(it for it in pythons_of(wheels_of(case, requested(case, lines))) if it != refused)


def newest_pythons(case: Case, lines: Lines) -> str | None:
    """The Pythons that the newest release of the package on pip's index has wheels for."""
    return version_span(_newest_pythons(case, requested_package(lines) or ""))


def newest_python(case: Case, lines: Lines) -> str | None:
    """A Python in the middle of those that the newest release has wheels for: other packages lag behind the newest."""
    found = _newest_pythons(case, requested_package(lines) or "")
    return found[len(found) // 2] if found else None


def _newest_pythons(case: Case, package: str) -> tuple[str, ...]:
    every = case.knowledge.all_releases(FRAMEWORK_OF.get(package, ""), case.platform)
    wheels = [it for it in every if it.source is Source.PYPI and is_of(package, it)]
    newest = max((it.version for it in wheels), default=None)
    return pythons_of([it for it in wheels if it.version == newest])


class _IndexGap(NamedTuple):
    """An index of PyTorch for one CUDA that ended before a Python, and another that has wheels for it.

    ``pythons`` are those of its ``newest`` release, ``system`` the platform on which it has no other.
    """

    folder: str
    newest: Version
    pythons: str
    system: str
    other: str


def index_gap(case: Case, lines: Lines) -> _IndexGap | None:
    """The gap of the index that the text names for its Python or a current one, on Windows if no platform is known."""
    python = interpreter(case) or newest_python(case, lines)
    folders = (path.split("/")[0] for path in case.every("pytorch_index"))
    index = next(filter(_INDEX.fullmatch, folders), None)
    if requested(case, lines).framework != "pytorch" or index is None:
        return None
    for platform in (Platform.LINUX_64, Platform.WIN_64) if case.platform is None else (case.platform,):
        wheels = [it for it in case.knowledge.all_releases("pytorch", platform) if it.source is Source.PYTORCH]
        own = [it for it in wheels if it.build == index]
        others = [it for it in wheels if it.cuda is not None and python in it.pythons]
        if own and others and not any(python in it.pythons for it in own):
            newest, other = max(own, key=lambda it: it.version), max(others, key=lambda it: it.version)
            at_least = min((it for it in others if it.version == other.version), key=lambda it: str(it.cuda))
            span = version_span(newest.pythons) or ""
            return _IndexGap(index, newest.version, span, _SYSTEMS[platform], at_least.build)
    return None


def limited_python(case: Case, _lines: Lines) -> str | None:
    """The newest Python of the releases that pip ignored because they are for older ones: 3.12 of ``<3.13``."""
    limits = [int(it.partition(".")[2]) for it in case.every("python_limit")]
    return f"3.{max(limits) - 1}" if limits else None


def best_python(case: Case, lines: Lines) -> str | None:
    """The newest Python with a wheel of the version, or of the newest release."""
    found = _pythons_with_wheel(case, lines) or _newest_pythons(case, requested_package(lines) or "")
    return found[-1] if found else None


def usual_python(case: Case, lines: Lines) -> str | None:
    """A Python with a wheel of the version, before the newest one: that is most often the one that has none."""
    found = pythons_of(wheels_of(case, requested(case, lines)))
    return found[-2] if len(found) > 1 else None


def interpreter(case: Case, _lines: Lines = ()) -> str | None:
    """The Python that runs, ``3.12`` of ``3.12.4``; tags of wheels (``310``) are of files and say nothing of it."""
    python = case.given.python or next((it for it in case.every("python") if "." in it), None)
    return None if python is None else ".".join(python.split(".")[:2])


def other_interpreter(case: Case, lines: Lines) -> str | None:
    """The same, unless the version has wheels for it."""
    python = interpreter(case)
    return None if python in pythons_of(wheels_of(case, requested(case, lines))) else python


def listed_python(case: Case, lines: Lines) -> str | None:
    """The Python that pip's list of versions is of, if it is of one alone."""
    shown = _inferred_pythons(case, requested(case, lines))
    return shown[0] if len(shown) == 1 else None


def _inferred_pythons(case: Case, asked: Requested) -> tuple[str, ...]:
    """The Pythons for which pip's list would begin and end as it does: the oldest release it knows is their oldest."""
    public = sorted({Version(it.base_version) for it in asked.listed or () if not it.is_prerelease})
    if asked.framework is None or asked.package not in (asked.framework, "torch", "tensorflow-gpu") or not public:
        return ()
    return tuple(
        python
        for python, versions in _versions_by_python(case, asked).items()
        if versions[0] == public[0] and public[-1] in (*versions, versions[-1])
    )


def _versions_by_python(case: Case, asked: Requested) -> Mapping[str, list[Version]]:
    """The releases on pip's index of what is requested, or of its framework, for each Python, in order."""
    found: dict[str, set[Version]] = defaultdict(set)
    for release in case.knowledge.all_releases(asked.framework or "", case.platform):
        if release.source in (Source.PYPI, Source.PYTORCH) and is_of(asked.package, release):
            for python in release.pythons:
                found[python].add(release.version)
    return {python: sorted(found[python]) for python in sorted(found, key=Version)}


class _Older(NamedTuple):
    """A Python before those of a version, and the oldest and newest releases that pip has for it."""

    python: str
    oldest: Version
    newest: Version

    def __str__(self) -> str:
        return self.python


def older_python(case: Case, lines: Lines) -> _Older | None:
    """The Python below those of the version."""
    asked = requested(case, lines)
    table, pythons = _versions_by_python(case, asked), pythons_of(wheels_of(case, asked))
    older = [it for it in table if pythons and Version(it) < Version(pythons[0])]
    return _Older(older[-1], table[older[-1]][0], table[older[-1]][-1]) if older else None


def first_for_interpreter(case: Case, lines: Lines) -> str | None:
    """The first release of the framework with a wheel for the Python that runs, if the requested one is older."""
    asked, python = requested(case, lines), other_interpreter(case, lines)
    versions = _versions_by_python(case, asked).get(python or "", [])
    later = bool(versions) and asked.version is not None and versions[0] > asked.version
    return str(versions[0]) if later and asked.package in (asked.framework, "torch") else None


def mac_list(case: Case, lines: Lines) -> bool:
    """Whether a list of torch ends with the last release for macOS on Intel, as no Python's list elsewhere does.

    When that was the newest release every list ended with it, but then the version that is requested is no newer one.
    """
    asked = requested(case, lines)
    if asked.package != "torch" or not asked.listed or asked.listed[-1] != _LAST_INTEL_MAC:
        return False
    newer = asked.version is not None and asked.version > _LAST_INTEL_MAC
    return case.platform in (None, Platform.OSX_64) and (newer or not _inferred_pythons(case, asked))
