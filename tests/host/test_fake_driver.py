"""Detection with real shared libraries: the compiled fake driver, queried by child processes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from envsolve.model.host import Gpu, GpuStatus, Host
from tests.fake_driver.builder import GTX_1080_TI, Device, FakeDriver
from tests.host.child_detection import REPOSITORY, detected
from tests.host.tree import JETSON_MODULE, NO_PCI_GPU, device_nodes, loaded_module, pci_gpu, write_tree

RTX_4090 = Device("NVIDIA GeForce RTX 4090", "8.9", 24564)
H100_SPLIT = Device("NVIDIA H100 80GB HBM3", "9.0", 81559, mig=True)
SHORT = "0.7"


def described(gpus: tuple[Gpu, ...]) -> list[str]:
    """GPUs in a form that is easy to read in a failing test."""
    return [
        f"{gpu.count} x {gpu.name} {gpu.compute_capability} {gpu.memory_mib}{' mig' if gpu.mig else ''}" for gpu in gpus
    ]


def notes_of(host: Host) -> str:
    """All notes as one text."""
    return "\n".join(host.notes)


@dataclass(frozen=True)
class Answer:
    """A machine, as arguments of FakeDriver.environ, and the expected facts about it."""

    machine: dict[str, object]
    driver: str | None = "580.65.06"
    driver_cuda: str | None = "13.0"
    gpus: list[str] = field(default_factory=lambda: ["1 x NVIDIA GeForce GTX 1080 Ti 6.1 11264"])
    origin: dict[str, str] = field(default_factory=dict)
    status: GpuStatus = GpuStatus.READY


ANSWERS = {
    "one GPU": Answer({}, origin={"driver": "nvml", "driver_cuda": "libcuda", "gpus": "nvml"}),
    "two GPUs of one kind are counted": Answer(
        {"devices": [GTX_1080_TI, GTX_1080_TI]}, gpus=["2 x NVIDIA GeForce GTX 1080 Ti 6.1 11264"]
    ),
    "kinds keep the order of first appearance": Answer(
        {"devices": [RTX_4090, GTX_1080_TI, RTX_4090]},
        gpus=["2 x NVIDIA GeForce RTX 4090 8.9 24564", "1 x NVIDIA GeForce GTX 1080 Ti 6.1 11264"],
    ),
    "a split GPU": Answer({"devices": [H100_SPLIT]}, gpus=["1 x NVIDIA H100 80GB HBM3 9.0 81559 mig"]),
    "no NVML, as in a container with compute only": Answer(
        {"parts": ["libcuda", "nvidia-smi"]},
        origin={"driver": "nvidia-smi", "driver_cuda": "libcuda", "gpus": "libcuda"},
    ),
    "libcuda alone knows no driver version": Answer({"parts": ["libcuda"]}, driver=None),
    "no libcuda, as in a container with utility only": Answer(
        {"parts": ["libnvidia-ml"]}, origin={"driver_cuda": "nvml"}, status=GpuStatus.NO_ACCESS
    ),
    "nvidia-smi alone": Answer(
        {"parts": ["nvidia-smi"]},
        origin={"driver": "nvidia-smi", "driver_cuda": "nvidia-smi", "gpus": "nvidia-smi"},
        status=GpuStatus.NO_ACCESS,
    ),
    "nvidia-smi of R470 knows no capabilities": Answer(
        {
            "parts": ["nvidia-smi"],
            "driver": "470.256.02",
            "cuda": "11.4",
            "FAKE_NV_SMI_WITHOUT": "compute_cap",
            "devices": [Device("Tesla K80", "3.7", 11441), RTX_4090],
        },
        driver="470.256.02",
        driver_cuda="11.4",
        gpus=["1 x Tesla K80 None 11441", "1 x NVIDIA GeForce RTX 4090 None 24564"],
        status=GpuStatus.NO_ACCESS,
    ),
    "nvidia-smi of R610 names its versions differently": Answer(
        {"parts": ["nvidia-smi"], "driver": "610.43.02", "cuda": "13.3"},
        driver="610.43.02",
        driver_cuda="13.3",
        status=GpuStatus.NO_ACCESS,
    ),
    "nvidia-smi that fails after a complete answer": Answer(
        {"parts": ["nvidia-smi"], "FAKE_NV_SMI_EXIT": "14"}, status=GpuStatus.NO_ACCESS
    ),
    "nvidia-smi with one lost GPU": Answer(
        {
            "parts": ["nvidia-smi"],
            "devices": [RTX_4090, GTX_1080_TI],
            "FAKE_NV_SMI_LOST": "0",
            "FAKE_NV_SMI_EXIT": "15",
        },
        status=GpuStatus.NO_ACCESS,
    ),
    "a driver without the newer CUDA version call": Answer(
        {"parts": ["libnvidia-ml"], "fail": {"nvmlSystemGetCudaDriverVersion_v2": 13}}, status=GpuStatus.NO_ACCESS
    ),
    "NVML loses one GPU and keeps the other": Answer(
        {"devices": [RTX_4090, GTX_1080_TI], "fail": {"nvmlDeviceGetHandleByIndex_v2@0": 15}}
    ),
    "a forward-compatibility package in front": Answer(
        {"driver": "535.183.01", "cuda": "12.2", "FAKE_NV_CUDA_OF_LIBCUDA": "12.8"},
        driver="535.183.01",
        driver_cuda="12.8",
    ),
    "a version that is garbage is not believed": Answer({"cuda": "0.0"}, driver_cuda=None),
    "CUDA_VISIBLE_DEVICES empty": Answer({"CUDA_VISIBLE_DEVICES": ""}),
    "CUDA_VISIBLE_DEVICES=-1 and no NVML": Answer({"CUDA_VISIBLE_DEVICES": "-1", "parts": ["libcuda"]}, driver=None),
    "CUDA_VISIBLE_DEVICES chooses one of two": Answer(
        {"CUDA_VISIBLE_DEVICES": "1", "devices": [GTX_1080_TI, GTX_1080_TI], "parts": ["libcuda"]},
        driver=None,
        gpus=["2 x NVIDIA GeForce GTX 1080 Ti 6.1 11264"],
    ),
    "a driver without GPUs": Answer({"devices": []}, gpus=[], status=GpuStatus.NO_GPU),
    "no driver and no GPU": Answer(
        {"parts": []}, driver=None, driver_cuda=None, gpus=[], origin={"gpus": "pci"}, status=GpuStatus.NO_HARDWARE
    ),
    "libcuda alone crashes": Answer(
        {"crash": ["cuInit"]}, origin={"driver_cuda": "nvml"}, status=GpuStatus.DRIVER_BROKEN
    ),
    "the fabric manager is not running": Answer({"fail": {"cuInit": 802}}, status=GpuStatus.DRIVER_BROKEN),
    "a stub library is in front": Answer({"fail": {"cuInit": 34}}, status=GpuStatus.DRIVER_BROKEN),
    "an unknown error of CUDA": Answer({"fail": {"cuInit": 999}}, status=GpuStatus.DRIVER_BROKEN),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ANSWERS)
def test_the_machine_is_detected(name: str, fake_driver: FakeDriver, tree: Path) -> None:
    answer = ANSWERS[name]
    write_tree(tree, NO_PCI_GPU)
    host = detected(fake_driver.environ(**answer.machine), tree)  # type: ignore[arg-type]
    assert host.driver is None if answer.driver is None else str(host.driver) == answer.driver
    assert host.driver_cuda is None if answer.driver_cuda is None else str(host.driver_cuda) == answer.driver_cuda
    assert described(host.gpus) == answer.gpus
    assert {key: host.origin[key] for key in answer.origin} == answer.origin
    assert host.status == answer.status


@dataclass(frozen=True)
class Failure:
    """A failing driver on a machine with these files, and the status and text that identify it."""

    machine: dict[str, object]
    files: dict[str, str]
    status: GpuStatus
    words: tuple[str, ...]


BOUND_GPU = {**pci_gpu(driver="nvidia"), **loaded_module(), **device_nodes()}
MISMATCH = {"nvmlInitWithFlags": 18, "cuInit": 803, "nvidia-smi": 18}

FAILURES = {
    "libraries newer than the module": Failure(
        {"fail": MISMATCH}, BOUND_GPU, GpuStatus.DRIVER_BROKEN, ("NVML error 18", "CUDA error 803", "without a reboot")
    ),
    "libraries without a loaded module": Failure(
        {"fail": {"nvmlInitWithFlags": 9, "cuInit": 100, "nvidia-smi": 9}},
        pci_gpu(),
        GpuStatus.DRIVER_BROKEN,
        ("NVML error 9", "no driver"),
    ),
    "nouveau holds the GPU": Failure(
        {"fail": {"nvmlInitWithFlags": 9, "cuInit": 100, "nvidia-smi": 9}},
        pci_gpu(driver="nouveau"),
        GpuStatus.NO_DRIVER,
        ("bound to nouveau",),
    ),
    "driver packages on a node without a GPU": Failure(
        {"fail": {"nvmlInitWithFlags": 9, "cuInit": 100, "nvidia-smi": 9}},
        NO_PCI_GPU,
        GpuStatus.NO_HARDWARE,
        ("NVML error 9",),
    ),
    "a toolkit's stub on a machine without a GPU": Failure(
        {"fail": {"cuInit": 34}, "parts": ["libcuda"]}, NO_PCI_GPU, GpuStatus.NO_HARDWARE, ("stub",)
    ),
    "permission refused": Failure(
        {"fail": {"nvmlInitWithFlags": 4, "cuInit": 304, "nvidia-smi": 4}},
        BOUND_GPU,
        GpuStatus.NO_ACCESS,
        ("NVML error 4",),
    ),
    "device nodes missing in a container": Failure(
        {"fail": {"nvmlInitWithFlags": 999, "cuInit": 999, "nvidia-smi": 255}},
        {**pci_gpu(driver="nvidia"), **loaded_module()},
        GpuStatus.NO_ACCESS,
        ("/dev/nvidiactl and /dev/nvidia0 missing",),
    ),
    "a container without the driver's libraries": Failure(
        {"parts": [], "NVIDIA_VISIBLE_DEVICES": "void"},
        {**pci_gpu(driver="nvidia"), **loaded_module(), **device_nodes()},
        GpuStatus.NO_ACCESS,
        ("libnvidia-ml.so.1", "NVIDIA_VISIBLE_DEVICES=void"),
    ),
    "a container that asked for utility only": Failure(
        {"parts": ["libnvidia-ml"], "NVIDIA_DRIVER_CAPABILITIES": "utility"},
        BOUND_GPU,
        GpuStatus.NO_ACCESS,
        ("NVIDIA_DRIVER_CAPABILITIES=utility excludes libcuda",),
    ),
    "unknown errors everywhere": Failure(
        {"fail": {"nvmlInitWithFlags": 999, "cuInit": 999, "nvidia-smi": 255}},
        BOUND_GPU,
        GpuStatus.DRIVER_BROKEN,
        ("NVML error 999", "CUDA error 999"),
    ),
    "forward compatibility on a GeForce": Failure(
        {"fail": {"cuInit": 804}}, BOUND_GPU, GpuStatus.DRIVER_BROKEN, ("forward-compatibility",)
    ),
    "the module is older than the libraries say": Failure(
        {"driver": "580.65.06"},
        {**BOUND_GPU, **loaded_module("570.195.03")},
        GpuStatus.READY,
        ("sources disagree on the driver version: 580.65.06 (nvml), 570.195.03 (/sys/module/nvidia/version)",),
    ),
    "one of two GPUs is given to a virtual machine": Failure(
        {},
        {**BOUND_GPU, **pci_gpu(driver="vfio-pci", address="0000:02:00.0")},
        GpuStatus.READY,
        ("bound to vfio-pci", "the PCI bus has 2"),
    ),
    "libcuda of another version than the driver": Failure(
        {"cuda": "12.2", "FAKE_NV_CUDA_OF_LIBCUDA": "12.8"}, BOUND_GPU, GpuStatus.READY, ("libcuda offers CUDA 12.8",)
    ),
    "GPUs hidden by a variable": Failure(
        {"CUDA_VISIBLE_DEVICES": "-1"}, BOUND_GPU, GpuStatus.READY, ("CUDA_VISIBLE_DEVICES='-1' hides every GPU",)
    ),
    "MIG": Failure({"devices": [H100_SPLIT]}, BOUND_GPU, GpuStatus.READY, ("MIG is on",)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", FAILURES)
def test_every_failure_is_distinguished(name: str, fake_driver: FakeDriver, tree: Path) -> None:
    failure = FAILURES[name]
    write_tree(tree, failure.files)
    host = detected(fake_driver.environ(**failure.machine), tree)  # type: ignore[arg-type]
    assert host.status == failure.status
    for words in failure.words:
        assert words in notes_of(host)


@pytest.mark.thorough
def test_a_working_machine_has_no_notes(fake_driver: FakeDriver, tree: Path) -> None:
    assert detected(fake_driver.environ(), write_tree(tree, BOUND_GPU)).notes == ()


@pytest.mark.thorough
def test_a_hanging_driver_is_given_up_and_named(fake_driver: FakeDriver, tree: Path) -> None:
    start = time.monotonic()
    host = detected(fake_driver.environ(hang=["cuInit", "nvidia-smi"], ENVSOLVE_PROBE_TIMEOUT=SHORT), tree)
    assert time.monotonic() - start < 10
    assert host.status == GpuStatus.DRIVER_BROKEN
    assert str(host.driver) == "580.65.06"
    assert "libcuda did not answer in time" in notes_of(host)
    assert "nvidia-smi did not answer in time" in notes_of(host)


@pytest.mark.thorough
def test_a_hanging_nvml_is_given_up_and_the_others_are_queried(fake_driver: FakeDriver, tree: Path) -> None:
    start = time.monotonic()
    host = detected(fake_driver.environ(hang=["nvmlInitWithFlags"], ENVSOLVE_PROBE_TIMEOUT=SHORT), tree)
    assert time.monotonic() - start < 10
    assert host.gpus
    assert host.origin["gpus"] == "libcuda"
    assert "NVML did not answer in time" in notes_of(host)


def test_a_crashing_nvml_affects_nothing_else(fake_driver: FakeDriver, tree: Path) -> None:
    host = detected(fake_driver.environ(crash=["nvmlInitWithFlags"]), tree)
    assert host.gpus
    assert "NVML died with signal 6" in notes_of(host)


@pytest.mark.thorough
def test_a_hanging_query_still_gives_the_header(fake_driver: FakeDriver, tree: Path) -> None:
    host = detected(
        fake_driver.environ(parts=["nvidia-smi"], hang=["nvidia-smi-query"], ENVSOLVE_PROBE_TIMEOUT=SHORT), tree
    )
    assert str(host.driver) == "580.65.06"
    assert host.gpus == ()
    assert host.status == GpuStatus.DRIVER_BROKEN


def test_old_nvidia_smi_takes_the_capability_from_the_bus(fake_driver: FakeDriver, tree: Path) -> None:
    environ = fake_driver.environ(
        parts=["nvidia-smi"], devices=[Device("Tesla K80", "3.7", 11441)] * 2, FAKE_NV_SMI_WITHOUT="compute_cap"
    )
    bus = {**pci_gpu("102d", "nvidia"), **pci_gpu("102d", "nvidia", "0000:02:00.0")}
    host = detected(environ, write_tree(tree, bus))
    assert described(host.gpus) == ["2 x Tesla K80 3.7 11441"]
    assert host.origin["gpus"] == "nvidia-smi, pci"


@pytest.mark.thorough
@pytest.mark.parametrize("thorough", [True, False])
def test_wsl_takes_the_windows_driver_from_its_own_directory(
    fake_driver: FakeDriver, tree: Path, thorough: bool
) -> None:
    write_tree(tree, {"dev/dxg": "", "usr/lib/x86_64-linux-gnu/libcuda.so.1": "left by a Linux driver package"})
    libraries = tree / "usr/lib/wsl/lib"
    libraries.mkdir(parents=True)
    for part in ("libcuda", "libnvidia-ml"):
        shutil.copy(fake_driver.library(part), libraries)
    host = detected(fake_driver.environ(driver="566.36", cuda="12.7", parts=[]), tree, thorough=thorough)
    assert (str(host.driver), str(host.driver_cuda), host.status) == ("566.36", "12.7", GpuStatus.READY)
    assert "566.36 is the version of the Windows driver" in notes_of(host)
    assert "/usr/lib/x86_64-linux-gnu/libcuda.so.1 hides the Windows driver" in notes_of(host)


def test_wsl_finds_nvidia_smi_beside_the_libraries(fake_driver: FakeDriver, tree: Path) -> None:
    write_tree(tree, {"dev/dxg": "", "usr/lib/wsl/lib/": ""})
    (tree / "usr/lib/wsl/lib/nvidia-smi").symlink_to(fake_driver.root / "nvidia-smi/nvidia-smi")
    host = detected(fake_driver.environ(driver="566.36", parts=[]), tree)
    assert host.origin["driver"] == "nvidia-smi"


def test_a_jetson_has_cuda_and_no_driver_version(fake_driver: FakeDriver, tree: Path) -> None:
    write_tree(
        tree,
        {
            "etc/nv_tegra_release": "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64\n",
            "proc/device-tree/model": "NVIDIA Jetson Orin Nano Developer Kit\0",
            "proc/driver/nvidia/version": JETSON_MODULE,
            **device_nodes(),
        },
    )
    environ = fake_driver.environ(cuda="12.6", devices=[Device("Orin", "8.7", 7620)], driver="540.4.0")
    host = detected(environ, tree, platform="linux-aarch64")
    assert host.driver is None
    assert "driver" not in host.origin
    assert (str(host.driver_cuda), described(host.gpus)) == ("12.6", ["1 x Orin 8.7 7620"])
    assert "NVIDIA Jetson Orin Nano Developer Kit with L4T 36.4.3" in notes_of(host)


def test_a_library_in_the_current_directory_is_never_loaded(
    fake_driver: FakeDriver, tree: Path, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    for part in ("libcuda", "libnvidia-ml"):
        shutil.copy(fake_driver.library(part), trap)
    environ = {**fake_driver.environ(parts=[]), "LD_LIBRARY_PATH": ":/nowhere"}
    host = detected(environ, write_tree(tree, NO_PCI_GPU), directory=trap)
    assert (host.driver, host.driver_cuda, host.gpus) == (None, None, ())
    assert "lies in the current directory" in notes_of(host)


def test_a_program_in_the_current_directory_is_never_run(fake_driver: FakeDriver, tree: Path) -> None:
    environ = {**fake_driver.environ(parts=[]), "PATH": ":."}
    host = detected(environ, tree, directory=fake_driver.root / "nvidia-smi")
    assert host.driver is None


def test_a_broken_library_file_is_reported(fake_driver: FakeDriver, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library", encoding="utf-8")
    environ = fake_driver.environ(parts=["libcuda"])
    environ["LD_LIBRARY_PATH"] = f"{tmp_path}:{environ['LD_LIBRARY_PATH']}"
    host = detected(environ, tree)
    assert "nvml:" in notes_of(host)
    assert host.origin["gpus"] == "libcuda"


QUICK_SOURCES = {
    "NVML told everything": ({}, BOUND_GPU, "nvml"),
    "a file contradicts NVML": ({}, {**BOUND_GPU, **loaded_module("570.195.03")}, "libcuda"),
    "NVML does not list a GPU": ({"fail": {"nvmlDeviceGetCount_v2": 999}}, BOUND_GPU, "libcuda"),
    "there is no NVML": ({"parts": ["libcuda"]}, BOUND_GPU, "libcuda"),
    "only nvidia-smi is there": ({"parts": ["nvidia-smi"]}, {}, "nvidia-smi"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", QUICK_SOURCES)
def test_quick_detection_only_asks_slow_sources_if_needed(name: str, fake_driver: FakeDriver, tree: Path) -> None:
    machine, files, source = QUICK_SOURCES[name]
    host = detected(fake_driver.environ(**machine), write_tree(tree, files), thorough=False)  # type: ignore[arg-type]
    assert host.origin["driver_cuda"] == source
    assert described(host.gpus) == ["1 x NVIDIA GeForce GTX 1080 Ti 6.1 11264"]


def test_quick_detection_notices_that_libcuda_is_missing(fake_driver: FakeDriver, tree: Path) -> None:
    host = detected(fake_driver.environ(parts=["libnvidia-ml"]), write_tree(tree, BOUND_GPU), thorough=False)
    assert host.status == GpuStatus.NO_ACCESS


def test_detect_finds_the_fake_driver_on_this_machine(fake_driver: FakeDriver) -> None:
    script = (
        "import json, os\n"
        "from envsolve.host.detection import detect\n"
        "from envsolve.host.host_file import host_as_json\n"
        "print(json.dumps(host_as_json(detect(environ=os.environ))))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**fake_driver.environ(), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(result.stdout)
    assert (found["driver"], found["driver_cuda"], found["status"]) == ("580.65.06", "13.0", "ready")
    assert found["origin"]["platform"] == "uname"
    assert {"nvml", "libcuda", "nvidia-smi"} <= {reading["source"] for reading in found["readings"]}
