"""A live machine with the fake driver: the real loader and the real calls agree with the files."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.fake_driver.builder import GTX_1080_TI, Device, FakeDriver

pytestmark = pytest.mark.thorough

EXAMINE = """
import json, os
from envsolve.diagnose.machine import Survey, examine_machine
from envsolve.host.detection import examine
from envsolve.host.machine import Machine, this_platform
from envsolve.matrix import Matrix, find_matrix

matrix = Matrix(find_matrix())
machine = Machine(this_platform(), os.environ)
report = examine_machine(Survey(machine, examine(machine, pci_table=matrix.pci_ids.get), matrix))
print(json.dumps([[it.as_json() for it in report.findings], dict(report.inventory)]))
"""
H100 = Device("NVIDIA H100 80GB HBM3", "9.0", 81559)


def examined(environ: dict[str, str]) -> tuple[dict[str, dict[str, object]], dict[str, dict[str, object]]]:
    command = [sys.executable, "-c", EXAMINE]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=120)
    findings, inventory = json.loads(done.stdout)
    return {it["id"]: it for it in findings}, inventory


def test_a_driver_that_works_has_no_error(fake_driver: FakeDriver) -> None:
    findings, inventory = examined(fake_driver.environ(driver="580.65.06", cuda="13.0", devices=[H100]))
    assert not [it for it in findings.values() if it["severity"] == "error"]
    assert inventory["driver"]["version"] == "580.65.06"
    libcuda = inventory["driver"]["libcuda"]
    assert isinstance(libcuda, dict)
    assert libcuda["origin"] == "LD_LIBRARY_PATH"


@pytest.mark.parametrize(
    ("errors", "identifier"),
    [
        ({"cuInit": 803, "nvmlInitWithFlags": 18, "nvidia-smi": 18}, "driver-version-mismatch"),
        ({"cuInit": 802}, "fabric-manager-not-ready"),
        ({"cuInit": 999}, "driver-unknown-error"),
        ({"cuInit": 804}, "forward-compatibility-unsupported"),
    ],
)
def test_problems_reported_by_the_driver_are_found(
    errors: dict[str, int], identifier: str, fake_driver: FakeDriver
) -> None:
    environ = fake_driver.environ(driver="580.65.06", cuda="13.0", devices=[GTX_1080_TI], fail=errors)
    findings, _ = examined(environ)
    assert [it["id"] for it in findings.values() if it["severity"] == "error"] == [identifier]


def test_a_variable_that_hides_the_gpu_is_found(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(driver="580.65.06", cuda="13.0", devices=[H100])
    findings, _ = examined({**environ, "CUDA_VISIBLE_DEVICES": "1"})
    assert findings["gpus-hidden"]["severity"] == "error"
