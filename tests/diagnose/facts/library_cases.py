"""Cases for the tests of the rules on libraries: made of a text and additional facts."""

from __future__ import annotations

from collections.abc import Mapping

from envsolve.diagnose.case import Case, Given
from envsolve.diagnose.cause import Cause
from envsolve.diagnose.knowledge import Knowledge
from envsolve.diagnose.reading.lines import Line
from envsolve.diagnose.scan import scan
from envsolve.diagnose.tables import Tables
from envsolve.matrix import Matrix, find_matrix
from tests.diagnose.facts.wording import diagnoses, of_families, words

KNOWLEDGE = Knowledge(Matrix(find_matrix()))
_TABLES = Tables()
_SYMPTOMS = of_families("libraries", "dlls", "cudnn")
_FOLLOWING = 2


def case_of(text: str, given: Given | None = None) -> Case:
    """What all tables find in ``text``."""
    lines = [line.strip() for line in text.splitlines()]
    seen = scan(
        (Line(number, line, tuple(lines[number : number + _FOLLOWING])) for number, line in enumerate(lines, 1)),
        _TABLES,
    )
    return Case(seen.sightings, seen.clues, given or Given(), KNOWLEDGE)


def causes_of(text: str, given: Given | None = None) -> list[str]:
    """The causes that the rules on libraries and cuDNN name for ``text``, by their explanations."""
    return [cause.id for cause in _causes(case_of(text, given))]


def fields_of(text: str, given: Given | None = None) -> Mapping[str, str]:
    """The fields of the first cause."""
    return _causes(case_of(text, given))[0].fields


def words_of(text: str, given: Given | None = None) -> str:
    """The complete text about the first cause."""
    case = case_of(text, given)
    return words(case, diagnoses(case, _SYMPTOMS)[0])


def _causes(case: Case) -> list[Cause]:
    return [cause for diagnosis in diagnoses(case, _SYMPTOMS) for cause in diagnosis.causes]
