"""LD_LIBRARY_PATH, LD_PRELOAD and search paths with an empty entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.binary.elf import Abi
from envsolve.binary.loader_system import LoaderSystem, loader_system
from envsolve.model.finding import Severity
from tests.binary.device_library import device_library
from tests.diagnose.environment.on_disk import Patient, names


@pytest.mark.thorough
def test_unused_cuda_on_ld_library_path_is_harmless(stack: Patient, tmp_path: Path) -> None:
    """PyTorch's own path, DT_RPATH, comes before the variable."""
    stack.library("libcudart.so.12", root=tmp_path / "toolkit")
    finding = stack.only(
        "library-path-unused", Severity.INFO, variables={"LD_LIBRARY_PATH": f"{tmp_path}/toolkit:{tmp_path}/none"}
    )
    assert "libcudart.so.12" in finding.cause
    assert finding.commands == ("unset LD_LIBRARY_PATH",)


@pytest.fixture
def off_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the driver's library, on a machine whose loader does not find one by default, as on NixOS."""
    real = loader_system

    def bare(abi: Abi) -> LoaderSystem | None:
        system = real(abi)
        return system and system._replace(cached={k: v for k, v in system.cached.items() if k != "libcuda.so.1"})

    monkeypatch.setattr("envsolve.diagnose.environment.loads.loader_system", bare)
    device_library(tmp_path / "my driver/libcuda.so.1", b"", soname="libcuda.so.1")
    return tmp_path / "my driver"


@pytest.mark.thorough
def test_the_only_path_to_the_driver_is_not_removed(stack: Patient, tmp_path: Path, off_path: Path) -> None:
    stack.library("libcudart.so.12", root=tmp_path / "toolkit")
    variables = {"LD_LIBRARY_PATH": f"{tmp_path}/toolkit/:{off_path}:{tmp_path}/mine"}
    finding = stack.only("library-path-unused", Severity.INFO, variables=variables)
    assert finding.commands == (f"export LD_LIBRARY_PATH='{off_path}:{tmp_path}/mine'",)
    assert f"keep {off_path}: the driver's library is found only there" in finding.fix


@pytest.mark.thorough
def test_advice_of_validate_on_foreign_libraries_also_keeps_the_driver(
    stack: Patient, tmp_path: Path, off_path: Path
) -> None:
    stack.library("nvidia/cublas/lib/libcublas.so.12", "libcusolver.so.11", runpath="$ORIGIN")
    stack.library("nvidia/cublas/lib/libcusolver.so.11")
    stack.library("libcusolver.so.11", root=tmp_path / "toolkit")
    variables = {"LD_LIBRARY_PATH": f"{tmp_path}/toolkit:{off_path}"}
    found = {it.id: it for it in stack.report(variables=variables).findings}
    assert found["foreign-library"].commands == (f"export LD_LIBRARY_PATH='{off_path}'",)


@pytest.mark.thorough
def test_a_directory_of_driver_libraries_is_not_a_leftover(stack: Patient, off_path: Path) -> None:
    device_library(off_path.parent / "nvml/libnvidia-ml.so.1", b"", soname="libnvidia-ml.so.1")
    assert names(stack.report(variables={"LD_LIBRARY_PATH": f"{off_path}:{off_path.parent}/nvml"}).findings) == []


@pytest.mark.thorough
def test_cuda_on_ld_library_path_of_another_major_that_is_loaded_is_an_error(stack: Patient, tmp_path: Path) -> None:
    stack.library("nvidia/cublas/lib/libcublas.so.12", "libcusolver.so.11", runpath="$ORIGIN")
    stack.library("nvidia/cublas/lib/libcusolver.so.11")
    for name in ("libcusolver.so.11", "libcudart.so.11.0"):
        stack.library(name, root=tmp_path / "toolkit")
    stack.uninstall("nvidia-cublas-cu12")
    stack.install("nvidia-cublas-cu12", "12.8.4.1", "nvidia/cublas/lib/libcublas.so.12")
    finding = stack.only("foreign-library", Severity.ERROR, variables={"LD_LIBRARY_PATH": str(tmp_path / "toolkit")})
    assert "It is of CUDA 11, and the environment's is of CUDA 12" in finding.cause


@pytest.mark.thorough
def test_copies_behind_those_that_are_loaded_are_mentioned(stack: Patient, tmp_path: Path) -> None:
    """A search path that leads to a directory of the machine."""
    stack.library("libcudart.so.12", root=tmp_path)
    rpath = f"$ORIGIN/../../nvidia/cuda_runtime/lib:{tmp_path}"
    stack.library("torch/lib/libtorch_global_deps.so", "libcudart.so.12", rpath=rpath)
    finding = stack.only("library-copies", Severity.INFO)
    own = stack.site / "nvidia/cuda_runtime/lib/libcudart.so.12"
    assert finding.evidence == (f"{own} is taken, {tmp_path}/libcudart.so.12 lies behind it",)


