"""Cases for the tests of the rules on code for GPUs and on builds: a text, and additional facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from envsolve.diagnose.case import Case, Given
from envsolve.diagnose.cause import Cause
from envsolve.diagnose.knowledge import Knowledge
from envsolve.diagnose.reading.lines import Line
from envsolve.diagnose.scan import scan
from envsolve.matrix import Matrix, find_matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.versions import DriverVersion
from tests.diagnose.facts.wording import TABLES, diagnoses, of_families, words

KNOWLEDGE = Knowledge(Matrix(find_matrix()))
_RULES = (
    *of_families("code", "code-libraries", "code-images"),
    *of_families("gpu-features"),
    *of_families("builds", "builds-pytorch", "compilers"),
)
_FOLLOWING = 2


class Known(NamedTuple):
    """Facts in addition to a text: a capability or a GPU's name, packages with versions, the machine."""

    gpu: str | None = None
    packages: Mapping[str, str] = {}
    cuda: str | None = None
    driver: str | None = None
    platform: Platform | None = None

    def given(self) -> Given:
        names, capabilities = ((), ()) if self.gpu is None else _gpu(self.gpu)
        return Given(
            gpus=names,
            capabilities=capabilities,
            driver=None if self.driver is None else DriverVersion.parse(self.driver),
            platform=self.platform,
            built_cuda=self.cuda,
            packages=self.packages,
        )


def _gpu(text: str) -> tuple[tuple[str, ...], tuple[ComputeCapability, ...]]:
    try:
        return (), (ComputeCapability.parse(text),)
    except ValueError:
        model = KNOWLEDGE.matrix.gpus.find(text)
        return (model.name,), model.capabilities[:1]


NOTHING = Known()


def case_of(text: str, known: Known = NOTHING) -> Case:
    """What all tables find in ``text``."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    numbered = enumerate(lines, 1)
    seen = scan((Line(number, line, tuple(lines[number : number + _FOLLOWING])) for number, line in numbered), TABLES)
    return Case(seen.sightings, seen.clues, known.given(), KNOWLEDGE)


def found_causes(text: str, known: Known = NOTHING) -> list[Cause]:
    """The causes that the rules on code and builds name for ``text``."""
    return [cause for diagnosis in diagnoses(case_of(text, known), _RULES) for cause in diagnosis.causes]


def causes_of(text: str, known: Known = NOTHING) -> list[str]:
    """The explanations of these causes."""
    return [cause.id for cause in found_causes(text, known)]


def words_of(text: str, known: Known = NOTHING) -> str:
    """The complete text about the first cause."""
    case = case_of(text, known)
    return words(case, diagnoses(case, _RULES)[0])
