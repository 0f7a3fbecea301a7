"""The grid's comparison on matrices that no one would ship, made by random changes to the shipped one.

They cover rules that shipped rows do not: code for one architecture or family alone, kernels that are PTX in part,
toolkits without a driver that supports them in full, GPUs with other lives, versions in no order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from random import Random
from typing import TypeVar

import pytest

from envsolve.matrix import Matrix, find_matrix
from envsolve.matrix.tables import CudaTable, FrameworkTable
from envsolve.model.capability import CodeTarget, DeviceCode
from envsolve.model.host import Platform
from envsolve.model.release import Architecture, CudnnRelease, Release, Toolkit
from envsolve.model.versions import DriverVersion
from envsolve.resolve.solver import Solver
from tests.resolve.reference import Cause, Shelf, Stack
from tests.resolve.test_grid import Mismatch, ask, parts

T = TypeVar("T")

QUESTIONS = 30
MINORS = ("3.9", "3.10", "3.11", "3.12")


class MadeUp(Matrix):
    """The shipped matrix with many random changes; the same seed makes the same changes."""

    def __init__(self, seed: int) -> None:
        super().__init__(find_matrix())
        self.chance = Random(seed)  # noqa: S311  # no secret
        self._true = Matrix(find_matrix())
        self._capabilities = [row.capability for row in self._true.cuda.architectures]
        self._made: dict[tuple[str, Platform | None], FrameworkTable] = {}

    @cached_property
    def cuda(self) -> CudaTable:
        """Other driver ranges, and toolkits that are missing, have no full driver or compile for other GPUs."""
        true = self._true.cuda
        return true._replace(
            architectures=tuple(self._lived(row, true) for row in true.architectures),
            toolkits=tuple(self._compiling(row) for row in true.toolkits if self._one_in(10, False, True)),
        )

    @cached_property
    def cudnn(self) -> tuple[CudnnRelease, ...]:
        """Other code, if there is any."""
        return tuple(
            row._replace(code=self._one_in(3, None, self._code()), code_aarch64=self._one_in(3, self._code(), None))
            for row in self._true.cudnn
        )

    def framework(self, name: str, platform: Platform | None) -> FrameworkTable:
        """Other code, Pythons and versions, in another order."""
        key = (name, platform)
        if key not in self._made:
            table = self._true.framework(name, platform)
            versions = [release.version for release in table.releases][::8]
            rows = [self._changed(release)._replace(version=self.chance.choice(versions)) for release in table.releases]
            self.chance.shuffle(rows)
            self._made[key] = table._replace(releases=tuple(rows))
        return self._made[key]

    def _one_in(self, number: int, rare: T, common: T) -> T:
        return common if self.chance.randrange(number) else rare

    def _lived(self, row: Architecture, cuda: CudaTable) -> Architecture:
        branches = [branch.branch for branch in cuda.branches]
        first = self.chance.choice((row.first_branch, None, self.chance.choice(branches)))
        last = self.chance.choice((row.last_branch, None, None, self.chance.randint(400, 610)))
        return row._replace(first_branch=first, last_branch=None if first and last and last < first else last)

    def _compiling(self, row: Toolkit) -> Toolkit:
        known = self.chance.sample(self._capabilities, self.chance.randint(4, 20))
        return row._replace(
            compiles_for=tuple(sorted(known)),
            linux_full=self._one_in(5, None, row.linux_full),
            windows_full=self._one_in(5, None, row.windows_full),
        )

    def _changed(self, release: Release) -> Release:
        pythons = tuple(sorted(self.chance.sample(MINORS, self.chance.randint(1, 3))))
        if release.cuda is None or self._one_in(3, True, False):
            return release._replace(pythons=pythons)
        code = self._code()
        toolkits = [row.version for row in self._true.cuda.toolkits]
        jit = tuple((target, self.chance.choice(toolkits)) for target in code.sass if self._one_in(3, True, False))
        return release._replace(pythons=pythons, code=code, jit=jit)

    def _code(self) -> DeviceCode:
        return DeviceCode(self._targets(4), self._targets(2))

    def _targets(self, most: int) -> tuple[CodeTarget, ...]:
        kinds = ("", "", "", "a", "f")
        many = range(self.chance.randint(0, most))
        found = {CodeTarget(self.chance.choice(self._capabilities), self.chance.choice(kinds)) for _ in many}
        return tuple(sorted(found))


def drivers(cuda: CudaTable, platform: Platform) -> Sequence[DriverVersion | None]:
    """Bare branches, floors and full drivers; often an unknown driver, so that the other rules matter."""
    windows = platform.is_windows
    known = [DriverVersion.parse(str(branch.branch)) for branch in cuda.branches]
    known += [toolkit.floor(windows=windows) for toolkit in cuda.toolkits]
    known += [full for toolkit in cuda.toolkits if (full := toolkit.full(windows=windows)) is not None]
    return [*known, *(None,) * (len(known) // 2)]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, *(pytest.param(it, marks=pytest.mark.thorough) for it in range(2, 13))])
def test_the_solver_agrees_with_exhaustive_search_on_a_made_up_matrix(seed: int) -> None:
    matrix = MadeUp(seed)
    solver = Solver(matrix)
    wrong, solvable, causes = [], 0, set()
    for part in parts(matrix):
        shelf = Shelf(matrix, part.framework, part.platform, part.source)
        known = drivers(matrix.cuda, part.platform)
        for _ in range(QUESTIONS):
            gpu = matrix.chance.choice(matrix.cuda.architectures).capability
            driver = matrix.chance.choice(known)
            (right,) = shelf.answers(gpu, [driver.parts if driver else None])
            answer = ask(solver, part, gpu, driver)
            if answer != (right if isinstance(right, Stack) else None):
                wrong.append(str(Mismatch(part, gpu, driver, right, answer)))
            solvable += isinstance(right, Stack)
            causes.add(right if isinstance(right, Cause) else None)
    assert wrong == []
    assert solvable > QUESTIONS
    assert causes >= {Cause.LIFE, Cause.CODE, Cause.TOOLKIT, Cause.CUDNN, Cause.FLOOR}
