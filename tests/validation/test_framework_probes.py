"""The probes on real frameworks.

    ENVSOLVE_TEST_FRAMEWORK_PYTHON=ENV/bin/python:OTHER/bin/python scripts/test -m framework tests/validation

Without that variable the frameworks of the interpreter that runs the tests are taken. Each runs on the CPU, where all
that it has must come out right. On a machine with a GPU the same holds there; on others it must say why it cannot.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from envsolve.frameworks import Framework, frameworks_among
from envsolve.validation.child import Children
from envsolve.validation.framework_verdict import verdict
from envsolve.validation.inside import framework, operations
from envsolve.validation.report import ProbeReport, Status
from envsolve.validation.validator import TIMEOUT_WITH_JIT
from tests.fake_driver.builder import GTX_1080_TI, FakeDriver
from tests.validation.explained import explained

pytestmark = pytest.mark.framework
VARIABLE = "ENVSOLVE_TEST_FRAMEWORK_PYTHON"
LARGEST_ERROR = 1e-5
GPU = sys.platform == "win32" or any(Path(node).exists() for node in ("/dev/nvidia0", "/dev/dxg"))


class Installed(NamedTuple):
    """A framework of one interpreter."""

    python: Path
    framework: Framework

    def __str__(self) -> str:
        return f"{self.framework.name} of {self.python.parent.parent.name}"


def installed() -> list[Installed]:
    """The frameworks of every named interpreter."""
    named = os.environ.get(VARIABLE)
    if named is None:
        names = [str(each.metadata["Name"]) for each in distributions()]
        return [Installed(Path(sys.executable), it) for it in frameworks_among(names)]
    pythons = [Path(name).absolute() for name in named.split(os.pathsep)]
    return [Installed(python, it) for python in pythons for it in frameworks_among(packages(python))]


def packages(python: Path) -> list[str]:
    """By pip: Python 3.7 has no importlib.metadata."""
    command = [str(python), "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return [it["name"] for it in json.loads(listed.stdout)]


HERE = [pytest.param(found, id=str(found)) for found in installed()]
NO_INTERPRETER = pytest.param(None, marks=pytest.mark.skip(f"name interpreters with a framework in {VARIABLE}"))


@pytest.fixture(params=HERE or [NO_INTERPRETER])
def it(request: pytest.FixtureRequest) -> Installed:
    found: Installed = request.param
    return found


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as running:
        yield running


def proven(
    children: Children, it: Installed, device: Any, burn: float = 0, environ: Mapping[str, str] = os.environ
) -> ProbeReport:
    job = {"device": device, "index": 0, "burn": burn}
    outcome = children.run(it.python, it.framework.probe, job, environ, TIMEOUT_WITH_JIT)
    assert outcome.error is None, outcome.error
    return verdict(it.framework, device, outcome, explained)


def absent(known: Framework) -> list[str]:
    """The operations that the class in its probe inherits unchanged: it has none."""
    module = importlib.import_module(f"envsolve.validation.inside.{known.probe}")
    classes = (it for it in vars(module).values() if isinstance(it, type) and it.__module__ == module.__name__)
    (probed,) = (it for it in classes if issubclass(it, framework.Framework))
    methods = {it.name: it.method for it in operations.OPERATIONS}
    return [name for name, method in methods.items() if getattr(probed, method) is getattr(framework.Framework, method)]


def test_everything_in_it_is_correct_on_the_cpu(children: Children, it: Installed) -> None:
    report = proven(children, it, "cpu", burn=0.2)
    if it.framework.needs_gpu:
        assert (report.status, report.detail) == (Status.SKIP, f"{it.framework.title} runs on GPUs only")
        return
    assert report.findings == ()
    assert report.status is Status.PASS
    done: Any = report.measured["operations"]
    assert [each["name"] for each in done] == [each.name for each in operations.OPERATIONS]
    assert [each["name"] for each in done if each["ok"] is None] == absent(it.framework)
    assert all(each["on_device"] and each["max_error"] < LARGEST_ERROR for each in done if each["ok"])
    burn: Any = report.measured["burn"]
    assert burn["ok"]
    assert burn["products"] > 0


@pytest.mark.gpu
@pytest.mark.skipif(not GPU, reason="there is no device file of an NVIDIA GPU")
def test_everything_in_a_gpu_build_is_correct_on_the_gpu(children: Children, it: Installed) -> None:
    report = proven(children, it, "cuda", burn=5)
    if report.measured.get("cpu_build") is True:
        pytest.skip("a build for CPUs")
    assert report.findings == ()
    assert report.status is Status.PASS


@pytest.mark.skipif(GPU, reason="there may be a GPU")
def test_a_missing_gpu_is_reported_with_the_reason(children: Children, it: Installed) -> None:
    report = proven(children, it, "cuda")
    assert report.status is Status.FAIL
    assert report.findings[0].evidence
    built_for_cpus = report.measured.get("cpu_build") is True
    assert (report.findings[0].id == "cpu-build") is built_for_cpus
    assert report.findings[0].id in {
        "cpu-build",
        "driver-library-missing",
        "driver-too-old",  # CuPy: the runtime says the same of no driver
        "library-missing",
        "no-gpu-for-framework",
    }


@pytest.mark.skipif(GPU, reason="there may be a GPU")
def test_a_failing_driver_is_recognised_in_messages_of_a_gpu_build(
    children: Children, it: Installed, fake_driver: FakeDriver
) -> None:
    environ = fake_driver.environ(driver="580.65.06", cuda="13.0", devices=[GTX_1080_TI], fail={"cuInit": 803})
    report = proven(children, it, "cuda", environ=environ)
    found = {each.id for each in report.findings}
    if report.measured.get("cpu_build") is True:
        assert found == {"cpu-build"}
    elif it.framework.name == "paddlepaddle":  # which says nothing
        assert found == {"no-gpu-for-framework"}
    else:  # the runtimes of CUDA 9 know no such number
        assert found & {"driver-version-mismatch", "driver-unknown-error", "library-missing"}
