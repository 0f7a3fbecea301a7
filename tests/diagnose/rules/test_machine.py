"""Rules on the machine: what is nearer to the root is told, and what follows from it is not."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Rule
from envsolve.diagnose.rules import machine
from envsolve.model.host import Platform
from tests.diagnose.rules.test_driver import Known, case_of, causes, only, seen

DOCKER = {"container": "docker"}
WSL = {"wsl": "WSL"}


def told(known: Known, *sightings: Sighting, of: str | None = None) -> list[str]:
    """The causes that the rule of the first sighting's symptom, or ``of``, finds."""
    case = case_of(known, *sightings)
    symptom = of or sightings[0].symptom
    return causes(list(machine.RULES[symptom](case, case.of(symptom))))


def only_fields(*sightings: Sighting) -> list[dict[str, str]]:
    """The fields of the causes."""
    case = case_of(Known(), *sightings)
    found = machine.RULES[sightings[0].symptom](case, sightings)
    return [dict(cause.fields) for diagnosis in found for cause in diagnosis.causes]


NO_DEVICE = [
    pytest.param(Known(), (), ["gpus-hidden", "no-device", "no-gpu-allocated"], id="nothing is known"),
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
]


@pytest.mark.parametrize(("known", "others", "expected"), NO_DEVICE)
def test_no_device_has_the_causes_that_the_machine_allows(
    known: Known, others: tuple[Sighting, ...], expected: list[str]
) -> None:
    assert told(known, seen("no-device"), *others) == expected


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
def test_no_device_follows_from_what_is_told(root: str) -> None:
    assert told(Known(), seen("no-device"), seen(root)) == []


def test_no_device_follows_from_an_error_told_by_its_number() -> None:
    assert told(Known(), seen("no-device"), seen("cuda-error-number", number="803")) == []


NUMBERS = [
    ("3", "driver-not-initialized"),
    ("30", "driver-unknown-error"),
    ("34", "stub-driver-library"),
    ("35", "driver-too-old"),
    ("46", "gpu-unavailable"),
    ("100", "gpus-hidden"),
    ("101", "invalid-device"),
    ("214", "gpu-ecc-error"),
    ("222", "ptx-too-new"),
    ("303", "driver-library-missing"),
    ("500", "wsl-container-library"),
    ("802", "fabric-manager-not-ready"),
    ("803", "driver-version-mismatch"),
    ("804", "forward-compatibility-unsupported"),
    ("805", "mps-in-trouble"),
    ("999", "driver-unknown-error"),
]


@pytest.mark.parametrize(("number", "cause"), NUMBERS)
def test_a_number_means_what_its_words_mean(number: str, cause: str) -> None:
    assert told(Known(), seen("cuda-error-number", "failed call to cuInit: UNKNOWN ERROR", number=number))[0] == cause


@pytest.mark.parametrize("number", ["2", "700", "1"])
def test_a_number_of_another_subject_is_left_alone(number: str) -> None:
    assert told(Known(), seen("cuda-error-number", number=number)) == []


def test_a_number_beside_its_words_is_told_once() -> None:
    sightings = (seen("cuda-error-number", number="804"), seen("forward-compatibility-unsupported"))
    assert told(Known(), *sightings) == []


