"""The text of causes, and which rules of the catalogue belong to which family."""

from __future__ import annotations

from collections.abc import Iterable

from envsolve.diagnose.case import Case
from envsolve.diagnose.cause import Diagnosis
from envsolve.diagnose.decide import diagnoses as decided
from envsolve.diagnose.facts import CaseFacts
from envsolve.diagnose.tables import Tables
from envsolve.findings.catalogue import shipped

TABLES = Tables()


def of_families(*families: str) -> tuple[str, ...]:
    """The symptoms of files of the catalogue that have a rule."""
    rows = [shipped().documents[family]["symptom"] for family in families]
    return tuple(name for row in rows if isinstance(row, dict) for name in row if name in shipped().rules)


def diagnoses(case: Case, symptoms: Iterable[str]) -> list[Diagnosis]:
    """The result of the rules on ``symptoms`` for a case."""
    return [
        diagnosis
        for symptom in symptoms
        if case.saw(symptom) and (rule := shipped().rule(symptom)) is not None
        for diagnosis in decided(rule, shipped(), case, case.of(symptom))
    ]


def words(case: Case, diagnosis: Diagnosis) -> str:
    """The complete text about the first cause."""
    cause = diagnosis.causes[0]
    facts = CaseFacts(case, diagnosis.sightings, shipped(), cause.fields)
    wording = shipped().entry(cause.id).words(facts)
    return "\n".join((wording.title, wording.cause, wording.fix, *wording.commands, wording.more))
