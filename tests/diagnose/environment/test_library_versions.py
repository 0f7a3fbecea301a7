"""Releases of CUDA's libraries that are incompatible."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from envsolve.diagnose.environment.symbols import defined_versions, read_symbols
from envsolve.model.finding import Severity
from tests.binary.layouts import real_loader
from tests.diagnose.environment.on_disk import Patient, names, pip
from tests.validation.compiled import compiled

CUDNN = "nvidia/cudnn/lib"
SPARSE, LINK = "nvidia/cusparse/lib/libcusparse.so.12", "nvidia/nvjitlink/lib/libnvJitLink.so.12"


def _needing_link(stack: Path, version: str) -> None:
    """A cuSPARSE that needs a function of nvJitLink 12.5, and a nvJitLink with the function of ``version``."""
    names = stack / "names"
    names.write_text("libnvJitLink.so.12 { global: *; };\n")
    code = "int __nvJitLinkComplete_%s(void) { return 0; }"
    wanted = compiled(stack / "wanted/libnvJitLink.so.12", code % "12_5", f"-Wl,--version-script={names}")
    compiled(stack / LINK, code % version, f"-Wl,--version-script={names}")
    source = "int __nvJitLinkComplete_12_5(void); int call(void) { return __nvJitLinkComplete_12_5(); }"
    compiled(stack / SPARSE, source, str(wanted), "-Wl,-rpath,$ORIGIN/../../nvjitlink/lib", "-Wl,--enable-new-dtags")


def _with_sparse(stack: Patient) -> None:
    places = ":".join(f"$ORIGIN/../../nvidia/{name}/lib" for name in ("cusparse", "cudnn", "cublas", "cuda_runtime"))
    needed = ("libcudart.so.12", "libcusparse.so.12", "libcudnn.so.9")
    stack.library("torch/lib/libtorch_cuda.so", *needed, rpath=f"$ORIGIN:{places}")
    stack.uninstall("torch")


@pytest.mark.thorough
def test_a_function_that_the_other_library_lacks_is_found_before_the_loader_does(stack: Patient) -> None:
    _needing_link(stack.site, "12_4")
    stack.install("nvidia-nvjitlink-cu12", "12.4.127", LINK)
    _with_sparse(stack)
    finding = stack.only("library-mismatch", Severity.ERROR)
    assert finding.title == "libcusparse.so.12 and libnvJitLink.so.12 are of different releases"
    assert "needs __nvJitLinkComplete_12_5 of libnvJitLink.so.12" in finding.cause
    assert f"{stack.site / LINK} (nvidia-nvjitlink-cu12 12.4.127 of pip), which lacks it" in finding.cause
    assert finding.evidence[-1] == "not there: __nvJitLinkComplete_12_5"


@pytest.mark.thorough
def test_libraries_of_one_release_are_no_fault(stack: Patient) -> None:
    _needing_link(stack.site, "12_5")
    _with_sparse(stack)
    assert names(stack.report().findings) == []


@pytest.mark.thorough
def test_a_library_shadowed_by_ld_library_path_should_be_removed_from_it(stack: Patient, tmp_path: Path) -> None:
    _needing_link(stack.site, "12_5")
    _with_sparse(stack)
    compiled(tmp_path / "old/libnvJitLink.so.12", "int __nvJitLinkComplete_12_4(void) { return 0; }")
    findings = stack.report(variables={"LD_LIBRARY_PATH": str(tmp_path / "old")}).findings
    assert names(findings) == [("library-mismatch", "error"), ("foreign-library", "warning")]
    assert findings[0].commands == ("unset LD_LIBRARY_PATH",)


def test_functions_without_a_version_are_recognised_by_their_names(stack: Patient) -> None:
    nccl = stack.site / "nvidia/nccl/lib/libnccl.so.2"
    compiled(nccl, "int ncclCommInit(void) { return 0; }")
    declared = "int ncclCommInit(void); int ncclCommRegister(void);"
    source = f"{declared} int call(void) {{ return ncclCommInit() + ncclCommRegister(); }}"
    places = "-Wl,-rpath,$ORIGIN:$ORIGIN/../../nvidia/nccl/lib"
    compiled(stack.site / "torch/lib/libtorch_cuda.so", source, str(nccl), places, "-Wl,--disable-new-dtags")
    stack.uninstall("torch")
    finding = stack.only("library-mismatch", Severity.ERROR)
    assert finding.evidence[-1] == "not there: ncclCommRegister"


def test_symbols_are_those_that_the_file_exports_and_needs(tmp_path: Path) -> None:
    real_loader()
    _needing_link(tmp_path, "12_5")
    found = read_symbols(tmp_path / SPARSE)
    assert b"call" in found.exported
    assert found.wanted["libnvJitLink.so.12"] == {b"__nvJitLinkComplete_12_5"}
    assert defined_versions(tmp_path / LINK) == {"libnvJitLink.so.12"}


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "found"), [("9.5.1.17", True), ("9.10.1.4", False), ("9.12.0.46", False)])
def test_a_cudnn_that_is_older_than_that_of_the_build_is_reported(stack: Patient, version: str, found: bool) -> None:
    stack.uninstall("nvidia-cudnn-cu12")
    stack.install("nvidia-cudnn-cu12", version, *(f"{CUDNN}/{it.name}" for it in (stack.site / CUDNN).iterdir()))
    metadata = stack.folder("torch", "2.8.0") / "METADATA"
    metadata.write_text(re.sub(r"nvidia-cudnn-cu12==[\d.]+", "nvidia-cudnn-cu12", metadata.read_text()))
    if not found:
        assert names(stack.report().findings) == []
        return
    finding = stack.only("cudnn-version-mismatch", Severity.WARNING)
    assert finding.title == "PyTorch would load cuDNN 9.5.1.17, and is built with 9.10"
    assert finding.commands[0] == pip("install", "'nvidia-cudnn-cu12>=9.10,<10'")


@pytest.mark.thorough
def test_the_version_of_a_library_without_a_package_is_that_of_its_file(stack: Patient, tmp_path: Path) -> None:
    """A cuDNN of the system: libcudnn.so.9 is a link to libcudnn.so.9.1.0."""
    tmp_path = tmp_path / "system"
    for file in (stack.site / CUDNN).iterdir():
        stack.library(f"{file.name}.1.0", root=tmp_path)
        (tmp_path / file.name).symlink_to(f"{file.name}.1.0")
    needed = ("libcudart.so.12", "libcudnn.so.9")
    runpath = "$ORIGIN/../../nvidia/cuda_runtime/lib:$ORIGIN/../../nvidia/cudnn/lib"
    stack.library("torch/lib/libtorch_cuda.so", *needed, runpath=runpath)
    stack.uninstall("torch")
    stack.install("torch", "2.8.0", "torch/__init__.py")
    findings = stack.report(variables={"LD_LIBRARY_PATH": str(tmp_path)}).findings
    mismatch = next(it for it in findings if it.id == "cudnn-version-mismatch")
    assert "would load 9.1.0 from" in mismatch.cause
    assert "LD_LIBRARY_PATH leads there" in mismatch.cause
    assert mismatch.commands[0] == "unset LD_LIBRARY_PATH"
    assert {it.id for it in findings} == {"cudnn-version-mismatch", "foreign-library"}


def test_parts_of_cudnn_from_two_places_are_of_two_releases(stack: Patient, tmp_path: Path) -> None:
    stack.library("libcudnn_ops.so.9.1.0", root=tmp_path / "system")
    (tmp_path / "system/libcudnn_ops.so.9").symlink_to("libcudnn_ops.so.9.1.0")
    findings = stack.report(variables={"LD_LIBRARY_PATH": str(tmp_path / "system")}).findings
    assert names(findings) == [("cudnn-parts-differ", "error"), ("foreign-library", "warning")]
    assert f"{tmp_path}/system (9.1.0)" in findings[0].cause
    assert f"{stack.site / CUDNN} (9.10.2.21)" in findings[0].cause


@pytest.mark.thorough
def test_a_cxx_library_that_is_too_old_is_reported_with_both_versions(stack: Patient, tmp_path: Path) -> None:
    (tmp_path / "needs").write_text("GLIBCXX_3.4.99 { global: *; };\n")
    (tmp_path / "has").write_text("GLIBCXX_3.4.30 { global: *; };\n")
    code = "int cxx_function(void) { return 0; }"
    newer = compiled(tmp_path / "newer/libstdc++.so.6", code, f"-Wl,--version-script={tmp_path / 'needs'}")
    compiled(stack.root / "lib/libstdc++.so.6", code, f"-Wl,--version-script={tmp_path / 'has'}")
    source = "int cxx_function(void); int call(void) { return cxx_function(); }"
    place = "-Wl,-rpath,$ORIGIN:$ORIGIN/../../../.."
    compiled(stack.site / "torch/lib/libtorch_cuda.so", source, str(newer), place, "-Wl,--disable-new-dtags")
    stack.uninstall("torch")
    finding = stack.only("cxx-library-too-old", Severity.ERROR)
    assert "with GLIBCXX_3.4.99, and would load" in finding.cause
    assert "which ends at GLIBCXX_3.4.30" in finding.cause
    compiled(stack.root / "lib/libstdc++.so.6", code, f"-Wl,--version-script={tmp_path / 'needs'}")
    assert names(stack.report().findings) == []
