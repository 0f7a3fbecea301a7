"""A correct environment gives no errors and no warnings: neither a made one nor the one that runs the tests."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from envsolve.diagnose.environment.examination import examine_environment
from envsolve.diagnose.environment.found import find_environment
from envsolve.diagnose.environment.scene import Scene
from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Severity
from envsolve.validation.child import Children
from tests.diagnose.environment.on_disk import Patient, host, names
from tests.diagnose.environment.static_environment import AMPERE


@pytest.mark.thorough
def test_a_sound_stack_gives_no_finding(stack: Patient) -> None:
    assert names(stack.report().findings) == []
    assert names(stack.report(host()).findings) == []


@pytest.mark.thorough
def test_the_inventory_is_reported_in_json(stack: Patient) -> None:
    inventory = json.loads(json.dumps(stack.report().inventory))
    assert inventory["prefix"] == str(stack.root)
    assert inventory["python"] == "3.12.4"
    assert inventory["packages"] == [
        {"name": "nvidia-cublas-cu12", "version": "12.8.4.1", "installer": "pip", "cuda": "12"},
        {"name": "nvidia-cuda-runtime-cu12", "version": "12.8.90", "installer": "pip", "cuda": "12"},
        {"name": "nvidia-cudnn-cu12", "version": "9.10.2.21", "installer": "pip", "cuda": "12"},
        {"name": "torch", "version": "2.8.0", "installer": "pip", "cuda": "12.8"},
    ]
    assert inventory["frameworks"] == [
        {
            "framework": "pytorch",
            "version": "2.8.0+cu128",
            "package": "torch",
            "cuda": "12.8",
            "cudnn": "9.10.2.21",
            "directory": str(stack.site),
        }
    ]
    libraries = {it["soname"]: it for it in inventory["libraries"] if it["owner"] != "driver"}
    assert libraries["libcublasLt.so.12"] == {
        "soname": "libcublasLt.so.12",
        "path": str(stack.site / "nvidia/cublas/lib/libcublasLt.so.12"),
        "owner": "environment",
        "version": "12.8.4.1",
        "package": "nvidia-cublas-cu12",
    }
    assert libraries["libcudnn_ops.so.9"]["version"] == "9.10.2.21"
    assert inventory["conda"] == []


@pytest.mark.thorough
def test_the_environment_that_runs_the_tests_has_no_errors_and_no_warnings() -> None:
    environ = {"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent"}
    with Children() as children:
        found = find_environment(None, sys.executable, environ, children)
    assert found.findings == ()
    report = examine_environment(Scene(found.inventory, host(AMPERE), environ, Matrix()))
    assert [it for it in report.findings if it.severity is not Severity.INFO] == []
    assert [it.about for it in report.findings if it.id == "check-not-made"] == []
    inventory = json.loads(json.dumps(report.inventory))
    assert {"pytest", "packaging"} <= {it["name"] for it in inventory["packages"]}


@pytest.mark.framework
@pytest.mark.skipif("ENVSOLVE_TEST_SOUND_PREFIXES" not in os.environ, reason="names no sound environments")
def test_named_environments_have_no_errors_and_no_warnings() -> None:
    """ENVSOLVE_TEST_SOUND_PREFIXES names prefixes of working stacks, separated as in PATH."""
    for prefix in os.environ["ENVSOLVE_TEST_SOUND_PREFIXES"].split(os.pathsep):
        with Children() as children:
            found = find_environment(prefix, None, {}, children)
        machine = host(ComputeCapability(8, 0))
        report = examine_environment(Scene(found.inventory, machine, {}, Matrix(), directory=Path(prefix)))
        assert [it for it in (*found.findings, *report.findings) if it.severity is not Severity.INFO] == [], prefix