@pytest.mark.thorough
def test_directories_without_cuda_are_ignored(stack: Patient, tmp_path: Path) -> None:
    stack.library("libown.so.1", root=tmp_path)
    assert names(stack.report(variables={"LD_LIBRARY_PATH": f"{tmp_path}::/nonexistent"}).findings) == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "severity"), [("libcudart.so.12", Severity.WARNING), ("libcudart.so.11.0", Severity.ERROR)]
)
def test_a_preloaded_cuda_library_is_named(stack: Patient, tmp_path: Path, name: str, severity: Severity) -> None:
    library = stack.library(name, root=tmp_path)
    finding = stack.only("preloaded-library", severity, variables={"LD_PRELOAD": f"{library}"})
    assert str(library) in finding.cause
    assert finding.commands == ("unset LD_PRELOAD",)


@pytest.mark.thorough
def test_a_preloaded_file_that_is_gone_is_left_out_by_the_loader(stack: Patient) -> None:
    stack.only("preloaded-library", Severity.INFO, variables={"LD_PRELOAD": "/nonexistent/libjemalloc.so.2"})


def test_preloading_something_else_is_no_fault(stack: Patient, tmp_path: Path) -> None:
    library = stack.library("libjemalloc.so.2", root=tmp_path)
    assert names(stack.report(variables={"LD_PRELOAD": str(library)}).findings) == []


@pytest.mark.thorough
def test_an_empty_entry_in_a_search_path_matters_where_a_library_lies(stack: Patient, tmp_path: Path) -> None:
    """nvidia-cuda-nvrtc-cu12 12.8.93 has the search path ``$ORIGIN:``."""
    nvrtc = "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
    stack.library(nvrtc, runpath="$ORIGIN:")
    finding = stack.only("searches-current-directory", Severity.INFO)
    assert finding.evidence == (f"{stack.site / nvrtc}: search path $ORIGIN:",)
    stack.library("libcuda.so.1", root=tmp_path / "here")
    findings = stack.report(directory=tmp_path / "here").findings
    assert names(findings) == [("searches-current-directory", "warning")]
    assert "has libcuda.so.1" in findings[0].cause


def test_parts_of_another_cudnn_on_ld_library_path_are_a_warning(stack: Patient, tmp_path: Path) -> None:
    """PyTorch's own path leads to the other parts first, and no file states what cuDNN opens when it is used."""
    stack.library("libcudnn_engines_tensor_ir.so.9.19.0", root=tmp_path / "system")
    (tmp_path / "system/libcudnn_engines_tensor_ir.so.9").symlink_to("libcudnn_engines_tensor_ir.so.9.19.0")
    finding = stack.only(
        "cudnn-parts-on-library-path", Severity.WARNING, variables={"LD_LIBRARY_PATH": f"{tmp_path}/system"}
    )
    assert "of cuDNN 9.19.0" in finding.cause
    assert finding.commands == ("unset LD_LIBRARY_PATH",)


@pytest.mark.thorough
def test_parts_of_the_same_cudnn_on_ld_library_path_are_harmless(stack: Patient, tmp_path: Path) -> None:
    stack.library("libcudnn_engines_tensor_ir.so.9.10.2", root=tmp_path / "system")
    (tmp_path / "system/libcudnn_engines_tensor_ir.so.9").symlink_to("libcudnn_engines_tensor_ir.so.9.10.2")
    stack.only("library-path-unused", Severity.INFO, variables={"LD_LIBRARY_PATH": f"{tmp_path}/system"})


@pytest.mark.thorough
def test_a_file_on_ld_library_path_that_is_no_library_is_of_no_package(stack: Patient, tmp_path: Path) -> None:
    stack.library("nvidia/cublas/lib/libcublas.so.12", "libcusolver.so.11", runpath="$ORIGIN")
    stack.library("nvidia/cublas/lib/libcusolver.so.11")
    (tmp_path / "stray").mkdir()
    (tmp_path / "stray/libcusolver.so.11").write_text("version https://git-lfs.github.com/spec/v1\n")
    stack.uninstall("nvidia-cublas-cu12")
    stack.install("nvidia-cublas-cu12", "12.8.4.1", "nvidia/cublas/lib/libcublas.so.12")
    finding = stack.only("library-damaged", Severity.ERROR, variables={"LD_LIBRARY_PATH": f"{tmp_path}/stray"})
    assert finding.title == "libcusolver.so.11 is not a library"
    assert finding.commands == ("unset LD_LIBRARY_PATH",)
    assert "No package owns it" in finding.fix
