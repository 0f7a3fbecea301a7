"""CUDA libraries that cannot be loaded: broken links, files that are empty, truncated, or for another processor.

The loader stops at an empty or damaged file, and a program fails although a good copy is further on. It skips a broken
link.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from envsolve.binary.unreadable import Damage
from envsolve.diagnose.machine.libraries import component, damage_of
from envsolve.diagnose.machine.survey import Survey
from envsolve.model.finding import Finding, Severity
from envsolve.validation.installed import is_of_driver

_ENDS_THE_SEARCH = (Damage.EMPTY, Damage.NO_LIBRARY, Damage.TRUNCATED)
_NEEDED = ("cuda", "nvidia-ml", "nvidia-ptxjitcompiler")
"""The driver libraries that CUDA programs need."""
_MOST_NAMED = 20
_IN_TOOLKITS = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "bin")


class Broken(NamedTuple):
    """One file: its path, what is wrong with it, and whether the loader reaches it."""

    path: str
    damage: Damage
    detail: str
    is_searched: bool

    @property
    def severity(self) -> Severity:
        """An error if a program that needs it fails."""
        name = self.path.rpartition("/")[2]
        of_driver = component(name) in _NEEDED
        fatal = of_driver or (self.damage in _ENDS_THE_SEARCH and not is_of_driver(name))
        return Severity.ERROR if self.is_searched and fatal and ".so." in name else Severity.WARNING


_IDS: Mapping[Damage, str] = {
    Damage.BROKEN_LINK: "library-link-broken",
    Damage.EMPTY: "library-empty",
    Damage.NO_LIBRARY: "library-damaged",
    Damage.TRUNCATED: "library-damaged",
    Damage.OTHER_MACHINE: "library-for-other-machine",
    Damage.UNREADABLE: "library-unreadable",
}


def check_files(survey: Survey) -> Iterator[Finding]:
    """One finding for each kind of damage: CUDA libraries in the loader's directories and toolkits that do not load."""
    broken = sorted(dict.fromkeys(_broken(survey)), key=lambda it: it.severity is not Severity.ERROR)
    for identifier in dict.fromkeys(_IDS[it.damage] for it in broken):
        yield _finding(identifier, [it for it in broken if _IDS[it.damage] == identifier], survey)


def _finding(identifier: str, files: list[Broken], survey: Survey) -> Finding:
    """The finding for ``files``; the most important come first and set the severity."""
    first = files[0]
    stray = _stray(survey, first.path)
    facts: dict[str, object] = {
        "library": first.path.rpartition("/")[2],
        "path": first.path,
        "detail": first.detail,
        "damage": first.damage.value,
        "more_files": len(files) - 1,
    }
    if stray:
        facts |= survey.facts_without(stray)
    evidence = (f"{it.path} {it.detail}" for it in files[:_MOST_NAMED])
    return survey.finding(identifier, evidence, severity=first.severity, about=first.path, **facts)


def _stray(survey: Survey, path: str) -> list[str]:
    """The entries of LD_LIBRARY_PATH that lead to a file that belongs to no known package."""
    owners = (*(it.path for it in survey.toolkits), *survey.of_environments, *survey.loader.defaults)
    if any(path.startswith(f"{it.rstrip('/')}/") for it in owners):
        return []
    return [
        it
        for it in survey.library_directories
        if survey.is_linux and survey.files.real(it) == survey.files.parent(path)
    ]


def _broken(survey: Survey) -> Iterator[Broken]:
    searched = (*survey.loader.library_path, *survey.loader.defaults) if survey.is_linux else survey.library_directories
    for directory in dict.fromkeys(searched):
        yield from _in(survey, directory, is_searched=survey.is_linux)
    for toolkit in survey.toolkits:
        for place in _IN_TOOLKITS:
            directory = survey.files.join(toolkit.path, *place.split("/"))
            if toolkit.path != "/usr" and survey.files.real(directory) not in map(survey.files.real, searched):
                yield from _in(survey, directory, is_searched=False)


def _in(survey: Survey, directory: str, *, is_searched: bool) -> Iterator[Broken]:
    real = survey.files.real(directory)
    for name in survey.files.names(directory):
        if component(name) is None or real is None:
            continue
        path = survey.files.join(real, name)
        damage = _damage(survey, path)
        if damage is not None and not _is_usual(survey, directory, name, damage[0]):
            yield Broken(path, *damage, is_searched)


def _damage(survey: Survey, path: str) -> tuple[Damage, str] | None:
    real = survey.files.real(path)
    if real is None:
        target = survey.files.link(path)
        if target is None or path in survey.files.gaps:
            return None
        return Damage.BROKEN_LINK, f"is a link to {target}, which is not there"
    if real != path and survey.files.parent(real) == survey.files.parent(path):
        return None
    if survey.files.size(real) == 0:
        return Damage.EMPTY, "is empty"
    if survey.loader.abi is None:
        return None
    error = damage_of(survey.files, real, survey.loader.abi)
    return None if error is None else (error.damage, error.detail)


def _is_usual(survey: Survey, directory: str, name: str, damage: Damage) -> bool:
    """Whether the damage is normal in this place.

    /usr/lib of Fedora is for 32 bits. A container runtime leaves empty files in images that were made with GPUs, and
    mounts the driver's libraries over them.
    """
    if damage is Damage.OTHER_MACHINE:
        return directory in survey.loader.defaults
    return damage is Damage.EMPTY and survey.container is not None and is_of_driver(name)
