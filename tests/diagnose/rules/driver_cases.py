"""What the tests of rules on drivers and machines share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from envsolve.diagnose.case import Case, Clue, Given, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis
from envsolve.diagnose.knowledge import Knowledge
from envsolve.diagnose.rules import rule_named
from envsolve.matrix import Matrix, find_matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.versions import DriverVersion

KNOWLEDGE = Knowledge(Matrix(find_matrix()))
DOCKER = {"container": "docker"}
WSL = {"wsl": "WSL"}


class Known(NamedTuple):
    """What a case knows beside its sightings: given values, and clues of the text by their fact."""

    driver: str | None = None
    cuda: str | None = None
    gpu: str | None = None
    platform: Platform | None = None
    packages: Mapping[str, str] = {}
    clues: Mapping[str, str] = {}


def seen(symptom: str, line: str = "a line", **fields: str) -> Sighting:
    return Sighting(symptom, fields, line, 1)


def case_of(known: Known, *sightings: Sighting) -> Case:
    given = Given(
        capabilities=() if known.gpu is None else (ComputeCapability.parse(known.gpu),),
        driver=None if known.driver is None else DriverVersion.parse(known.driver),
        platform=known.platform,
        cuda=known.cuda,
        packages=known.packages,
    )
    clues = {fact: (Clue(value, value, 1),) for fact, value in known.clues.items()}
    return Case(sightings, clues, given, KNOWLEDGE)


def causes(diagnoses: list[Diagnosis]) -> list[str]:
    return [cause.explanation for diagnosis in diagnoses for cause in diagnosis.causes]


def only(diagnoses: list[Diagnosis]) -> Cause:
    (diagnosis,) = diagnoses
    return diagnosis.causes[0]


def told(known: Known, *sightings: Sighting, of: str | None = None) -> list[str]:
    """The causes that the rule of the first sighting's symptom, or ``of``, finds."""
    case = case_of(known, *sightings)
    symptom = of or sightings[0].symptom
    rule = rule_named(symptom)
    assert rule is not None, symptom
    return causes(list(rule(case, case.of(symptom))))
