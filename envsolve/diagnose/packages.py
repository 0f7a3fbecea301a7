"""Which packages a text says are installed, and which framework it is about.

Names become those of the matrix: ``torch`` and conda's ``pytorch`` are one framework.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from envsolve.frameworks import FRAMEWORKS, frameworks_among
from envsolve.model.names import normalized

if TYPE_CHECKING:
    from envsolve.diagnose.case import Case, Clue

_ALIASES = {alias: it.name for it in FRAMEWORKS.values() for alias in it.aliases}


def packages_in(clues: Mapping[str, tuple[Clue, ...]]) -> Mapping[str, str]:
    """Packages by normalized name with their first version in the text, and its build if a later line has that.

    What a program says it runs with comes before what people write and lists show.
    """
    found: dict[str, str] = {}
    for clue in (*clues.get("running_package", ()), *clues.get("package", ())):
        name, _, version = clue.value.partition("==")
        key = _ALIASES.get(normalized(name)) or _ALIASES.get(name.lower()) or normalized(name)
        if not found.get(key) or version.startswith(f"{found[key]}+"):
            found[key] = version
    return found


def frameworks_in(case: Case) -> tuple[str, ...]:
    """The frameworks that a case is about: those given, those in lines with a symptom, packages, those named at all."""
    found: dict[str, None] = {}
    found |= dict.fromkeys(_among(case.given.packages))
    for sighting in case.sightings:
        found |= dict.fromkeys(_named_in(sighting.line))
    found |= dict.fromkeys(_among(case.packages))
    for value in case.every("framework"):
        found |= dict.fromkeys(_named_in(value))
    return tuple(found)


def version_in(case: Case, framework: str) -> str | None:
    """The version of ``framework`` among the packages of a case; for the most likely, one that stands there alone.

    A text on TensorFlow may say "2.16.2 doesn't see my GPU".
    """
    known = FRAMEWORKS.get(framework)
    if known is None:
        return None
    versions = (version for name, version in case.packages.items() if version and known.is_installed_as(name))
    alone = (it for it in case.every("version_alone") if framework == case.framework)
    return next(versions, None) or next((it for it in alone if case.knowledge.releases(framework, it)), None)


def _among(packages: Mapping[str, str]) -> Iterator[str]:
    for name in packages:
        yield from (it.name for it in frameworks_among([name]))


def _named_in(line: str) -> Iterator[str]:
    """The frameworks that ``line`` names, in the order in which it does."""
    found = [(place, name) for name, it in FRAMEWORKS.items() if (place := it.place_in(line)) is not None]
    yield from (name for _, name in sorted(found))
