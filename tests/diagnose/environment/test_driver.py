"""The driver compared with the CUDA of the frameworks."""

from __future__ import annotations

import pytest

from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Severity
from envsolve.model.host import Host
from tests.diagnose.environment.on_disk import Patient, host, names
from tests.diagnose.environment.static_environment import AMPERE
from tests.scripts.fat_binary import fat_binary

BLACKWELL = ComputeCapability(12, 0)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "machine",
    [
        host(AMPERE, driver="470.256.02", cuda="11.4"),
        host(AMPERE, driver="470.256.02", cuda=None),
        host(AMPERE, driver=None, cuda="11.8"),
    ],
    ids=["both known", "driver alone", "CUDA alone"],
)
def test_a_driver_below_the_floor_of_the_build_is_an_error(stack: Patient, machine: Host) -> None:
    finding = stack.only("driver-too-old", Severity.ERROR, machine)
    assert finding.about == "pytorch"
    assert "is built for CUDA 12.8, which needs driver 525.60.13 or newer" in finding.cause
    assert finding.commands == (stack.planned,)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "machine",
    [
        host(AMPERE, driver="525.60.13", cuda="12.0"),
        host(AMPERE, driver="470.256.02", cuda="12.8"),
        host(AMPERE, driver=None, cuda=None),
        host(AMPERE, driver=None, cuda="12.2"),
    ],
    ids=["minor-version compatibility", "compatibility package", "nothing known", "CUDA alone"],
)
def test_a_driver_that_runs_the_build_is_no_fault(stack: Patient, machine: Host) -> None:
    assert names(stack.report(machine).findings) == []


def test_under_wsl_the_numbers_are_those_of_windows(stack: Patient) -> None:
    """525.60.13 is enough on Linux; Windows needs 527.41 or newer."""
    machine = host(AMPERE, driver="526.98", cuda=None)
    assert names(stack.report(machine).findings) == []
    finding = stack.only("driver-too-old", Severity.ERROR, machine._replace(wsl=True))
    assert "needs driver 52" in finding.cause


@pytest.mark.thorough
def test_ptx_alone_needs_a_driver_that_supports_its_cuda_in_full(stack: Patient) -> None:
    for file in stack.site.glob("nvidia/*/lib/*.so*"):
        stack.library(str(file.relative_to(stack.site)), code=fat_binary((80, 120)), runpath="$ORIGIN")
    stack.torch(fat_binary((80,), (90,)))
    stack.uninstall("torch")
    found = {it.id: it for it in stack.report(host(BLACKWELL, driver="560.35.03", cuda="12.6")).findings}
    assert found["ptx-too-new"].severity is Severity.ERROR
    too_new = "only PTX of CUDA 12.8 for this GPU. The driver 560.35.03 (CUDA 12.6) does not support that CUDA"
    assert too_new in found["ptx-too-new"].cause
    assert "ptx-too-new" not in {
        it.id for it in stack.report(host(BLACKWELL, driver="570.86.10", cuda="12.8")).findings
    }
    by_number = host(BLACKWELL, driver="560.35.03", cuda=None)
    assert "ptx-too-new" in {it.id for it in stack.report(by_number).findings}