LIBRARY = [
    pytest.param(Known(), (), ["driver-library-missing", "container-without-gpu"], id="nothing is known"),
    pytest.param(Known(clues=DOCKER), (), ["container-without-gpu", "driver-library-missing"], id="a container"),
    pytest.param(Known(clues=WSL), (), ["wsl-driver-not-reached", "driver-library-missing"], id="WSL"),
    pytest.param(Known(clues=WSL), (seen("wsl-1", kernel="4.4.0-20236-Microsoft"),), ["wsl-1"], id="WSL 1"),
    pytest.param(
        Known(driver="550.54.14"),
        (),
        ["driver-hidden-from-process", "container-without-gpu"],
        id="nvidia-smi shows a driver",
    ),
    pytest.param(Known(platform=Platform.OSX_ARM64), (), ["no-cuda-on-macos"], id="a Mac"),
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
    assert told(known, seen("driver-library-missing", library="libcuda.so.1"), *others) == expected


MISMATCH = [
    pytest.param(
        Known(),
        {"nvml": "Driver/library version mismatch"},
        ["driver-version-mismatch"],
        id="NVML: an update without a restart",
    ),
    pytest.param(Known(), {}, ["driver-version-mismatch", "stale-compat-library"], id="803 alone"),
    pytest.param(Known(clues=DOCKER), {}, ["stale-compat-library", "driver-version-mismatch"], id="803 in a container"),
    pytest.param(
        Known(),
        {"kernel": "470.182.3", "library": "520.61.5"},
        ["stale-compat-library", "driver-version-mismatch"],
        id="a library of a newer branch",
    ),
    pytest.param(
        Known(),
        {"kernel": "460.73.01", "library": "460.56"},
        ["driver-version-mismatch", "stale-compat-library"],
        id="of one branch",
    ),
]


@pytest.mark.parametrize(("known", "fields", "expected"), MISMATCH)
def test_why_module_and_library_differ(known: Known, fields: dict[str, str], expected: list[str]) -> None:
    assert told(known, seen("driver-version-mismatch", **fields)) == expected


def test_packages_tell_the_version_of_the_libraries() -> None:
    sightings = (seen("driver-version-mismatch", nvml="mismatch"), seen("driver-packages", package="525.85.12"))
    case = case_of(Known(clues={"driver": "520.56.06"}), *sightings)
    cause = only(list(machine.version_mismatch(case, sightings[:1])))
    assert cause.fields["versions"] == "The kernel module is 520.56.06, the driver's libraries are 525.85.12."


COMPAT = [
    pytest.param(Known(clues=DOCKER), (), ["forward-compatibility-unsupported"], id="a container"),
    pytest.param(Known(), (), ["forward-compatibility-unsupported", "driver-version-mismatch"], id="nothing is known"),
    pytest.param(Known(), (seen("driver-version-mismatch", nvml="mismatch"),), [], id="an update without a restart"),
]


@pytest.mark.parametrize(("known", "others", "expected"), COMPAT)
def test_error_804(known: Known, others: tuple[Sighting, ...], expected: list[str]) -> None:
    assert told(known, seen("forward-compatibility-unsupported"), *others) == expected


def test_the_cuda_that_an_image_shows_is_not_the_drivers() -> None:
    sighting = seen("forward-compatibility-unsupported")
    case = case_of(Known(driver="470.161.03", clues={"driver_cuda": "11.8"}), sighting)
    fields = only(list(machine.compat_unsupported(case, (sighting,)))).fields
    assert (fields["native"], fields["shown"], fields["full"]) == ("11.4", "11.8", " to 520.61.05 or newer")


DEAD = [
    pytest.param("no-devices-found", Known(), ["no-devices-found"], id="nothing is known"),
    pytest.param("no-devices-found", Known(gpu="12.0"), ["open-modules-needed", "no-devices-found"], id="Blackwell"),
    pytest.param(
        "no-devices-found",
        Known(gpu="12.0", driver="550.54.14"),
        ["driver-too-old-for-gpu", "no-devices-found"],
        id="Blackwell on R550",
    ),
    pytest.param(
        "no-devices-found",
        Known(gpu="6.1", driver="595.71.05"),
        ["driver-too-new-for-gpu", "no-devices-found"],
        id="Pascal on R595",
    ),
    pytest.param("no-devices-found", Known(clues=WSL), ["wsl-driver-not-reached", "no-devices-found"], id="WSL"),
    pytest.param(
        "gpu-init-failed",
        Known(gpu="12.0"),
        ["open-modules-needed", "gpu-init-failed"],
        id="Blackwell that does not start",
    ),
    pytest.param(
        "driver-not-loaded",
        Known(gpu="3.5", driver="535.129.03"),
        ["driver-too-new-for-gpu", "kernel-module-not-loaded"],
        id="Kepler on R535",
    ),
    pytest.param(
        "driver-not-loaded",
        Known(clues=WSL),
        ["wsl-driver-not-reached", "kernel-module-not-loaded"],
        id="nvidia-smi of Linux in WSL",
    ),
    pytest.param("driver-not-loaded", Known(), ["kernel-module-not-loaded"], id="not loaded"),
]


@pytest.mark.parametrize(("symptom", "known", "expected"), DEAD)
def test_gpus_that_the_driver_does_not_start(symptom: str, known: Known, expected: list[str]) -> None:
    assert told(known, seen(symptom)) == expected


@pytest.mark.parametrize(
    "root", ["kernel-module-refused", "kernel-module-missing", "nouveau-has-gpu", "driver-branch-ended"]
)
def test_a_module_that_is_not_loaded_follows_from_what_is_told(root: str) -> None:
    assert told(Known(), seen("driver-not-loaded"), seen(root)) == []


REASONS = [
    ("initialization", "nvml error: driver not loaded: unknown.", "container-host-driver"),
    ("initialization", 'driver error: failed to process request\\\\n\\""": unknown.', "container-host-driver"),
    (
        "initialization",
        "load library failed: libnvidia-ml.so.1: cannot open shared object file",
        "container-host-driver",
    ),
    ("container", "cgroup subsystem devices not found: unknown.", "container-cgroup"),
    ("mount", "failed to add device rules: unable to find any existing device filters", "container-cgroup"),
    ("mount", f"file creation failed: {'/a' * 90}/libnvidia-ml.so.1: file exists: unknown.", "container-file-exists"),
    ("device", "false: unknown device: unknown.", "container-device-unknown"),
    ("ldcache", "process /sbin/ldconfig.real failed with error code: 1", "container-ldconfig"),
    ("mount", "mount operation failed: no such device", "container-runtime-failed"),
]


@pytest.mark.parametrize(("stage", "reason", "expected"), REASONS)
def test_what_nvidias_container_runtime_says(stage: str, reason: str, expected: str) -> None:
    sighting = seen("container-runtime-failed", stage=stage, reason=reason)
    cause = only(list(machine.runtime_failed(case_of(Known(), sighting), (sighting,))))
    assert cause.explanation == expected
    assert "\\" not in cause.fields["reason"]
    assert not cause.fields["reason"].endswith("unknown")
    assert len(cause.fields["reason"]) <= 161


@pytest.mark.parametrize("other", ["wsl-without-adapter", "driver-version-mismatch", "device-files-denied"])
def test_what_a_line_of_the_container_runtime_says_in_other_words_is_told_once(other: str) -> None:
    sighting = seen("container-runtime-failed", stage="initialization", reason="nvml error")
    assert told(Known(), sighting, seen(other)) == []


UNKNOWN = [
    pytest.param(
        Known(), "CUDA unknown error", ["driver-unknown-error", "container-without-uvm"], id="nothing is known"
    ),
    pytest.param(
        Known(clues=DOCKER), "CUDA unknown error", ["container-without-uvm", "driver-unknown-error"], id="a container"
    ),
    pytest.param(
        Known(),
        "lxd cannot use cuda, cudaErrorUnknown",
        ["container-without-uvm", "driver-unknown-error"],
        id="LXD by its name",
    ),
    pytest.param(
        Known(platform=Platform.WIN_64),
        "CUDA unknown error",
        ["driver-restart-windows", "driver-unknown-error"],
        id="Windows",
    ),
]


@pytest.mark.parametrize(("known", "line", "expected"), UNKNOWN)
def test_the_unknown_error(known: Known, line: str, expected: list[str]) -> None:
    assert told(known, seen("driver-unknown-error", line)) == expected


INITIAL = [
    pytest.param(
        Known(), "CUDA driver initialization failed", ["driver-not-initialized", "forked-cuda"], id="at the start"
    ),
    pytest.param(
        Known(), "cuda runtime error (3) : initialization error", ["forked-cuda", "driver-not-initialized"], id="later"
    ),
    pytest.param(
        Known(driver="426.78", cuda="11.3", platform=Platform.WIN_64, packages={"torch": "1.11.0"}),
        "CUDA driver initialization failed",
        ["driver-too-old", "driver-not-initialized"],
        id="a driver that is too old",
    ),
    pytest.param(
        Known(driver="418.226.00"),
        "CUDA driver initialization failed",
        ["driver-too-old", "driver-not-initialized", "forked-cuda"],
        id="a driver from before CUDA 11",
    ),
]


@pytest.mark.parametrize(("known", "line", "expected"), INITIAL)
def test_error_3(known: Known, line: str, expected: list[str]) -> None:
    assert told(known, seen("driver-not-initialized", line)) == expected


def test_a_gpu_held_alone_is_told_with_its_mode() -> None:
    assert told(Known(), seen("gpu-unavailable"), seen("exclusive-mode")) == ["gpu-unavailable"]
    assert told(Known(), seen("gpu-unavailable")) == ["gpu-unavailable", "gpu-stuck"]
    assert told(Known(clues=WSL), seen("gpu-unavailable")) == ["gpu-stuck", "gpu-unavailable"]


def test_handles_that_wsl_refuses() -> None:
    line = "Unable to determine the device handle for GPU0"
    first, second = seen("gpu-lost", line, bus="0000:C1:00.0"), seen("gpu-lost", line, bus="0000:E1:00.0")
    assert told(Known(), first) == ["gpu-lost"]
    assert told(Known(clues=WSL), first) == ["wsl-tcc-mode", "gpu-lost"]
    assert told(Known(), first, second, seen("no-devices-found")) == ["gpu-lost", "wsl-tcc-mode"]
    assert told(Known(clues=DOCKER), first) == ["gpu-lost", "container-lost-gpu"]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (["119", "119"], ["gsp-timeout"]),
        (["48"], ["gpu-hardware-error"]),
        (["48", "119"], ["gpu-hardware-error", "gsp-timeout"]),
        (["13", "31", "43", "79"], []),
    ],
)
def test_xid_errors_of_hardware_and_driver_are_told_once_each(numbers: list[str], expected: list[str]) -> None:
    assert told(Known(), *(seen("gpu-xid", xid=number, bus="0000:01:00") for number in numbers)) == expected


