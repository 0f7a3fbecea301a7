"""From what was seen to findings: rules name causes, the catalogue puts them into words, the root comes first.

Order of findings: errors before warnings before notes; among them by the rank of the symptom, then by the text. A weak
symptom counts only where nothing stronger is: it follows from many things.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis
from envsolve.diagnose.decide import diagnoses
from envsolve.diagnose.facts import CaseFacts
from envsolve.diagnose.tables import Symptom, Tables
from envsolve.findings.catalogue import shipped
from envsolve.model.finding import Confidence, Finding, PossibleCause, Severity

_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.INFO)
_MOST_EVIDENCE = 8
_LAST_RESORT = 88  # from this rank on a weak symptom is reported only if it is all that the text has


class WordedDiagnosis(NamedTuple):
    """A diagnosis in words, and its most likely cause; ``prose`` if only people's own words show it."""

    finding: Finding
    cause: Cause
    solvable: bool
    prose: bool


class _Ranked(NamedTuple):
    """A diagnosis in words with its place: by severity, by the rank of its symptom, by where it stands in the text."""

    order: tuple[int, int, int]
    weak: bool
    worded: WordedDiagnosis


def diagnoses_of(case: Case, tables: Tables) -> tuple[WordedDiagnosis, ...]:
    """Every diagnosis of ``case``, the root first, each finding once."""
    found: list[_Ranked] = []
    for symptom in _by_rank(case, tables):
        for diagnosis in _diagnoses(symptom, case):
            words = _worded(diagnosis, symptom, case)
            first = diagnosis.sightings[0].number if diagnosis.sightings else 0
            order = (_SEVERITIES.index(words.finding.severity), symptom.rank, first)
            found.append(_Ranked(order, symptom.weak, words))
    ordered = sorted(_without_weak(found), key=lambda it: it.order)
    return tuple(_each_once(it.worded for it in ordered))


def _by_rank(case: Case, tables: Tables) -> list[Symptom]:
    seen = dict.fromkeys(it.symptom for it in case.sightings)
    return sorted((tables.symptoms[name] for name in seen), key=lambda it: it.rank)


def _diagnoses(symptom: Symptom, case: Case) -> Iterable[Diagnosis]:
    sightings = case.of(symptom.id)
    rule = shipped().rule(symptom.id)
    if rule is not None:
        return diagnoses(rule, shipped(), case, sightings)
    fields = merged(sightings)
    causes = tuple(Cause(name, fields) for name in symptom.explains)
    return (Diagnosis(causes, sightings),) if causes else ()


def _without_weak(found: Sequence[_Ranked]) -> Sequence[_Ranked]:
    """Without the diagnoses of weak symptoms, where stronger ones are more than information."""
    strong = [it for it in found if not it.weak]
    others = [it for it in found if not (it.weak and it.order[1] >= _LAST_RESORT)]
    return next((its for its in (strong, others) if _tells_more_than_information(its)), found)


def _tells_more_than_information(found: Sequence[_Ranked]) -> bool:
    return any(it.worded.finding.severity is not Severity.INFO for it in found)


def _each_once(all_worded: Iterable[WordedDiagnosis]) -> Iterator[WordedDiagnosis]:
    """One finding for each id and subject, with the evidence of all; for causes with one title and fix, the first."""
    found: dict[tuple[str, ...], WordedDiagnosis] = {}
    for words in all_worded:
        it = words.finding
        causes = tuple(other.cause for other in it.possible_causes)
        key = (it.id, it.cause, *causes) if causes else (it.id, it.title, it.fix, *it.commands)
        known = found.get(key)
        if known is None:
            found[key] = words
            continue
        evidence = tuple(dict.fromkeys((*known.finding.evidence, *words.finding.evidence)))
        found[key] = known._replace(finding=known.finding._replace(evidence=evidence[:_MOST_EVIDENCE]))
    yield from found.values()


def _worded(diagnosis: Diagnosis, symptom: Symptom, case: Case) -> WordedDiagnosis:
    """The finding of a diagnosis: in the words of its first cause, with the others beside it."""
    evidence = tuple(
        dict.fromkeys((*(it.line for it in diagnosis.sightings), *(it for c in diagnosis.causes for it in c.evidence)))
    )
    worded = [_cause_worded(cause, diagnosis.sightings, case) for cause in diagnosis.causes]
    parts = [part for part, _ in worded]
    known = [shipped().entry(cause.id) for cause in diagnosis.causes]
    first = parts[0]
    finding = Finding(
        id=known[0].finding,
        title=first.title,
        severity=known[0].severity,
        cause=first.cause,
        fix=first.fix,
        commands=first.commands,
        evidence=evidence[:_MOST_EVIDENCE],
        in_scope=known[0].in_scope,
        about=case.framework,
        possible_causes=tuple(parts) if len(parts) > 1 else (),
        sources=tuple(dict.fromkeys(source for it in known for source in it.sources)),
        more=first.more,
        confidence=_confidence(diagnosis),
        facts=tuple((name, value) for name, value in {**case.fields, **worded[0][1]}.items() if value),
    )
    return WordedDiagnosis(finding, diagnosis.causes[0], known[0].solvable, symptom.prose)


def _confidence(diagnosis: Diagnosis) -> Confidence:
    if len(diagnosis.causes) == 1:
        return Confidence.HIGH
    return Confidence.MEDIUM if diagnosis.decided else Confidence.LOW


def _cause_worded(cause: Cause, sightings: tuple[Sighting, ...], case: Case) -> tuple[PossibleCause, Mapping[str, str]]:
    """A cause in words, and the facts that these name."""
    said = shipped().entry(cause.id).words(CaseFacts(case, sightings, shipped(), cause.fields))
    part = PossibleCause(cause.id, said.title, said.cause, said.fix, said.commands, said.check, said.shows, said.more)
    return part, said.facts
