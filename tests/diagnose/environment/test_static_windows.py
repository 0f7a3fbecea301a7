"""The static checks of an environment for Windows: where its DLLs come from and what they contain."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Severity
from envsolve.model.host import Platform
from envsolve.validation.inventory import Distribution, Inventory
from envsolve.validation.report import Owner, StaticReport
from tests.binary.tiny_dll import tiny_dll
from tests.diagnose.environment.static_environment import examined
from tests.scripts.fat_binary import fat_binary

pytestmark = pytest.mark.thorough  # whole DLLs are made

AMPERE, VOLTA = ComputeCapability(8, 0), ComputeCapability(7, 0)
SYSTEM = ("KERNEL32.dll", "nvcuda.dll")


class WindowsEnvironment:
    """A prefix with PyTorch for Windows, beside a Windows directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.site = root / "environment/Lib/site-packages"
        self.write(root / "windows/System32/KERNEL32.dll", tiny_dll())
        self.write(self.site / "torch/__init__.py", b"")
        self.write(self.site / "torch/version.py", b"__version__ = '2.8.0+cu128'\ncuda = '12.8'\n")
        needed = ("cudart64_12.dll", "cublas64_12.dll", *SYSTEM)
        self.write(
            self.site / "torch/lib/torch_cuda.dll",
            tiny_dll(needed, ("cudnn64_9.dll",), sections={".nv_fatb": fat_binary((80, 90))}),
        )

    def write(self, path: Path, content: bytes) -> Path:
        """A file, with the directories above it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def torch_library(self, *names: str) -> None:
        """DLLs that PyTorch bundles."""
        for name in names:
            self.write(self.site / "torch/lib" / name, tiny_dll(sections={".nv_fatb": fat_binary((80, 90))}))

    def examined(self, *gpus: ComputeCapability, **variables: str) -> StaticReport:
        """The static checks."""
        prefix = self.root / "environment"
        distributions = (Distribution("torch", "2.8.0+cu128", self.site),)
        inventory = Inventory("3.12.4", prefix / "python.exe", prefix, (self.site,), distributions, False, True)
        variables = {"SystemRoot": str(self.root / "windows"), **variables}
        return examined(inventory, gpus, variables, Platform.WIN_64)


@pytest.fixture
def environment(tmp_path: Path) -> WindowsEnvironment:
    return WindowsEnvironment(tmp_path)


def test_bundled_dlls_are_found_beside_the_one_that_needs_them(environment: WindowsEnvironment) -> None:
    environment.torch_library("cudart64_12.dll", "cublas64_12.dll", "cudnn64_9.dll")
    report = environment.examined(AMPERE)
    assert report.findings == ()
    assert {(it.soname, it.owner) for it in report.libraries} == {
        ("cudart64_12.dll", Owner.ENVIRONMENT),
        ("cublas64_12.dll", Owner.ENVIRONMENT),
        ("cudnn64_9.dll", Owner.ENVIRONMENT),
    }


def test_a_dll_that_only_path_has_is_reported_so(environment: WindowsEnvironment, tmp_path: Path) -> None:
    environment.torch_library("cudart64_12.dll", "cudnn64_9.dll")
    toolkit = environment.write(tmp_path / "toolkit/bin/cublas64_12.dll", tiny_dll())
    (finding,) = environment.examined(AMPERE, PATH=str(toolkit.parent)).findings
    assert (finding.id, finding.severity) == ("library-missing", Severity.ERROR)
    assert f"{toolkit} is on PATH, where Python 3.8 and newer do not look" in finding.cause
    assert "os.add_dll_directory" in finding.fix
    assert finding.commands == ("pip install nvidia-cublas-cu12",)
    assert f"in PATH only: {toolkit}" in finding.evidence


def test_a_dll_without_code_for_the_gpu_is_found(environment: WindowsEnvironment) -> None:
    environment.torch_library("cudart64_12.dll", "cublas64_12.dll", "cudnn64_9.dll")
    assert [it.id for it in environment.examined(VOLTA).findings] == ["no-code-for-gpu"]


def test_a_damaged_dll_is_found(environment: WindowsEnvironment) -> None:
    environment.torch_library("cudart64_12.dll", "cublas64_12.dll", "cudnn64_9.dll")
    path = environment.site / "torch/lib/cublas64_12.dll"
    path.write_bytes(path.read_bytes()[:-100])
    found = {it.id: it.title for it in environment.examined(AMPERE).findings}
    assert found == {"library-damaged": "cublas64_12.dll is truncated"}
