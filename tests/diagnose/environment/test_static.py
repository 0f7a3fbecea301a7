"""Findings of the static checks in an environment, one fault at a time; a correct one has none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envsolve.frameworks import FRAMEWORKS
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Finding, Severity
from envsolve.model.versions import LibcVersion
from envsolve.validation.installed import Files
from envsolve.validation.report import Owner, StaticReport
from tests.binary.layouts import real_loader
from tests.diagnose.environment.static_environment import AMPERE, NVIDIA, Environment, examined
from tests.scripts.fat_binary import fat_binary
from tests.validation.compiled import compiled

PASCAL, VOLTA, BLACKWELL = ComputeCapability(6, 1), ComputeCapability(7, 0), ComputeCapability(12, 0)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    real_loader()
    return Environment(tmp_path / "environment")


def _found(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(finding.id, finding.severity.value) for finding in findings]


def _only(findings: tuple[Finding, ...]) -> Finding:
    (finding,) = findings
    return finding


@pytest.mark.thorough
def test_a_sound_environment_has_no_findings_and_says_where_cuda_comes_from(environment: Environment) -> None:
    environment.nvidia()
    environment.torch()
    report = environment.examined(AMPERE)
    assert report.findings == ()
    own = [it for it in report.libraries if it.owner is not Owner.DRIVER]
    assert {it.soname: it.path for it in own} == {
        name: environment.site / place / name for name, place in NVIDIA.items()
    }
    assert {it.owner for it in own} == {Owner.ENVIRONMENT}


def test_an_environment_without_frameworks_has_nothing_to_find(environment: Environment) -> None:
    assert environment.examined(AMPERE) == StaticReport((), ())


@pytest.mark.thorough
def test_a_framework_without_code_for_the_gpu_is_named_with_what_it_has(environment: Environment) -> None:
    environment.nvidia()
    environment.torch()
    finding = _only(environment.examined(AMPERE, PASCAL).findings)
    assert (finding.id, finding.severity) == ("no-code-for-gpu", Severity.ERROR)
    assert finding.title == "PyTorch has no code for GPUs of capability 6.1"
    assert "libtorch_cuda.so has code for 7.5, 8.0, 9.0" in finding.cause
    assert finding.commands == ("envsolve --framework pytorch --gpu 6.1",)


def test_a_framework_that_has_only_ptx_for_the_gpu_works_after_a_while(environment: Environment) -> None:
    environment.nvidia()
    environment.torch(fat_binary((80,), (90,)))
    finding = _only(environment.examined(BLACKWELL).findings)
    assert (finding.id, finding.severity) == ("ptx-only", Severity.INFO)
    assert "PTX for 9.0" in finding.cause


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("library", "fails"),
    [
        ("libcudnn_ops.so.9", "convolutions and normalization"),
        ("libcudnn_cnn.so.9", "convolutions"),
        ("libcublasLt.so.12", "matrix products"),
    ],
)
def test_a_library_without_code_where_the_framework_has_some_breaks_a_part(
    library: str, fails: str, environment: Environment
) -> None:
    every = dict.fromkeys(NVIDIA, fat_binary((70, 80)))
    environment.nvidia(code={**every, library: fat_binary((75, 80))})
    environment.torch(fat_binary((70, 80)))
    finding = _only(environment.examined(VOLTA).findings)
    assert (finding.id, finding.severity) == ("library-without-code-for-gpu", Severity.ERROR)
    assert finding.title.startswith(f"{library} has no code")
    assert f"7.5, 8.0 only: {fails} fail" in finding.cause


@pytest.mark.thorough
def test_a_missing_library_is_named_with_its_package_and_the_searched_paths(
    environment: Environment,
) -> None:
    environment.nvidia(without=("libcublas.so.12", "libcublasLt.so.12"))
    environment.torch()
    finding = _only(environment.examined(AMPERE).findings)
    assert (finding.id, finding.severity) == ("library-missing", Severity.ERROR)
    assert "libtorch_cuda.so needs libcublas.so.12, libcublasLt.so.12" in finding.cause
    assert finding.commands == ("pip install nvidia-cublas-cu12",)
    assert f"looked in {environment.site}/torch/lib/../../nvidia/cublas/lib/ (DT_RPATH)" in finding.evidence
    assert "looked in /etc/ld.so.cache (ld.so.cache)" in finding.evidence


@pytest.mark.thorough
def test_in_a_conda_environment_the_package_is_conda_s(environment: Environment) -> None:
    environment.nvidia(without=("libcublas.so.12",))
    environment.torch()
    finding = _only(environment.examined(AMPERE, is_conda=True).findings)
    assert finding.commands == ("conda install -c conda-forge libcublas",)


@pytest.mark.thorough
def test_libraries_that_tensorflow_opens_by_name_are_required_with_a_gpu(environment: Environment) -> None:
    environment.nvidia(without=("libcudart.so.12",))
    environment.tensorflow()
    missed = environment.examined(AMPERE).findings
    assert ("library-missing", "error") in _found(missed)
    assert any("libcudart.so.12" in it.cause for it in missed)
    assert environment.examined().findings == ()


@pytest.mark.thorough
def test_a_foreign_library_is_found_if_the_search_path_allows_it(environment: Environment, tmp_path: Path) -> None:
    """DT_RUNPATH, of TensorFlow, is searched after LD_LIBRARY_PATH; DT_RPATH, of PyTorch, before."""
    environment.nvidia()
    environment.torch()
    environment.tensorflow()
    for name in ("libcufft.so.11", "libcusparse.so.12", "libcusolver.so.11"):
        environment.library(f"nvidia/cublas/lib/{name}")
    environment.library("libcudart.so.12", root=tmp_path / "toolkit")
    environment.library("libtorch_cuda.so", root=tmp_path / "toolkit")
    environment.write("tensorflow/libtensorflow_cc.so.2")
    environment.tensorflow()
    report = environment.examined(AMPERE, LD_LIBRARY_PATH=str(tmp_path / "toolkit"))
    foreign = [it for it in report.findings if it.id == "foreign-library"]
    finding = _only(tuple(foreign))
    assert finding.severity is Severity.WARNING
    assert finding.cause.startswith(f"{tmp_path}/toolkit/libcudart.so.12 is loaded instead of")
    assert Owner.SYSTEM in {it.owner for it in report.libraries if it.soname == "libcudart.so.12"}


@pytest.mark.thorough
@pytest.mark.parametrize("where", ["beside", "needed"])
def test_a_foreign_library_of_another_major_is_an_error(where: str, environment: Environment, tmp_path: Path) -> None:
    """libcusolver.so.11 is part of CUDA 11 and of CUDA 12: the libraries beside it, or those it needs, show which."""
    environment.nvidia()
    environment.tensorflow()
    place = "nvidia/cusolver/lib"
    for name in ("libcufft.so.11", "libcusparse.so.12"):
        environment.library(f"nvidia/cublas/lib/{name}")
    environment.library(f"{place}/libcusolver.so.11")
    runpath = f"$ORIGIN:$ORIGIN/../{place}"
    environment.library("tensorflow/libtensorflow_cc.so.2", "libtensorflow_framework.so.2", runpath=runpath)
    toolkit = tmp_path / "toolkit"
    if where == "beside":
        environment.library("libcusolver.so.11", root=toolkit)
        environment.library("libcudart.so.11.0", root=toolkit)
    else:
        environment.library("libcusolver.so.11", "libcublas.so.11", root=toolkit, runpath=str(tmp_path / "other"))
        environment.library("libcublas.so.11", root=tmp_path / "other")
    report = environment.examined(AMPERE, LD_LIBRARY_PATH=str(toolkit))
    finding = next(it for it in report.findings if it.id == "foreign-library")
    assert finding.severity is Severity.ERROR
    assert "It is of CUDA 11, and the environment's is of CUDA 12" in finding.cause


def test_a_library_only_hidden_by_ld_library_path_is_reported_as_such(environment: Environment, tmp_path: Path) -> None:
    environment.nvidia()
    environment.tensorflow()
    for name in ("libcufft.so.11", "libcusparse.so.12"):
        environment.library(f"nvidia/cublas/lib/{name}")
    environment.library("tensorflow/libtensorflow_cc.so.2", "libtensorflow_framework.so.2", runpath="$ORIGIN")
    environment.library("libcudnn.so.9", root=tmp_path / "old")
    report = environment.examined(AMPERE, LD_LIBRARY_PATH=str(tmp_path / "old"))
    hidden = [it for it in report.findings if it.title.startswith("LD_LIBRARY_PATH prevents TensorFlow from finding")]
    assert _only(tuple(hidden)).commands == ("unset LD_LIBRARY_PATH",)


def test_two_majors_of_one_component_are_reported_across_frameworks(environment: Environment, tmp_path: Path) -> None:
    environment.nvidia()
    environment.torch()
    environment.onnxruntime(13)
    for name in ("libcudart.so.13", "libcublas.so.13"):
        environment.library(name, root=tmp_path / "toolkit")
    report = environment.examined(AMPERE, LD_LIBRARY_PATH=str(tmp_path / "toolkit"))
    assert {it.severity for it in report.findings} == {Severity.WARNING}
    titles = [it.title for it in report.findings if it.id == "two-cuda-majors"]
    assert titles == [
        "cudart is loaded in the versions 12 and 13",
        "cublas is loaded in the versions 12 and 13",
    ]


@pytest.mark.thorough
def test_two_majors_in_one_framework_are_an_error(environment: Environment) -> None:
    environment.nvidia()
    environment.library("nvidia/cublas/lib/libcudart.so.13")
    environment.library("nvidia/cudnn/lib/libcudnn.so.9", "libcudart.so.13", runpath="$ORIGIN:$ORIGIN/../../cublas/lib")
    environment.torch()
    finding = _only(environment.examined(AMPERE).findings)
    assert (finding.id, finding.severity) == ("two-cuda-majors", Severity.ERROR)
    assert "PyTorch loads both" in finding.cause


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("damage", "title"),
    [
        ("truncated", "libcudnn_ops.so.9 is truncated"),
        ("empty", "libcudnn_ops.so.9 is empty"),
        ("link", "libcudnn_ops.so.9 is a broken link"),
        ("text", "libcudnn_ops.so.9 is not a library"),
    ],
)
def test_a_damaged_library_is_named_with_its_package(damage: str, title: str, environment: Environment) -> None:
    environment.nvidia()
    environment.torch()
    name = "nvidia/cudnn/lib/libcudnn_ops.so.9"
    environment.install("nvidia-cudnn-cu12", "9.10.2.21", name)
    path = environment.site / name
    content = path.read_bytes()
    path.unlink()
    if damage == "link":
        path.symlink_to("libcudnn_ops.so.9.10.2")
    else:
        path.write_bytes({"truncated": content[:-100], "empty": b"", "text": b"oid sha256:0"}[damage])
    finding = next(it for it in environment.examined(AMPERE).findings if it.id == "library-damaged")
    assert (finding.severity, finding.title) == (Severity.ERROR, title)
    assert finding.commands == ("pip install --force-reinstall --no-deps --no-cache-dir nvidia-cudnn-cu12==9.10.2.21",)


@pytest.mark.thorough
def test_a_missing_driver_is_not_a_fault_of_the_environment(environment: Environment) -> None:
    environment.nvidia()
    environment.torch()
    environment.library(
        "torch/_C.cpython-312-x86_64-linux-gnu.so", "libtorch_cuda.so", "libnvidia-ml.so.1", rpath="$ORIGIN/lib"
    )
    assert environment.examined(AMPERE).findings == ()


def test_a_library_without_search_path_is_no_fault_where_the_framework_preloads(environment: Environment) -> None:
    environment.nvidia()
    environment.write("cupy/__init__.py")
    environment.library("cupy_backends/cuda/libs/cublas.cpython-312-x86_64-linux-gnu.so", "libcublas.so.12")
    report = environment.examined(AMPERE)
    assert report.findings == ()
    assert "libcublas.so.12" in {it.soname for it in report.libraries}


def test_a_library_that_the_program_must_preload_is_reported(environment: Environment) -> None:
    environment.nvidia()
    environment.onnxruntime()
    finding = _only(environment.examined(AMPERE).findings)
    assert (finding.id, finding.severity) == ("preload-needed", Severity.INFO)
    assert "onnxruntime.preload_dlls()" in finding.fix


@pytest.mark.parametrize(
    ("soname", "file_name", "version"),
    [
        ("libcudart.so.12", "libcudart.so.12.8.90", "12.8.90"),
        ("libcudart.so.12", "libcudart.so.12", None),
        ("libcudart.so.11.0", "libcudart.so.11.0", None),
    ],
)
def test_a_file_name_is_a_version_only_if_it_says_more_than_the_soname(
    soname: str, file_name: str, version: str | None, environment: Environment
) -> None:
    path = environment.write(f"nvidia/cuda_runtime/lib/{file_name}")
    assert Files(environment.inventory()).located(soname, str(path)).version == version


def test_every_framework_that_is_proven_is_examined_too() -> None:
    assert all(it.libraries.package for it in FRAMEWORKS.values())


def test_metadata_of_conda_reports_a_cpu_build(environment: Environment) -> None:
    environment.write("torch/__init__.py")
    meta = environment.root / "conda-meta/pytorch-2.7.0-cpu_generic_py312_h1.json"
    meta.parent.mkdir()
    meta.write_text(
        json.dumps({"name": "pytorch", "version": "2.7.0", "build": "cpu_generic_py312_h1"}), encoding="utf-8"
    )
    finding = _only(environment.examined(AMPERE, is_conda=True).findings)
    assert finding.id == "cpu-build"
    assert finding.evidence == ("the build of the conda package is cpu_generic_py312_h1",)


@pytest.mark.thorough
def test_a_framework_for_a_newer_c_library_is_reported_before_it_is_imported(
    environment: Environment,
) -> None:
    source = '#include <stdio.h>\nvoid call(void) { puts("symbols of GLIBC_2.2.5 on x86-64, 2.17 on aarch64"); }'
    environment.nvidia()
    environment.torch()
    compiled(environment.site / "torch/lib/libtorch_cuda.so", source)
    inventory = environment.inventory()
    for version in (LibcVersion(2, 99), None):
        assert "glibc-too-old" not in {it.id for it in examined(inventory, glibc=version).findings}
    found = examined(inventory, glibc=LibcVersion(2, 1)).findings
    finding = next(it for it in found if it.id == "glibc-too-old")
    assert finding.about == "pytorch"
    assert "and the machine has 2.1" in finding.cause
