"""Conda and pip in one prefix, and conda's CUDA."""

from __future__ import annotations

import json

import pytest

from envsolve.model.finding import Severity
from tests.diagnose.environment.on_disk import Patient, host, names
from tests.diagnose.environment.static_environment import AMPERE

CUDNN = "libcudnn.so.9"


def _cudnn_of_conda(stack: Patient, version: str) -> None:
    stack.library(f"lib/{CUDNN}", root=stack.root)
    stack.conda("libcudnn", version, "h1", f"lib/{CUDNN}")


@pytest.mark.thorough
def test_a_library_of_conda_and_of_pip_gets_with_both_versions(stack: Patient) -> None:
    _cudnn_of_conda(stack, "9.12.0.46")
    finding = stack.only("conda-pip-clash", Severity.WARNING)
    assert finding.title == "cudnn is installed twice, by conda and by pip"
    assert f"{stack.root}/lib/{CUDNN} (9.12.0.46, conda)" in finding.cause
    assert f"here {stack.site}/nvidia/cudnn/lib/{CUDNN}" in finding.cause
    assert finding.commands == ("envsolve -f pytorch --gpu auto --source conda-forge > environment.yml",)


@pytest.mark.thorough
def test_the_same_version_from_both_is_mentioned(stack: Patient) -> None:
    _cudnn_of_conda(stack, "9.10.2.21")
    stack.only("conda-pip-clash", Severity.INFO)


def test_another_component_of_conda_is_no_clash(stack: Patient) -> None:
    stack.library("lib/libcurand.so.10", root=stack.root)
    stack.conda("libcurand", "10.3.9.90", "h1", "lib/libcurand.so.10")
    assert names(stack.report().findings) == []


@pytest.mark.parametrize(("name", "severity"), [("numpy", Severity.WARNING), ("requests", Severity.INFO)])
def test_a_package_that_pip_has_replaced_is_reported(empty: Patient, name: str, severity: Severity) -> None:
    folder = f"lib/python3.12/site-packages/{name}-1.0.dist-info"
    empty.conda(name, "1.0", "py312_0", f"{folder}/METADATA", f"{folder}/RECORD")
    empty.uninstall(name)
    empty.install(name, "2.1.0")
    finding = empty.only("conda-pip-clash", severity)
    assert finding.title == f"pip has replaced conda's {name}"
    assert finding.commands == (f"conda install -p {empty.root} --force-reinstall {name}",)


def test_a_package_in_its_own_version_that_pip_installed_again_is_reported(empty: Patient) -> None:
    folder = "lib/python3.12/site-packages/numpy-1.0.dist-info"
    empty.conda("numpy", "1.0", "py312_0", f"{folder}/METADATA")
    empty.install("numpy", "1.0", installer="pip")
    empty.only("conda-pip-clash", Severity.WARNING)


def test_conda_s_own_packages_are_sound(empty: Patient) -> None:
    empty.install("numpy", "1.0", installer="conda")
    folder = "lib/python3.12/site-packages/numpy-1.0.dist-info"
    empty.conda("numpy", "1.0", "py312_0", f"{folder}/METADATA")
    empty.install("torchvision", "0.23.0", installer="pip")
    assert names(empty.report().findings) == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("package", "version", "found"),
    [
        ("cudatoolkit", "11.8.0", True),
        ("cuda-version", "11.8", True),
        ("pytorch-cuda", "13.0", True),
        ("cuda-version", "12.4", False),
        ("cuda-version", "odd", False),
    ],
)
def test_a_toolkit_of_another_major_than_the_framework_s_is_reported(
    stack: Patient, package: str, version: str, found: bool
) -> None:
    stack.conda(package, version, "h1")
    if found:
        finding = stack.only("conda-cuda-differs", Severity.WARNING)
        assert finding.about == "pytorch"
        assert "PyTorch 2.8.0+cu128, installed by pip, is built for CUDA 12.8" in finding.cause
    else:
        assert names(stack.report().findings) == []


def test_a_prefix_that_was_solved_without_a_driver_is_reported(empty: Patient) -> None:
    empty.torch(version="2.7.0", cuda=None)
    empty.uninstall("torch")
    empty.install("torch", "2.7.0", "torch/__init__.py", installer="conda")
    empty.conda("pytorch", "2.7.0", "cpu_generic_py312_h1")
    empty.conda("libtorch", "2.7.0", "cpu_generic_h2")
    findings = empty.report().findings
    assert names(findings) == [("cpu-build", "error"), ("conda-without-cuda", "warning")]
    assert findings[1].commands[0] == f"CONDA_OVERRIDE_CUDA=13.0 conda install -p {empty.root} pytorch libtorch"
    assert names(empty.report(host()).findings) == []


@pytest.mark.thorough
def test_a_conda_build_for_cuda_is_sound(empty: Patient) -> None:
    empty.torch(version="2.7.0", cuda="12.6")
    empty.nvidia()
    empty.uninstall("torch")
    empty.install("torch", "2.7.0", "torch/__init__.py", installer="conda")
    empty.conda("pytorch", "2.7.0", "cuda126_generic_py312_h1", depends=["__cuda", "cuda-version >=12.6,<13"])
    empty.conda("cuda-version", "12.9", "h1")
    report = empty.report(host(AMPERE))
    assert names(report.findings) == []
    packages = json.loads(json.dumps(report.inventory))["conda"]
    assert packages[0] == {"name": "cuda-version", "version": "12.9", "build": "h1", "channel": "conda-forge"}
