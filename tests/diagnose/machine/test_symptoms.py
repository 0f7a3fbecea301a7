"""A fault also appears in the answers of the driver: only the finding nearest the cause remains."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble, cuda_problem, nvml_problem, smi_problem
from envsolve.model.host import Reading
from tests.diagnose.machine.faults_driver import DRIVER_FAULTS
from tests.diagnose.machine.faults_places import PLACE_FAULTS
from tests.diagnose.machine.recorded import WORKING, failed_reading, found


def nvml(number: int) -> Reading:
    return Reading(Source.NVML, problem=nvml_problem(number, "nvmlInit"))


def cuda(number: int) -> Reading:
    return Reading(Source.LIBCUDA, problem=cuda_problem(number, "cuInit"))


def smi(number: int) -> Reading:
    return Reading(Source.NVIDIA_SMI, problem=smi_problem(number))


MISSING = (
    failed_reading(Source.NVML, Trouble.LIBRARY_MISSING, "libnvidia-ml.so.1: no such file"),
    failed_reading(Source.LIBCUDA, Trouble.LIBRARY_MISSING, "libcuda.so.1: no such file"),
)
NOT_LOADED = (nvml(9), cuda(100), smi(9))
NO_DEVICE = (cuda(100), smi(6))
CASES = {
    "no driver": (MISSING,),
    "nouveau holds the GPU": (MISSING,),
    "nouveau holds the GPU beside an installed driver": (NOT_LOADED, (nvml(9), cuda(999))),
    "the only GPU is for a virtual machine": (NOT_LOADED,),
    "the module is not loaded": (NOT_LOADED, (nvml(9), cuda(3)), (nvml(9), cuda(999))),
    "a new kernel has no module": (NOT_LOADED,),
    "the driver dropped the GPU": (NO_DEVICE,),
    "the driver dropped the GPU and its module does not load": (NOT_LOADED,),
    "the driver does not know the GPU yet": (NO_DEVICE,),
    "the closed module has a GPU of Blackwell": (NO_DEVICE,),
    "the open module has a GPU of Pascal": (NO_DEVICE,),
    "the libraries for computing are missing": ((WORKING[0], MISSING[1]),),
    "the libraries are newer than the module": ((nvml(18), cuda(803), smi(18)), (nvml(18), cuda(999))),
    "the stub is in front of the driver": ((cuda(34),),),
    "a compatibility package is older than the driver": ((cuda(803),), (cuda(999),)),
    "a compatibility package on a GeForce": ((cuda(804),),),
    "the device files are missing": (NOT_LOADED, (nvml(999), cuda(999))),
    "the device files are closed": ((nvml(4), cuda(100)), (nvml(4), cuda(304)), (nvml(17),)),
    "the cache leads to an empty file elsewhere": (
        (failed_reading(Source.LIBCUDA, Trouble.LIBRARY_UNUSABLE, "too short"),),
    ),
    "a container without GPUs": (MISSING,),
    "a container of an image that was made with GPUs": (
        (failed_reading(Source.LIBCUDA, Trouble.LIBRARY_UNUSABLE, "file too short"),),
    ),
    "a container with the wrong capabilities": ((WORKING[0], MISSING[1]),),
    "a Linux driver in WSL": (NO_DEVICE, (nvml(9), cuda(999))),
    "the loader does not know WSL's directory": (MISSING,),
    "WSL 1": (MISSING,),
    "musl": (MISSING,),
    "no GPU at all": (MISSING,),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_the_cause_is_reported_and_not_its_symptoms(name: str, tmp_path: Path) -> None:
    case, expected = {**DRIVER_FAULTS, **PLACE_FAULTS}[name]
    for number, readings in enumerate(CASES[name]):
        assert found(tmp_path / str(number), case._replace(readings=readings)) == expected
