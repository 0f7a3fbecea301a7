"""Cases for the tests of the rules on packages, installers and the rest: a text, and additional facts."""

from __future__ import annotations

from envsolve.diagnose.case import Given
from envsolve.diagnose.cause import Cause
from envsolve.diagnose.facts import CaseFacts
from envsolve.findings.catalogue import shipped
from tests.diagnose.facts.library_cases import case_of
from tests.diagnose.facts.wording import diagnoses, of_families, words

_FAMILIES = (
    *("packages", "symbols", "extensions", "tensorrt"),
    *("system", "shadowed", "outside", "building", "compilers", "installing", "wheels", "conda"),
)
_RULES = (*of_families(*_FAMILIES), "libcuda-by-short-name")
PYTORCH_2_4 = Given(packages={"torch": "2.4.1+cu121", "torchvision": "0.19.1"})


def causes_of(text: str, given: Given | None = None) -> list[str]:
    """The causes that these rules name for ``text``, by their explanations."""
    return [cause.id for cause in found_causes(text, given)]


def words_of(text: str, given: Given | None = None) -> str:
    """The complete text about the first cause."""
    case = case_of(text, given)
    return words(case, diagnoses(case, _RULES)[0])


def details_of(text: str, given: Given | None = None) -> str:
    """The additional text about the first cause with ``-v``."""
    case = case_of(text, given)
    diagnosis = diagnoses(case, _RULES)[0]
    facts = CaseFacts(case, diagnosis.sightings, shipped(), diagnosis.causes[0].fields)
    return shipped().entry(diagnosis.causes[0].id).words(facts).more


def found_causes(text: str, given: Given | None = None) -> list[Cause]:
    return [cause for diagnosis in diagnoses(case_of(text, given), _RULES) for cause in diagnosis.causes]