def test_wsl_that_blocks_the_gpu() -> None:
    blocked = seen("wsl-gpu-blocked")
    assert told(Known(), blocked, seen("tcc-mode")) == ["wsl-tcc-mode"]
    assert told(Known(), blocked, seen("windows-without-gpu-for-wsl", build="18363"))[0] == "windows-too-old-for-wsl"
    assert told(Known(), blocked) == ["wsl-gpu-blocked", "wsl-tcc-mode"]


def test_hidden_gpus_are_told_alone_only_beside_another_trouble() -> None:
    assert told(Known(), seen("gpus-hidden")) == []
    assert told(Known(), seen("gpus-hidden"), seen("driver-too-old")) == ["gpus-hidden"]
    assert told(Known(), seen("gpus-hidden"), seen("driver-too-old"), seen("no-device")) == []


@pytest.mark.parametrize(
    ("library", "capability"),
    [
        ("libnvcuvid.so.1", "video"),
        ("libnvidia-encode.so.1", "video"),
        ("libnvoptix.so.1", "graphics"),
        ("libEGL_nvidia.so.0", "graphics"),
    ],
)
def test_which_capability_brings_a_library(library: str, capability: str) -> None:
    sighting = seen("driver-capability-missing", library=library)
    cause = only(list(machine.capability_missing(case_of(Known(), sighting), (sighting,))))
    assert cause.fields["capability"] == capability


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
def test_what_stands_beside_it_ranks_the_causes(symptom: str, others: tuple[str, ...], expected: list[str]) -> None:
    beside = tuple(seen(it, line="kernel driver does not appear to be running on this host") for it in others)
    assert told(Known(), seen(symptom), *beside) == expected


