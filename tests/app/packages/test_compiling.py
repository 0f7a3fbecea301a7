"""How to compile source distributions with kernels: the known packages and their GPUs."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from envsolve.app.packages.compiling import Kernels, kernels
from envsolve.index.build_bounds import builds_document
from envsolve.matrix.load import Matrix
from envsolve.model.capability import CodeTarget, ComputeCapability
from envsolve.model.host import Platform

_KEYS = {"package", "versions", "archs", "digits", "targets", "needs", "environment", "expect", "reference", "seen"}
_ANY = Kernels("kernels", SpecifierSet(), ())
_FOR_AMPERE = _ANY._replace(targets=(CodeTarget.parse("8.0"),))


@pytest.mark.parametrize("row", builds_document("kernels.toml")["kernels"], ids=lambda it: it["package"])
def test_each_row_names_the_source_distribution_that_was_read(row: dict[str, object]) -> None:
    assert row.keys() <= _KEYS
    assert f"{str(row['package']).replace('-', '_')}-" in str(row["reference"])


@pytest.mark.parametrize("known", kernels(), ids=lambda it: it.package)
def test_each_names_what_its_build_needs_and_what_it_compiles_for(known: Kernels) -> None:
    assert {Requirement(it).name for it in known.needs} >= {"ninja", "setuptools", "wheel"}
    assert known.archs or known.targets
    assert known.targets_for([ComputeCapability(8, 6)])


def test_sources_compile_for_the_architectures_of_the_matrix(matrix: Matrix) -> None:
    (known,) = (it for it in kernels() if it.package == "flash-attn")
    rows = [it.code for it in matrix.build_facts("flash-attn", Platform.LINUX_64) if it.versions == known.versions]
    assert {target for code in rows if code is not None for target in code.sass} == set(known.targets)


@pytest.mark.parametrize(
    ("known", "gpus", "targets"),
    [
        (_ANY, ["9.0", "8.6", "9.0"], ["8.6", "9.0"]),
        (_ANY._replace(digits=True), ["12.0"], ["120"]),
        (_FOR_AMPERE, ["8.6", "8.9"], ["8.0"]),
        (_FOR_AMPERE, ["8.6", "7.5"], None),
    ],
)
def test_code_is_compiled_for_exactly_these_gpus(known: Kernels, gpus: list[str], targets: list[str] | None) -> None:
    assert known.targets_for(map(ComputeCapability.parse, gpus)) == targets
