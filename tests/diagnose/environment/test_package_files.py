"""Files of packages: missing, overwritten, or in two packages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envsolve.diagnose.environment import altered
from envsolve.model.finding import Severity
from tests.diagnose.environment.on_disk import Patient, names, pip

CUDNN = "nvidia/cudnn/lib/libcudnn.so.9"


def test_a_package_whose_files_are_gone_is_an_error(empty: Patient) -> None:
    empty.install("nvidia-nccl-cu12", "2.27.3", "nvidia/nccl/lib/libnccl.so.2", "nvidia/nccl/__init__.py")
    (empty.site / "nvidia/nccl/lib/libnccl.so.2").unlink()
    (empty.site / "nvidia/nccl/__init__.py").unlink()
    finding = empty.only("package-files-missing", Severity.ERROR)
    assert finding.commands == (pip("install", "--force-reinstall --no-deps --no-cache-dir nvidia-nccl-cu12==2.27.3"),)
    assert finding.evidence[0] == f"missing: {empty.site}/nvidia/nccl/lib/libnccl.so.2"


@pytest.mark.thorough
def test_a_few_files_that_are_gone_are_a_warning(stack: Patient) -> None:
    (stack.site / "torch/version.py").rename(stack.site / "torch/version.txt")
    modules = [f"torch/of/{number}.py" for number in range(9)]
    stack.uninstall("torch")
    stack.install("torch", "2.8.0", "torch/__init__.py", *modules)
    (stack.site / modules[3]).unlink()
    finding = stack.only("package-files-missing", Severity.WARNING)
    assert "but 1 of its 10 files are missing: 3.py" in finding.cause


@pytest.mark.thorough
def test_tests_and_headers_may_be_left_out(stack: Patient) -> None:
    left_out = ("torch/test/test_ops.py", "torch/tests/a.py", "torch/include/ATen.h", "torch/__pycache__/x.pyc")
    stack.uninstall("torch")
    stack.install("torch", "2.8.0", "torch/__init__.py", *left_out)
    for file in left_out:
        (stack.site / file).unlink()
    assert names(stack.report().findings) == []


def test_packages_outside_of_the_gpu_stack_may_lack_files(empty: Patient) -> None:
    empty.install("requests", "2.0", "requests/__init__.py")
    (empty.site / "requests/__init__.py").unlink()
    assert names(empty.report().findings) == []


@pytest.mark.thorough
def test_a_library_of_another_size_than_recorded_was_written_over(stack: Patient) -> None:
    file = stack.site / CUDNN
    file.write_bytes(file.read_bytes() + b"\0" * 16)
    finding = stack.only("file-overwritten", Severity.WARNING)
    assert finding.about == "nvidia-cudnn-cu12"
    size = file.stat().st_size
    assert finding.evidence == (f"{file} has {size} bytes, its RECORD says {size - 16}",)


@pytest.mark.thorough
def test_a_library_of_the_same_size_is_recognised_by_its_digest(stack: Patient) -> None:
    file = stack.site / CUDNN
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    finding = stack.only("file-overwritten", Severity.WARNING)
    assert finding.evidence == (f"{file} has another sha256 than its RECORD says",)


def test_the_package_that_overwrote_a_file_is_named(empty: Patient) -> None:
    library = "torch/lib/libcustom.so"
    empty.library(library)
    empty.install("torch", "2.8.0", library)
    empty.library(library, "libcudart.so.12")
    empty.install("somebody", "1.0", library)
    findings = empty.report().findings
    assert names(findings) == [("file-overwritten", "error"), ("two-distributions", "warning")]
    assert "somebody 1.0 has overwritten" in findings[0].cause
    assert findings[0].commands[0] == pip("uninstall", "somebody")


def test_the_amount_read_is_limited(stack: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    file = stack.site / CUDNN
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    monkeypatch.setattr(altered, "_MOST_HASHED", 0)
    assert names(stack.report().findings) == []


def test_the_owner_of_an_endless_file_is_not_searched_for(empty: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    library = "torch/lib/libcustom.so"
    empty.library(library)
    empty.install("torch", "2.8.0", library)
    empty.library(library, "libcudart.so.12")
    for name in ("somebody", "another"):
        empty.install(name, "1.0", library)
    monkeypatch.setattr(altered, "_MOST_OF_WINNERS", 0)
    assert "has overwritten" not in empty.report().findings[0].cause


def test_conda_relocates_libraries(stack: Patient) -> None:
    stack.uninstall("nvidia-cudnn-cu12")
    libraries = [f"nvidia/cudnn/lib/{it.name}" for it in (stack.site / "nvidia/cudnn/lib").iterdir()]
    stack.install("nvidia-cudnn-cu12", "9.10.2.21", *libraries, installer="conda")
    (stack.site / CUDNN).write_bytes((stack.site / CUDNN).read_bytes() + b"\0" * 16)
    assert names(stack.report().findings) == []


def test_a_library_that_conda_lists_and_that_is_gone_is_an_error(empty: Patient) -> None:
    empty.conda("libcublas", "12.8.4.1", "h1", "lib/libcublas.so.12", "share/licenses/LICENSE")
    (empty.root / "lib/libcublas.so.12").unlink()
    (empty.root / "share/licenses/LICENSE").unlink()
    finding = empty.only("package-files-missing", Severity.ERROR)
    assert finding.commands == (f"conda install -p {empty.root} --force-reinstall libcublas=12.8.4.1",)


def test_two_packages_with_different_files_in_one_place_are_reported(empty: Patient) -> None:
    empty.install("opencv-python", "4.10", "cv2/cv2.abi3.so", "cv2/__init__.py")
    (empty.site / "cv2/cv2.abi3.so").write_text("another")
    empty.install("opencv-contrib-python", "4.10", "cv2/cv2.abi3.so", "cv2/__init__.py")
    finding = empty.only("two-distributions", Severity.WARNING)
    assert finding.commands == (pip("uninstall", "opencv-contrib-python opencv-python"),)
    assert not finding.in_scope
    assert finding.evidence == ("both own cv2/cv2.abi3.so",)


@pytest.mark.parametrize("path", ["tests/__init__.py", "docs/conf.py", "shared/data.txt"])
def test_files_that_no_one_imports_may_be_in_two_packages(empty: Patient, path: str) -> None:
    empty.install("one", "1", path)
    (empty.site / path).write_text("another")
    empty.install("two", "1", path)
    assert names(empty.report().findings) == []


def test_the_same_file_in_two_packages_is_harmless(empty: Patient) -> None:
    """The empty nvidia/__init__.py is in all of NVIDIA's packages."""
    empty.install("nvidia-cublas-cu12", "12.8.4.1", "nvidia/__init__.py")
    empty.install("nvidia-cudnn-cu12", "9.10.2.21", "nvidia/__init__.py")
    assert names(empty.report().findings) == []