def test_pytorchs_own_check_of_device_numbers_may_be_mig() -> None:
    assert told(Known(), seen("invalid-device", line=ASSERT)) == ["invalid-device", "mig-one-device"]


def test_docker_on_windows_has_no_toolkit_to_install() -> None:
    known = Known(platform=Platform.WIN_64)
    assert told(known, seen("container-toolkit-missing")) == ["container-on-windows", "container-toolkit-missing"]
    registered = seen("container-toolkit-missing", runtime="unknown or invalid runtime name: nvidia")
    assert told(known, registered) == ["container-toolkit-missing"]


def test_a_library_of_an_older_driver_is_to_be_removed() -> None:
    sighting = seen("driver-version-mismatch", kernel="384.130.0", library="375.66.0")
    (first, *_) = only_fields(sighting)
    assert "older of the two" in first["how"]
    assert "375.66.0" in first["mend"]


@pytest.mark.parametrize("symptom", [name for name, rule in machine.RULES.items() if rule is machine.told_elsewhere])
def test_facts_mean_nothing_alone(symptom: str) -> None:
    assert told(Known(), seen(symptom)) == []


def test_every_rule_is_used_with_all_that_it_may_meet() -> None:
    """No rule fails for want of a field: each is called with a bare sighting, on each kind of machine."""
    kinds = (Known(), Known(clues=DOCKER), Known(clues=WSL), Known(driver="470.86", gpu="6.1"))
    for symptom, rule in machine.RULES.items():
        number = {"number": "999"} if symptom == "cuda-error-number" else {}
        for known in kinds:
            _call(rule, case_of(known, seen(symptom, **number)))


def _call(rule: Rule, case: Case) -> None:
    for diagnosis in rule(case, case.sightings):
        assert diagnosis.causes
