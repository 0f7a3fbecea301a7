"""Cases for the tests of the rules on packages, installers and what is beside them: a text, and what is known."""

from __future__ import annotations

from envsolve.diagnose.case import Case, Given
from envsolve.diagnose.cause import Cause, Diagnosis
from envsolve.diagnose.facts import CaseFacts
from envsolve.diagnose.rules import installing, packages, rule_named
from envsolve.findings.catalogue import shipped
from tests.diagnose.rules.library_cases import case_of

_RULES = (*packages.RULES, *installing.RULES, *shipped().rules)
PYTORCH_2_4 = Given(packages={"torch": "2.4.1+cu121", "torchvision": "0.19.1"})


def causes_of(text: str, given: Given | None = None) -> list[str]:
    """The causes that these rules name for ``text``, by their explanations."""
    return [cause.explanation for cause in found_causes(text, given)]


def words_of(text: str, given: Given | None = None) -> str:
    """Everything that is said of the first cause; of one that an older table explains, its fields in one line."""
    case = case_of(text, given)
    (diagnosis, *_) = _diagnoses(case)
    cause = diagnosis.causes[0]
    if cause.explanation not in shipped().of_texts:
        return " | ".join(f"{name}={value}" for name, value in cause.fields.items())
    facts = CaseFacts(case, diagnosis.sightings, shipped().facts, cause.fields)
    said = shipped().entry(cause.explanation).said(facts)
    return "\n".join((said.title, said.cause, said.fix, *said.commands))


def found_causes(text: str, given: Given | None = None) -> list[Cause]:
    return [cause for diagnosis in _diagnoses(case_of(text, given)) for cause in diagnosis.causes]


def _diagnoses(case: Case) -> list[Diagnosis]:
    return [
        diagnosis
        for symptom in _RULES
        if case.saw(symptom) and (rule := rule_named(symptom)) is not None
        for diagnosis in rule(case, case.of(symptom))
    ]
