"""Choosing between readings: the orders, what is filled in, and which contradictions are reported."""

from __future__ import annotations

import pytest

from envsolve.host.choose import choose, choose_driver, choose_driver_cuda, choose_gpus
from envsolve.host.evidence import Evidence, Surroundings
from envsolve.host.gpus import grouped
from envsolve.host.probe import Source, read_probe
from envsolve.host.trouble import Trouble, cuda_problem, nvml_problem
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, GpuStatus, Host, Platform, Reading, SourceFailure
from envsolve.model.versions import CudaVersion, DriverVersion

DRIVERS = {
    Source.NVML: "580.65.06",
    Source.SYS_MODULE: "570.195.03",
    Source.PROC_VERSION: "560.35.05",
    Source.NVIDIA_SMI: "550.163.01",
    Source.REGISTRY: "537.42",
}
CUDAS = {Source.LIBCUDA: "13.0", Source.NVML: "12.8", Source.NVIDIA_SMI: "12.4"}
GPU_SOURCES = (Source.NVML, Source.LIBCUDA, Source.NVIDIA_SMI, Source.PCI, Source.REGISTRY, Source.PROC_GPUS)


def evidence(*readings: Reading, **surroundings: object) -> Evidence:
    """Readings with their surroundings."""
    return Evidence(readings, Surroundings(**surroundings))  # type: ignore[arg-type]


def host(*readings: Reading, **surroundings: object) -> Host:
    """The host chosen from ``readings``."""
    return choose(evidence(*readings, **surroundings), Platform.LINUX_64)


def gpu(name: str = "NVIDIA T4", capability: str | None = "7.5", count: int = 1) -> Gpu:
    """A GPU in short."""
    return Gpu(name, None if capability is None else ComputeCapability.parse(capability), count)


def readings_in(order: dict[Source, str], field: str) -> list[Reading]:
    """One reading for each source, the least trusted first."""
    parse = DriverVersion.parse if field == "driver" else CudaVersion.parse
    return [Reading(source, **{field: parse(text)}) for source, text in reversed(order.items())]  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", range(len(DRIVERS) + 1))
def test_the_driver_comes_from_the_first_source_that_has_it(missing: int) -> None:
    readings = readings_in(DRIVERS, "driver")[: len(DRIVERS) - missing]
    expected = [*((DriverVersion.parse(text), source) for source, text in DRIVERS.items()), (None, None)][missing]
    assert choose_driver(evidence(*readings)) == expected


@pytest.mark.parametrize("missing", range(len(CUDAS) + 1))
def test_the_cuda_version_comes_from_the_first_source_that_has_it(missing: int) -> None:
    readings = readings_in(CUDAS, "driver_cuda")[: len(CUDAS) - missing]
    expected = [*((CudaVersion.parse(text), source) for source, text in CUDAS.items()), (None, None)][missing]
    assert choose_driver_cuda(evidence(*readings)) == expected


@pytest.mark.parametrize("missing", range(len(GPU_SOURCES)))
def test_the_gpus_come_from_the_first_source_that_lists_any(missing: int) -> None:
    readings = [Reading(source, gpus=(gpu(str(source)),)) for source in GPU_SOURCES[missing:]]
    readings += [Reading(source, gpus=()) for source in GPU_SOURCES[:missing]]
    assert choose_gpus(evidence(*readings)) == ((gpu(str(GPU_SOURCES[missing])),), GPU_SOURCES[missing])


def test_no_gpu_is_an_answer_with_a_source() -> None:
    assert choose_gpus(evidence(Reading(Source.PCI, gpus=()), Reading(Source.LIBCUDA))) == ((), "pci")


def test_a_capability_is_only_filled_in_if_it_is_unambiguous() -> None:
    names = Reading(Source.NVIDIA_SMI, gpus=(gpu("A", None), gpu("B", None)))
    same = Reading(Source.PCI, gpus=(gpu("X", "7.5"), gpu("Y", "7.5")))
    different = Reading(Source.PCI, gpus=(gpu("X", "7.5"), gpu("Y", "8.6")))
    by_name = Reading(Source.PCI, gpus=(gpu("A", "7.5"), gpu("B", "8.6")))
    assert choose_gpus(evidence(names, same)) == ((gpu("A"), gpu("B")), "nvidia-smi, pci")
    assert choose_gpus(evidence(names, different)) == (names.gpus, "nvidia-smi")
    assert choose_gpus(evidence(names, by_name)) == (by_name.gpus, "nvidia-smi, pci")


def test_groups_have_their_count_and_smallest_memory() -> None:
    t4 = ComputeCapability(7, 5)
    found = grouped(
        [Gpu("T4", t4, memory_mib=16), Gpu("L4", None), Gpu("T4", t4, memory_mib=15, mig=True), Gpu("T4", t4)]
    )
    assert found == (Gpu("T4", t4, count=3, memory_mib=15, mig=True), Gpu("L4", None))


