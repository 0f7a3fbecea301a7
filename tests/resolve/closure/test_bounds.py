"""The bounds that a stack sets on the packages around it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.app.packages.stack_wheels import bounds_of
from envsolve.app.request.targets import target_of
from envsolve.matrix import Matrix
from envsolve.model.build_facts import BuildFacts
from envsolve.model.capability import CodeTarget, DeviceCode
from envsolve.model.fact import Evidence, EvidenceKind
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Solution
from envsolve.model.versions import CudaVersion, DriverVersion
from envsolve.resolve.closure.bounds import NEVER, Bounds
from envsolve.resolve.closure.unknown_builds import is_unknown
from envsolve.resolve.solver import Solver


def solution(matrix: Matrix, framework: str, gpu: str, driver: str | None = None) -> Solution:
    """The stack of wheels for one framework on one GPU."""
    request = Request(
        frameworks=(FrameworkRequest(framework, SpecifierSet()),),
        gpus=(gpu,),
        driver=None if driver is None else DriverVersion.parse(driver),
        platforms=(Platform.LINUX_64,),
        format="requirements",
    )
    target = target_of(request, matrix, {})
    found = Solver(matrix).solve(target.request, target.problem)
    assert found is not None
    return found


def bounds(matrix: Matrix, found: Solution) -> Bounds:
    rivals = {"onnxruntime-gpu": frozenset({"onnxruntime"})}
    return Bounds(found, lambda: matrix.cuda, lambda: matrix.components, matrix.cudnn, rivals, matrix.build_facts)


def specifiers(limits: Bounds, name: str) -> list[str]:
    return [limit.specifier for limit in limits.of(name)]


@pytest.mark.parametrize("gpu", ["5.2", "6.1", "7.0"])
def test_a_cudnn_that_dropped_the_gpu_is_excluded(gpu: str, matrix: Matrix) -> None:
    limits = bounds(matrix, solution(matrix, "jax", gpu, "580.65.06"))
    assert specifiers(limits, "nvidia-cudnn-cu12") == ["<9.11"]
    assert f"no code for compute capability {gpu}" in limits.of("nvidia-cudnn-cu12")[0].because


def test_an_nccl_that_dropped_maxwell_is_excluded_only_for_it(matrix: Matrix) -> None:
    assert specifiers(bounds(matrix, solution(matrix, "jax", "5.2")), "nvidia-nccl-cu12") == ["<2.28.3"]
    assert specifiers(bounds(matrix, solution(matrix, "jax", "6.0")), "nvidia-nccl-cu12") == []


def test_packages_of_another_cuda_are_excluded(matrix: Matrix) -> None:
    limits = bounds(matrix, solution(matrix, "jax", "7.0"))
    for name in ("nvidia-cudnn-cu13", "jax-cuda11-plugin", "jax-cuda13-plugin", "cupy-cuda13x", "nvidia-cublas"):
        assert specifiers(limits, name) == [NEVER], name
    assert specifiers(limits, "cuda-bindings") == ["==12.*"]
    assert specifiers(limits, "numpy") == specifiers(limits, "nvidia-ml-py") == []


def test_libraries_of_an_older_cuda_may_be_installed_beside_the_stack(matrix: Matrix) -> None:
    limits = bounds(matrix, solution(matrix, "jax", "8.6", "580.65.06"))
    assert specifiers(limits, "nvidia-cutlass-dsl-libs-cu12") == specifiers(limits, "nvidia-cublas-cu12") == []
    assert specifiers(limits, "jax-cuda12-plugin") == [NEVER]


def test_a_compiler_matches_the_toolkit_if_kernels_are_compiled_on_the_machine(matrix: Matrix) -> None:
    compiled = solution(matrix, "tensorflow", "10.0", "580.65.06")
    assert [it for it in compiled.choices[0].runs_as.values() if it.startswith("compute_")]
    assert specifiers(bounds(matrix, compiled), "nvidia-cuda-nvrtc-cu12") != []
    ready = solution(matrix, "tensorflow", "8.6", "580.65.06")
    assert specifiers(bounds(matrix, ready), "nvidia-cuda-nvrtc-cu12") == []
    for makes_machine_code in ("nvidia-cublas-cu12", "nvidia-nvjitlink-cu12"):
        assert specifiers(bounds(matrix, compiled), makes_machine_code) == []


def test_a_linked_runtime_needs_the_driver_or_the_stack(matrix: Matrix) -> None:
    evidence = (Evidence(EvidenceKind.WHEEL, "x.whl", "2026-11-26"),)
    known = BuildFacts("x", SpecifierSet(">=2"), None, (), (), "", evidence, linked_cuda=13)
    more = matrix.with_builds([known])
    for driver, expected in (("550.54.14", [">=2"]), ("580.65.06", []), (None, [])):
        assert specifiers(bounds(more, solution(more, "jax", "8.6", driver)), "x") == expected
    limits = bounds(more, solution(more, "jax", "6.1"))  # CUDA 12, whatever the driver
    assert limits.of("x")[0].because.endswith("has the runtime of CUDA 13 linked in, this stack is for CUDA 12.9")
    assert matrix.build_facts("x") == ()


CODE = DeviceCode((CodeTarget.parse("7.5"),), ())


def of_builds(**facts: Any) -> BuildFacts:
    evidence = (Evidence(EvidenceKind.WHEEL, "x.whl", "2026-11-26"),)
    known: dict[str, Any] = {"cuda": None, "loss": "", **facts}
    return BuildFacts("x", SpecifierSet(">=2"), requires=(), constraints=(), evidence=evidence, **known)


def test_code_for_the_cuda_of_another_stack_is_no_bound(matrix: Matrix) -> None:
    for cuda, expected in ((">=12.4,<13", [">=2"]), (">=13,<14", []), (">=11.8,<12.9", [])):
        more = matrix.with_builds([of_builds(code=CODE, with_cuda=SpecifierSet(cuda))])
        assert specifiers(bounds(more, solution(more, "jax", "6.1")), "x") == expected  # CUDA 12.9


def test_facts_about_another_platform_are_no_bound(matrix: Matrix) -> None:
    more = matrix.with_builds([of_builds(code=CODE, platforms=(Platform.WIN_64,))])
    assert bounds_of(solution(more, "jax", "6.1"), more).of("x") == ()
    assert more.build_facts("x", Platform.WIN_64) == more.build_facts("x")


def test_facts_about_builds_from_the_source_of_the_stack_are_no_bounds(matrix: Matrix) -> None:
    more = matrix.with_builds([of_builds(code=CODE, cuda=SpecifierSet("==13.*"), linked_cuda=13)])
    found = solution(more, "jax", "6.1")
    tables = partial(Bounds, found, lambda: more.cuda, lambda: more.components, more.cudnn, {}, more.build_facts)
    assert tables(["x"]).of("x") == ()
    assert len(tables().of("x")) == 3


def test_excluded_versions_are_reported_for_cuda_gpu_and_driver(matrix: Matrix) -> None:
    for facts, why in (
        ({"cuda": SpecifierSet("==13.*")}, "loads the libraries of CUDA 13"),
        ({"code": CODE}, "has no code for compute capability 6.1"),
        (
            {"code": DeviceCode((), (CodeTarget.parse("6.0"),)), "ptx_cuda": CudaVersion(12, 9)},
            "has only PTX of CUDA 12.9 for compute capability 6.1, the driver compiles that of CUDA 12.8 at most",
        ),
        ({"linked_cuda": 13}, "has the runtime of CUDA 13 linked in, this stack is for CUDA 12.9"),
    ):
        more = matrix.with_builds([of_builds(loss="it is slow", **facts)])
        found = solution(more, "jax", "6.1", "570.26" if "ptx_cuda" in facts else None)
        assert list(bounds(more, found).lost("x", "2.0")) == [f"x 2.0 {why}: it is slow"]
        assert bounds_of(found, more, in_part=True).of("x") == ()


def test_optional_kernels_are_known_and_no_bound(matrix: Matrix) -> None:
    facts = of_builds(loss="kernels for some GPUs")
    more = matrix.with_builds([facts])
    limits = bounds(more, solution(more, "jax", "6.1"))
    assert (limits.of("x"), list(limits.lost("x", "2.0"))) == ((), [])
    assert not is_unknown("x", "2.0", [facts])


def test_facts_about_cuda_do_not_apply_to_a_build_from_elsewhere(matrix: Matrix) -> None:
    assert of_builds(code=CODE).covers("2.1")
    assert not of_builds(code=CODE).covers("2.1+cu126")
    assert of_builds(loss="kernels for some GPUs").covers("2.1+cu126")


@pytest.mark.parametrize(("source", "expected"), [(Source.PYPI, ["<2"]), (Source.CONDA_FORGE, [])])
def test_known_conflicts_of_a_wheel_are_bounds(source: Source, expected: list[str], matrix: Matrix) -> None:
    found = solution(matrix, "jax", "8.6")
    release = found.choices[0].release._replace(source=source, constraints=("numpy<2", "scipy<1.13"))
    limits = bounds(matrix, found._replace(choices=(found.choices[0]._replace(release=release),)))
    assert specifiers(limits, "numpy") == expected
    assert [it.because for it in limits.of("numpy")] == [f"jax {release.version} breaks without numpy<2"] * len(
        expected
    )
    assert specifiers(limits, "pandas") == []


def test_only_one_of_two_packages_with_the_same_module_is_installed(matrix: Matrix) -> None:
    assert specifiers(bounds(matrix, solution(matrix, "onnxruntime", "8.6")), "onnxruntime") == [NEVER]
