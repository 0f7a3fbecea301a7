"""Compiled modules for another Python."""

from __future__ import annotations

import pytest

from envsolve.model.finding import Severity
from tests.diagnose.environment.on_disk import Patient, names, pip


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["_C.cpython-310-x86_64-linux-gnu.so", "_C.cp310-win_amd64.pyd"])
def test_a_module_for_another_python_is_found(empty: Patient, name: str) -> None:
    empty.install("torchvision", "0.23.0", f"torchvision/{name}", "torchvision/__init__.py")
    finding = empty.only("extension-of-other-python", Severity.ERROR)
    assert "for Python 3.10, and this environment has Python 3.12" in finding.cause
    assert finding.commands == (pip("install", "--force-reinstall --no-deps torchvision==0.23.0"),)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "modules",
    [
        ("_C.cpython-312-x86_64-linux-gnu.so", "_C.cpython-310-x86_64-linux-gnu.so"),
        ("_C.abi3.so",),
        ("_C.so",),
        ("cpython-310-notes.txt",),
    ],
)
def test_modules_for_this_python_or_for_any_are_no_fault(empty: Patient, modules: tuple[str, ...]) -> None:
    empty.install("torchvision", "0.23.0", *(f"torchvision/{it}" for it in modules))
    assert names(empty.report().findings) == []


def test_packages_of_one_other_python_are_one_finding(empty: Patient) -> None:
    for name in ("alpha", "beta"):
        empty.install(name, "1.0", f"{name}.cpython-310-x86_64-linux-gnu.so")
    finding = empty.only("extension-of-other-python", Severity.ERROR)
    assert finding.commands == (pip("install", "--force-reinstall --no-deps alpha==1.0 beta==1.0"),)