def test_contradicting_drivers_are_reported_and_the_first_wins() -> None:
    found = host(*reversed(readings_in(DRIVERS, "driver")))
    assert str(found.driver) == "580.65.06"
    assert any(note.startswith("sources disagree on the driver version: 580.65.06 (nvml), 570") for note in found.notes)


def test_sources_that_see_different_gpus_are_reported() -> None:
    found = host(
        Reading(Source.NVML, gpus=(gpu(count=2),), driver=DriverVersion.parse("580.65.06")),
        Reading(Source.LIBCUDA, gpus=(gpu(),)),
    )
    assert "sources disagree on the GPUs: 2 x NVIDIA T4 7.5 (nvml), 1 x NVIDIA T4 7.5 (libcuda)" in found.notes


def test_readings_and_origins_are_preserved() -> None:
    reading = Reading(Source.NVML, DriverVersion.parse("580.65.06"), CudaVersion(13, 0), (gpu(),))
    found = host(reading)
    assert found.readings == (reading,)
    assert found.origin == {"driver": "nvml", "driver_cuda": "nvml", "gpus": "nvml"}
    assert found.status == GpuStatus.READY


STATUSES = {
    "a driver and zero GPUs": (
        [Reading(Source.NVML, DriverVersion.parse("580.65.06"), gpus=())],
        GpuStatus.NO_GPU,
    ),
    "only the registry knows a driver": (
        [Reading(Source.REGISTRY, DriverVersion.parse("566.36"), gpus=(gpu(),))],
        GpuStatus.DRIVER_BROKEN,
    ),
    "libcuda installed on a machine without a PCI bus": (
        [Reading(Source.LIBCUDA, driver_cuda=CudaVersion(13, 0), problem=cuda_problem(100, "cuInit"))],
        GpuStatus.NO_GPU,
    ),
    "libcuda installed on a machine whose bus has no GPU": (
        [
            Reading(Source.PCI, gpus=()),
            Reading(Source.LIBCUDA, driver_cuda=CudaVersion(13, 0), problem=cuda_problem(100, "cuInit")),
        ],
        GpuStatus.NO_HARDWARE,
    ),
    "libcuda cannot use what NVML lists": (
        [Reading(Source.NVML, gpus=(gpu(),)), Reading(Source.LIBCUDA, problem=cuda_problem(100, "cuInit"))],
        GpuStatus.NO_ACCESS,
    ),
    "our own probe failed beside a good one": (
        [
            Reading(Source.NVML, gpus=(gpu(),)),
            Reading(Source.LIBCUDA, problem=SourceFailure(Trouble.PROBE_FAILED, "OSError")),
        ],
        GpuStatus.READY,
    ),
    "NVML without a loaded driver and no word from the bus": (
        [Reading(Source.NVML, problem=nvml_problem(9, "nvmlInit"))],
        GpuStatus.DRIVER_BROKEN,
    ),
    "an error number that nobody knows": (
        [Reading(Source.NVML, problem=nvml_problem(4711, "nvmlInit"))],
        GpuStatus.DRIVER_BROKEN,
    ),
}


@pytest.mark.parametrize("name", STATUSES)
def test_the_status_follows_from_the_readings(name: str) -> None:
    readings, status = STATUSES[name]
    assert host(*readings).status == status


@pytest.mark.parametrize(("value", "what"), [("NoDevFiles", "hides every GPU"), ("0", "limits the GPUs")])
def test_a_variable_of_slurm_hides_every_gpu_as_others_do(value: str, what: str) -> None:
    (note,) = host(Reading(Source.NVML, gpus=(gpu(),)), cuda_visible_devices=value).notes
    assert what in note


def test_variables_only_explain_missing_devices() -> None:
    ready = Reading(Source.NVML, gpus=(gpu(),))
    assert host(ready, nvidia_visible_devices="void").notes == ()
    assert host(nvidia_visible_devices="void").notes == ()
    assert any(
        "NVIDIA_VISIBLE_DEVICES=none" in note
        for note in host(Reading(Source.NVML, problem=nvml_problem(4, "nvmlInit")), nvidia_visible_devices="none").notes
    )


@pytest.mark.parametrize(
    ("value", "left_out"), [("utility", True), ("compute,utility", False), ("all", False), ("", False)]
)
def test_driver_capabilities_without_compute_are_recognised(value: str, left_out: bool) -> None:
    assert Surroundings(driver_capabilities=value).container_without_compute is left_out


class Exploding:
    """A probe with a bug."""

    name = "exploding"

    def read(self) -> Reading | None:
        """Fail in an unexpected way."""
        raise KeyError("surprise")


def test_a_failing_probe_becomes_a_reading() -> None:
    assert read_probe(Exploding()) == Reading(
        "exploding", problem=SourceFailure("probe-failed", "KeyError: 'surprise'")
    )