def test_an_editable_package_has_its_files_elsewhere(empty: Patient, tmp_path: Path) -> None:
    (tmp_path / "source/torchvision").mkdir(parents=True)
    (tmp_path / "source/torchvision/__init__.py").touch()
    empty.write("__editable__.torchvision-0.23.0.pth", f"{tmp_path}/source\n")
    file = "__editable__.torchvision-0.23.0.pth"
    empty.install("torchvision", "0.23.0", file, requires=["torch"], editable=True)
    assert names(empty.report().findings) == []


@pytest.mark.thorough
def test_leftover_packages_of_another_cuda_are_mentioned(stack: Patient) -> None:
    stack.install("nvidia-cublas-cu11", "11.11.3.6")
    stack.install("nvidia-cublas", "13.0.2.14")
    stack.install("nvidia-nccl-cu13", "2.27.3")
    stack.install("of-mine", "1", requires=["nvidia-nccl-cu13"])
    findings = stack.report().findings
    assert names(findings) == [("leftover-cuda-packages", "info")] * 2
    assert {it.commands[0] for it in findings} == {
        pip("uninstall", it) for it in ("nvidia-cublas-cu11", "nvidia-cublas")
    }
    assert json.loads(json.dumps(findings[0].as_json()))["severity"] == "info"
