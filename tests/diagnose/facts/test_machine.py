"""Rules on the machine: the root cause is reported, and its consequences are not."""

from __future__ import annotations

import re

import pytest

from envsolve.diagnose.case import Sighting
from envsolve.diagnose.diagnosis import diagnoses_of
from envsolve.diagnose.tables import Tables
from envsolve.findings.catalogue import shipped
from envsolve.model.host import Platform
from tests.diagnose.facts.driver_cases import DOCKER, TABLES, WSL, Known, case_of, cause_ids, seen

NO_DEVICE = [
    pytest.param(Known(), (), ["no-device", "gpus-hidden", "no-gpu-allocated"], id="nothing is known"),
    pytest.param(Known(), (seen("gpus-hidden", value="'-1'"),), ["gpus-hidden", "no-device"], id="hidden in the text"),
    pytest.param(
        Known(clues={"available": "True"}), (), ["gpus-hidden", "no-device"], id="seen elsewhere, so hidden here"
    ),
    pytest.param(Known(clues=DOCKER), (), ["container-without-gpu", "gpus-hidden", "no-device"], id="a container"),
    pytest.param(Known(clues=WSL), (), ["no-device", "wsl-driver-not-reached", "gpus-hidden"], id="WSL"),
    pytest.param(Known(), (seen("slurm"),), ["no-gpu-allocated", "gpus-hidden", "no-device"], id="a job"),
    pytest.param(
        Known(), (seen("colab", service="kaggle"),), ["no-gpu-allocated", "gpus-hidden", "no-device"], id="a notebook"
    ),
    pytest.param(Known(clues={"jetson": "jetson"}), (), ["jetson-device-files", "no-device"], id="a Jetson"),
    pytest.param(
        Known(driver="595.71.05", gpu="6.1"),
        (),
        ["driver-too-new-for-gpu", "no-device"],
        id="a driver that dropped the GPU",
    ),
    pytest.param(Known(platform=Platform.OSX_ARM64), (), ["macos-without-cuda"], id="a Mac"),
    pytest.param(Known(clues={"platform": "osx-arm64"}), (), ["macos-without-cuda"], id="a Mac by its text"),
    pytest.param(
        Known(clues={"platform": "osx-64", "linux": "Ubuntu"}),
        (),
        ["macos-without-cuda", "no-device", "gpus-hidden", "no-gpu-allocated"],
        id="a Mac and Linux",
    ),
]


@pytest.mark.parametrize(("known", "others", "expected"), NO_DEVICE)
def test_no_device_has_the_possible_causes_on_this_machine(
    known: Known, others: tuple[Sighting, ...], expected: list[str]
) -> None:
    assert cause_ids(known, seen("no-device"), *others) == expected


@pytest.mark.parametrize(
    "root",
    [
        "driver-version-mismatch",
        "driver-library-missing",
        "driver-branch-ended",
        "gpu-lost",
        "fabric-manager-not-ready",
        "stub-driver-library",
    ],
)
def test_no_device_follows_from_the_reported_cause(root: str) -> None:
    assert cause_ids(Known(), seen("no-device"), seen(root)) == []


def test_no_device_follows_from_an_error_given_by_number() -> None:
    assert cause_ids(Known(), seen("no-device"), seen("cuda-error-number", number="803")) == []


LIBRARY = [
    pytest.param(
        Known(),
        (),
        ["driver-library-not-found", "driver-library-missing", "container-without-gpu"],
        id="nothing is known",
    ),
    pytest.param(Known(clues=DOCKER), (), ["container-without-gpu", "driver-library-missing"], id="a container"),
    pytest.param(Known(clues=WSL), (), ["wsl-driver-not-reached", "driver-library-missing"], id="WSL"),
    pytest.param(Known(clues=WSL), (seen("wsl-1", kernel="4.4.0-20236-Microsoft"),), ["wsl-1"], id="WSL 1"),
    pytest.param(
        Known(driver="550.54.14"),
        (),
        ["driver-hidden-from-process", "container-without-gpu"],
        id="nvidia-smi shows a driver",
    ),
    pytest.param(Known(platform=Platform.OSX_ARM64), (), ["macos-without-cuda"], id="a Mac"),
    pytest.param(
        Known(),
        (seen("slurm"),),
        ["no-gpu-allocated", "driver-library-missing", "container-without-gpu"],
        id="a cluster",
    ),
    pytest.param(Known(), (seen("kubernetes-runtime"),), [], id="a pod without the runtime"),
    pytest.param(Known(), (seen("container-runtime-failed"),), [], id="the line of a container runtime"),
]


@pytest.mark.parametrize(("known", "others", "expected"), LIBRARY)
def test_why_there_is_no_library_of_the_driver(known: Known, others: tuple[Sighting, ...], expected: list[str]) -> None:
    assert cause_ids(known, seen("driver-library-missing", library="libcuda.so.1"), *others) == expected


