"""Common functions of the tests of rules on drivers and machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from envsolve.diagnose.case import Case, Clue, Given, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis
from envsolve.diagnose.decide import diagnoses
from envsolve.diagnose.diagnosis import diagnoses_of
from envsolve.diagnose.knowledge import Knowledge
from envsolve.diagnose.tables import Tables
from envsolve.findings.catalogue import shipped
from envsolve.matrix import Matrix, find_matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.versions import DriverVersion

KNOWLEDGE = Knowledge(Matrix(find_matrix()))
TABLES = Tables()
DOCKER = {"container": "docker"}
WSL = {"wsl": "WSL"}


class Known(NamedTuple):
    """Facts of a case in addition to its sightings: given values, and clues of the text by their fact."""

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
        built_cuda=known.cuda,
        packages=known.packages,
    )
    clues = {fact: (Clue(value, value, 1),) for fact, value in known.clues.items()}
    return Case(sightings, clues, given, KNOWLEDGE)


def decided(known: Known, *sightings: Sighting, of: str | None = None) -> list[Diagnosis]:
    """The result of the rule of the first sighting's symptom, or of ``of``."""
    case = case_of(known, *sightings)
    symptom = of or case.sightings[0].symptom
    rule = shipped().rule(symptom)
    if rule is None:
        return [Diagnosis(tuple(map(Cause, TABLES.symptoms[symptom].explains)), case.of(symptom))]
    return list(diagnoses(rule, shipped(), case, case.of(symptom)))


def cause_ids(known: Known, *sightings: Sighting, of: str | None = None) -> list[str]:
    """The ids of the causes."""
    return [cause.id for diagnosis in decided(known, *sightings, of=of) for cause in diagnosis.causes]


def only(known: Known, *sightings: Sighting) -> Cause:
    """The most likely cause of the only diagnosis."""
    (diagnosis,) = decided(known, *sightings)
    return diagnosis.causes[0]


def words(known: Known, *sightings: Sighting) -> str:
    """The complete text about the most likely cause."""
    (finding, *_) = (it.finding for it in diagnoses_of(case_of(known, *sightings), TABLES))
    first = finding.possible_causes[0] if finding.possible_causes else finding
    return "\n".join((first.title, first.cause, first.fix, *first.commands, first.more))
