"""Rules of the catalogue, applied to a case: what was seen becomes diagnoses."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy
from envsolve.diagnose.facts import CaseFacts
from envsolve.findings.catalogue import Catalogue
from envsolve.findings.rule import Branch, Rule
from envsolve.findings.template import filled_if_known


def diagnoses(rule: Rule, catalogue: Catalogue, case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """What ``rule`` makes of the sightings of its symptom: of each group of them, what the first branch says."""
    for group in _groups(rule, catalogue, case, sightings):
        for branch in rule.branches:
            found = _decision(rule, branch, catalogue, case, group)
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
        value = rule.each.value(CaseFacts(case, (it,), catalogue))
        if value:
            groups.setdefault(value, []).append(it)
    yield from map(tuple, groups.values())


def _decision(
    rule: Rule, branch: Branch, catalogue: Catalogue, case: Case, sightings: tuple[Sighting, ...]
) -> Diagnosis | None:
    """What ``branch`` says; None if it does not hold. One that names no cause says that nothing is wrong."""
    part = tuple(it for it in sightings if not branch.lines or any(_has(it, field) for field in branch.lines))
    facts = CaseFacts(case, part, catalogue)
    if not part or (branch.when is not None and not branch.when.holds(facts)):
        return None
    named = dict.fromkeys(catalogue.causes(branch, facts))
    causes = [it for name in named if (it := _cause(name, catalogue, case, part, facts)) is not None]
    framework = None if rule.about is None else filled_if_known(rule.about, facts)
    if framework is not None:
        about = case.fields_of(framework)
        causes = [it._replace(fields={**it.fields, **about}) for it in causes]
    return (
        None
        if branch.causes and not causes
        else Diagnosis(tuple(causes), part, decided=bool(branch.when or branch.lines))
    )


def _cause(
    name: str, catalogue: Catalogue, case: Case, sightings: tuple[Sighting, ...], facts: CaseFacts
) -> Cause | None:
    """A cause with what speaks for it; None if something that is known rules it out."""
    entry = catalogue.entry(name)
    if not entry.is_possible(facts):
        return None
    seen = case.of(*entry.seen)
    fields = merged((*sightings, *seen))
    if case.framework is None and (about := facts("name")):
        fields["name"] = str(about)
    known = {key: text for key, it in entry.remedy.items() if (text := filled_if_known(it, facts))}
    remedy = Remedy(
        frameworks=(known["frameworks"],) if "frameworks" in known else (),
        python=known.get("python"),
        cuda=known.get("cuda"),
        platform=known.get("platform"),
    )
    return Cause(name, fields, None if remedy == Remedy() else remedy, tuple(it.line for it in seen))


def _has(sighting: Sighting, field: str) -> bool:
    """Whether a line has a field; ``!field`` is one without."""
    return not sighting.get(field[1:]) if field.startswith("!") else bool(sighting.get(field))