def test_hidden_gpus_are_only_reported_alone_with_another_problem() -> None:
    assert cause_ids(Known(), seen("gpus-hidden")) == []
    assert cause_ids(Known(), seen("gpus-hidden"), seen("driver-too-old")) == ["gpus-hidden"]
    assert cause_ids(Known(), seen("gpus-hidden"), seen("driver-too-old"), seen("no-device")) == []


ASSERT = "RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED"


OTHERS = [
    pytest.param("invalid-device", (), ["invalid-device"], id="a number that is not there"),
    pytest.param("invalid-device", ("mig-devices",), ["mig-one-device", "invalid-device"], id="with MIG"),
    pytest.param("libdxcore-missing", (), ["libdxcore-missing"], id="no libdxcore"),
    pytest.param("libdxcore-missing", ("snap-docker",), ["snap-docker", "libdxcore-missing"], id="hidden by snap"),
    pytest.param("libdxcore-missing", ("wsl-without-adapter",), [], id="told in other words"),
    pytest.param(
        "container-toolkit-missing", ("snap-docker",), ["snap-docker", "container-toolkit-missing"], id="Docker of snap"
    ),
    pytest.param(
        "forward-compatibility-unsupported",
        ("bare-metal",),
        ["driver-version-mismatch", "forward-compatibility-unsupported"],
        id="no container",
    ),
    pytest.param(
        "no-device",
        ("driver-not-loaded",),
        ["kernel-module-not-loaded", "container-without-gpu", "gpus-hidden"],
        id="no module",
    ),
]


@pytest.mark.parametrize(("symptom", "others", "expected"), OTHERS)
def test_surrounding_symptoms_rank_the_causes(symptom: str, others: tuple[str, ...], expected: list[str]) -> None:
    beside = tuple(seen(it, line="kernel driver does not appear to be running on this host") for it in others)
    assert cause_ids(Known(), seen(symptom), *beside) == expected


def test_pytorchs_own_check_of_device_numbers_may_be_mig() -> None:
    assert cause_ids(Known(), seen("invalid-device", line=ASSERT)) == ["invalid-device", "mig-one-device"]


@pytest.mark.thorough
@pytest.mark.parametrize("symptom", [it.id for it in Tables().symptoms.values() if not it.explains])
def test_facts_mean_nothing_alone(symptom: str) -> None:
    assert symptom not in shipped().rules
    assert diagnoses_of(case_of(Known(), seen(symptom)), Tables()) == ()


@pytest.mark.thorough
@pytest.mark.parametrize("symptom", shipped().rules)
def test_every_rule_is_used_with_all_its_facts(symptom: str) -> None:
    """No rule fails because of a missing field, and no text has gaps, on any kind of machine."""
    kinds = (Known(), Known(clues=DOCKER), Known(clues=WSL), Known(driver="470.86", gpu="6.1"))
    always = {"driver-newer-than-program": {"program": "CUDA.jl", "wants": "CUDA 11.x", "found": "13.0"}}
    for known in kinds:
        case = case_of(known, seen(symptom, **always.get(symptom, {})))
        for diagnosis in diagnoses_of(case, TABLES):
            assert not re.search(r"[{}]|<<|>>| {2}|None", f"{diagnosis.finding.title} {diagnosis.finding.cause}"), (
                diagnosis
            )


UUID = {"kind": "MIG", "uuid": "MIG-feee0c61"}
COUNTS = [
    pytest.param({"torch": "1.13.1"}, "0", True, ["uuid-not-counted"], id="PyTorch 1.13"),
    pytest.param({"torch": "2.1.0"}, "0", True, ["uuid-not-there"], id="PyTorch that reads UUIDs"),
    pytest.param({}, "0", True, ["uuid-not-counted", "uuid-not-there"], id="no version is told"),
    pytest.param({"torch": "1.13.1"}, "0", False, [], id="no UUID"),
    pytest.param({"torch": "1.13.1"}, "1", True, [], id="one, and nothing of MIG devices"),
]


@pytest.mark.parametrize(("packages", "count", "by_uuid", "expected"), COUNTS)
def test_a_count_is_explained_where_devices_are_named_by_uuid(
    packages: dict[str, str], count: str, by_uuid: bool, expected: list[str]
) -> None:
    others = (seen("visible-by-uuid", **UUID),) if by_uuid else ()
    assert cause_ids(Known(packages=packages), seen("device-count", count=count), *others) == expected


@pytest.mark.parametrize("count", ["1", "one"])
def test_only_one_of_several_mig_devices_is_counted(count: str) -> None:
    assert cause_ids(Known(), seen("device-count", count=count), seen("mig-devices")) == ["mig-one-device"]
