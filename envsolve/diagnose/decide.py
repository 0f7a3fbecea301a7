"""Rules of the catalogue, applied to a case: what was seen becomes diagnoses."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis
from envsolve.diagnose.facts import CaseFacts
from envsolve.findings.catalogue import Branch, Catalogue, Rule


def diagnoses(rule: Rule, catalogue: Catalogue, case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """What ``rule`` makes of the sightings of its symptom: of each group of them, what the first branch says."""
    for group in _groups(rule, catalogue, case, sightings):
        for branch in rule.branches:
            found = _decision(branch, catalogue, case, group)
            if found is not None:
                if found.causes:
                    yield found
                break


def _groups(
    rule: Rule, catalogue: Catalogue, case: Case, sightings: tuple[Sighting, ...]
) -> Iterator[tuple[Sighting, ...]]:
    if rule.each is None:
        yield sightings
        return
    groups: dict[object, list[Sighting]] = {}
    for it in sightings:
        value = rule.each.value(CaseFacts(case, (it,), catalogue.facts))
        if value:
            groups.setdefault(value, []).append(it)
    yield from map(tuple, groups.values())


def _decision(branch: Branch, catalogue: Catalogue, case: Case, sightings: tuple[Sighting, ...]) -> Diagnosis | None:
    """What ``branch`` says; None where it does not hold. One that names no cause says that nothing is wrong."""
    part = tuple(it for it in sightings if not branch.lines or any(_has(it, field) for field in branch.lines))
    facts = CaseFacts(case, part, catalogue.facts)
    if not part or (branch.when is not None and not branch.when.holds(facts)):
        return None
    named = [it.id for it in branch.causes if it.when is None or it.when.holds(facts)]
    causes = [it for it in named if it not in catalogue or catalogue.entry(it).is_possible(facts)]
    if branch.causes and not causes:
        return None
    beside = tuple(it.line for it in case.of(*branch.beside))
    fields = merged(part)
    return Diagnosis(tuple(Cause(it, fields, evidence=beside) for it in dict.fromkeys(causes)), part)


def _has(sighting: Sighting, field: str) -> bool:
    """Whether a line has a field; ``!field`` is one without."""
    return not sighting.get(field[1:]) if field.startswith("!") else bool(sighting.get(field))
