"""How much is read of wheels that the matrix does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.app.packages.audit import ALL, BUDGET, WheelAudit
from envsolve.app.packages.wheel_facts import Reading
from envsolve.binary.package_facts import PackageFacts
from envsolve.matrix import Matrix
from envsolve.model.build_facts import BuildFacts
from envsolve.model.capability import CodeTarget, DeviceCode
from envsolve.model.fact import Evidence, EvidenceKind
from envsolve.model.need import parse_need
from envsolve.model.package import PackageFile, Pin
from envsolve.model.request import Audit, Packages, Request
from tests.resolve.closure.test_bounds import solution

WHEEL = "a-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"


class Readings:
    """A reader that records how it is called."""

    def __init__(self) -> None:
        self.all: list[Reading] = []

    def read(self, readings: Iterable[Reading], _: Callable[[str], None]) -> list[PackageFacts | None]:
        self.all += readings
        return [None for _ in self.all]


def known_code(*targets: str) -> BuildFacts:
    evidence = (Evidence(EvidenceKind.WHEEL, "a-2.0.whl", "2026-11-26"),)
    code = DeviceCode(tuple(map(CodeTarget.parse, targets)))
    return BuildFacts("a", SpecifierSet("==2.0"), None, (), (), "", evidence, code=code)


@pytest.mark.parametrize(
    ("mode", "known", "requires", "name", "budget"),
    [
        (Audit.AUTO, (), ("torch",), WHEEL, BUDGET),
        (Audit.AUTO, (), ("click",), WHEEL, None),
        (Audit.AUTO, (), ("torch",), "a-1.0-py3-none-any.whl", None),
        (Audit.AUTO, ("8.6",), ("click",), WHEEL, BUDGET),
        (Audit.AUTO, ("9.0",), ("click",), WHEEL, 4 * BUDGET),  # nothing that is known suits: older ones are read
        (Audit.FULL, (), ("click",), WHEEL, ALL),
        (Audit.OFF, (), ("torch",), WHEEL, None),
    ],
)
def test_facts_read_from_a_wheel(
    matrix: Matrix, mode: Audit, known: tuple[str, ...], requires: tuple[str, ...], name: str, budget: int | None
) -> None:
    more = matrix.with_builds([known_code(*known)] if known else [])
    readings = Readings()
    request = Request((), packages=Packages(audit=mode))
    audit = WheelAudit(request, lambda: readings, None)  # type: ignore[arg-type, return-value]  # reads nothing
    pin = Pin("a", "1.0", (PackageFile(name, f"http://127.0.0.1/{name}"),), None, requires=requires)
    audit.facts_of([pin], solution(matrix, "jax", "8.6", "580.65.06"), more)
    assert [it.budget for it in readings.all] == ([] if budget is None else [budget])


def test_requirements_of_a_row_are_not_merged_with_those_of_the_next_release(matrix: Matrix) -> None:
    newer = known_code("8.6")._replace(requires=(parse_need("torch==2.6.*"), parse_need("triton")))
    row = newer._replace(versions=SpecifierSet("<2"), requires=(parse_need("torch>=2.4,<2.7"),), code=None)
    request = Request((), packages=Packages())
    audit = WheelAudit(request, Readings, None)  # type: ignore[arg-type]  # reads nothing
    pin = Pin("a", "1.0", (PackageFile(WHEEL, f"http://127.0.0.1/{WHEEL}"),), None, requires=("torch",))
    stack = solution(matrix, "jax", "8.6", "580.65.06")
    found = audit.facts_of([pin], stack, matrix.with_builds([newer, row]))
    assert [str(need) for it in found for need in it.requires] == ["triton"]
