"""Cases for the tests of the rules on packages, installers and what is beside them: a text, and what is known."""

from __future__ import annotations

from envsolve.diagnose.case import Given
from envsolve.diagnose.cause import Cause
from envsolve.diagnose.rules import installing, packages
from tests.diagnose.rules.library_cases import case_of
from tests.diagnose.rules.said import diagnoses, of_families, words

_RULES = (
    *packages.RULES,
    *installing.RULES,
    *of_families("system", "shadowed", "outside", "building"),
    "libcuda-by-short-name",
)
PYTORCH_2_4 = Given(packages={"torch": "2.4.1+cu121", "torchvision": "0.19.1"})


def causes_of(text: str, given: Given | None = None) -> list[str]:
    """The causes that these rules name for ``text``, by their explanations."""
    return [cause.explanation for cause in found_causes(text, given)]


def words_of(text: str, given: Given | None = None) -> str:
    """Everything that is said of the first cause."""
    case = case_of(text, given)
    return words(case, diagnoses(case, _RULES)[0])


def found_causes(text: str, given: Given | None = None) -> list[Cause]:
    return [cause for diagnosis in diagnoses(case_of(text, given), _RULES) for cause in diagnosis.causes]
