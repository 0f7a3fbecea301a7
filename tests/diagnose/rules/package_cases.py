"""Cases for the tests of the rules on packages, installers and what is beside them: a text, and what is known."""

from __future__ import annotations

from envsolve.diagnose.case import Given
from envsolve.diagnose.cause import Cause
from envsolve.diagnose.rules import installing, other, packages, rule_named, shadowed
from envsolve.findings.catalogue import shipped
from tests.diagnose.rules.library_cases import case_of

_RULES = (*packages.RULES, *installing.RULES, *other.RULES, *shadowed.RULES, *shipped().rules)
PYTORCH_2_4 = Given(packages={"torch": "2.4.1+cu121", "torchvision": "0.19.1"})


def causes_of(text: str, given: Given | None = None) -> list[str]:
    """The causes that these rules name for ``text``, by their explanations."""
    return [cause.explanation for cause in found_causes(text, given)]


def words_of(text: str, given: Given | None = None) -> str:
    """Everything that the first cause tells, in one line."""
    (cause, *_) = found_causes(text, given)
    return " | ".join(f"{name}={value}" for name, value in cause.fields.items())


def found_causes(text: str, given: Given | None = None) -> list[Cause]:
    case = case_of(text, given)
    return [
        cause
        for symptom in _RULES
        if case.saw(symptom) and (rule := rule_named(symptom)) is not None
        for diagnosis in rule(case, case.of(symptom))
        for cause in diagnosis.causes
    ]
