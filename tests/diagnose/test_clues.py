"""Facts about the machine and environment that a text mentions."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli

from envsolve.diagnose.case import Case, Given
from envsolve.diagnose.knowledge import Knowledge
from envsolve.diagnose.reading.lines import Line
from envsolve.diagnose.scan import scan
from envsolve.diagnose.tables import Tables
from envsolve.matrix import Matrix

CASES = tomli.loads((Path(__file__).parent / "clues.toml").read_text(encoding="utf-8"))["case"]
TABLES = Tables()


def case_of(text: str, matrix: Matrix) -> Case:
    lines = text.splitlines()
    read = [Line(number, line, tuple(lines[number : number + 2])) for number, line in enumerate(lines, 1)]
    seen = scan(read, TABLES)
    return Case(seen.sightings, seen.clues, Given(), Knowledge(matrix))


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"][:50])
def test_a_text_yields_facts(case: dict[str, object], matrix: Matrix) -> None:
    known = case_of(str(case["text"]), matrix)
    facts = {
        "frameworks": list(known.frameworks),
        "version": known.version_of(known.framework),
        "driver": known.driver and str(known.driver),
        "driver_cuda": known.driver_cuda and str(known.driver_cuda),
        "gpus": list(known.gpus),
        "capability": known.capability and str(known.capability),
        "toolkit": known.toolkit and str(known.toolkit),
        "built_cuda": known.built_cuda and str(known.built_cuda),
        "cudnn": known.cudnn,
        "python": known.python,
        "platform": known.platform and known.platform.value,
        "wsl": known.wsl,
        "container": known.container,
        "jetson": known.jetson,
    }
    expected = {key: value for key, value in case.items() if key not in ("text", "untold")}
    assert {key: facts[key] for key in expected} == expected
    absent = case.get("untold", [])
    assert isinstance(absent, list)
    assert {key: facts[key] for key in absent if facts[key] not in (None, [], False)} == {}
