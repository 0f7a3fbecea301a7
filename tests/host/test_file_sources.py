"""Sources that only read files, on file trees written by the tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envsolve.host.detection import detect
from envsolve.host.device_nodes import DeviceNodesProbe
from envsolve.host.jetson import l4t_release
from envsolve.host.kernel_module import ProcGpusProbe, ProcVersionProbe, SysModuleProbe
from envsolve.host.pci import PciDevice, PciProbe, gpus_on_bus
from envsolve.host.trouble import Trouble
from envsolve.host.wsl import is_wsl, shadowing_library
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, GpuStatus, Host, Platform
from tests.host.tree import (
    CLOSED_MODULE,
    JETSON_MODULE,
    NO_PCI_GPU,
    OPEN_MODULE,
    PCI_TABLE,
    device_nodes,
    loaded_module,
    pci_gpu,
    write_tree,
)

GTX_1080_TI = Gpu("GeForce GTX 1080 Ti", ComputeCapability(6, 1))


def recorded(root: Path, **environ: str) -> Host:
    """Detection on a file tree."""
    return detect(environ=environ, root=root, pci_table=PCI_TABLE.get, platform=Platform.LINUX_64)


@pytest.mark.parametrize(("text", "version"), [("580.65.06\n", "580.65.06"), ("560.94\n", "560.94")])
def test_sysfs_gives_the_modules_version(text: str, version: str, tree: Path) -> None:
    reading = SysModuleProbe(write_tree(tree, {"sys/module/nvidia/version": text})).read()
    assert reading is not None
    assert str(reading.driver) == version


@pytest.mark.parametrize("text", ["", "unknown\n", "35.3.1\n"])
def test_an_invalid_version_is_a_problem_and_not_a_crash(text: str, tree: Path) -> None:
    reading = SysModuleProbe(write_tree(tree, {"sys/module/nvidia/version": text})).read()
    assert reading is not None
    assert reading.driver is None
    assert reading.problem is not None
    assert reading.problem.code == Trouble.UNREADABLE_ANSWER


@pytest.mark.parametrize(
    ("text", "version"), [(CLOSED_MODULE, "550.54.14"), (OPEN_MODULE, "565.57.01"), (JETSON_MODULE, None)]
)
def test_procfs_is_parsed_for_the_closed_and_the_open_module(text: str, version: str | None, tree: Path) -> None:
    reading = ProcVersionProbe(write_tree(tree, {"proc/driver/nvidia/version": text})).read()
    assert reading is not None
    assert reading.driver is None if version is None else str(reading.driver) == version


def test_procfs_names_the_gpus(tree: Path) -> None:
    information = "Model: \t\t NVIDIA GeForce RTX 4090\nIRQ:   \t\t 128\nGPU UUID: \t GPU-0\n"
    write_tree(tree, {f"proc/driver/nvidia/gpus/0000:0{bus}:00.0/information": information for bus in (1, 2)})
    reading = ProcGpusProbe(tree).read()
    assert reading is not None
    assert reading.gpus == (Gpu("NVIDIA GeForce RTX 4090", None, count=2),)


def test_without_a_module_there_is_no_reading(tree: Path) -> None:
    probes = (SysModuleProbe(tree), ProcVersionProbe(tree), ProcGpusProbe(tree), DeviceNodesProbe(tree), PciProbe(tree))
    assert [probe.read() for probe in probes] == [None] * 5


def test_the_bus_lists_display_controllers_of_nvidia_only(tree: Path) -> None:
    write_tree(
        tree,
        {
            **pci_gpu("1b06", "nvidia", "0000:01:00.0"),
            **pci_gpu("10ef", "snd_hda_intel", "0000:01:00.1", **{"class": "0x040300"}),
            **pci_gpu("2684", "nvidia", "0000:02:00.0", **{"class": "0x030200"}),
            **pci_gpu("744c", "amdgpu", "0000:03:00.0", vendor="0x1002"),
        },
    )
    assert gpus_on_bus(tree) == (
        PciDevice("0000:01:00.0", "1b06", "nvidia"),
        PciDevice("0000:02:00.0", "2684", "nvidia"),
    )
    reading = PciProbe(tree, PCI_TABLE.get).read()
    assert reading is not None
    assert reading.gpus == (GTX_1080_TI, Gpu("GeForce RTX 4090", ComputeCapability(8, 9)))
    assert reading.problem is None


def test_a_bus_without_a_gpu_is_an_answer(tree: Path) -> None:
    reading = PciProbe(write_tree(tree, NO_PCI_GPU)).read()
    assert reading is not None
    assert reading.gpus == ()


def test_an_unknown_device_keeps_its_number(tree: Path) -> None:
    host = recorded(write_tree(tree, pci_gpu("ffff")))
    assert host.gpus == (Gpu("NVIDIA device 10de:ffff", None),)
    assert "the compute capability of NVIDIA device 10de:ffff is not known" in host.notes


STATUSES: dict[str, tuple[dict[str, str], GpuStatus, str]] = {
    "nothing at all": ({}, GpuStatus.NO_HARDWARE, ""),
    "no GPU on the bus": (NO_PCI_GPU, GpuStatus.NO_HARDWARE, ""),
    "a GPU and no driver": (pci_gpu(), GpuStatus.NO_DRIVER, "0000:01:00.0 (no driver)"),
    "a GPU held by nouveau": (pci_gpu(driver="nouveau"), GpuStatus.NO_DRIVER, "bound to nouveau"),
    "a GPU given away": (pci_gpu(driver="vfio-pci"), GpuStatus.NO_DRIVER, "bound to vfio-pci, for a virtual machine"),
    "a module without device nodes": (
        {**pci_gpu(driver="nvidia"), **loaded_module()},
        GpuStatus.NO_ACCESS,
        "/dev/nvidiactl and /dev/nvidia0 missing",
    ),
    "a module with the control node only": (
        {**loaded_module(), "dev/nvidiactl": ""},
        GpuStatus.NO_ACCESS,
        "/dev/nvidia0 missing",
    ),
}


@pytest.mark.parametrize("name", STATUSES)
def test_the_status_follows_from_files_alone(name: str, tree: Path) -> None:
    files, status, words = STATUSES[name]
    host = recorded(write_tree(tree, files))
    assert host.status == status
    assert words in "\n".join(host.notes)


def test_a_gpu_without_a_driver_is_named_by_the_table(tree: Path) -> None:
    host = recorded(write_tree(tree, pci_gpu()))
    assert host.gpus == (GTX_1080_TI,)
    assert host.origin["gpus"] == "pci"


def test_a_container_without_gpus_still_sees_the_driver_of_its_kernel(tree: Path) -> None:
    host = recorded(write_tree(tree, loaded_module("550.163.01")), NVIDIA_VISIBLE_DEVICES="void")
    assert str(host.driver) == "550.163.01"
    assert host.origin["driver"] == "/sys/module/nvidia/version"
    assert host.status == GpuStatus.NO_ACCESS
    assert "NVIDIA_VISIBLE_DEVICES=void: the container was started without GPUs" in host.notes


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")
def test_closed_device_nodes_are_named(tree: Path) -> None:
    write_tree(tree, {**loaded_module(), **device_nodes()})
    (tree / "dev/nvidia0").chmod(0)
    assert "/dev/nvidia0 may not be opened by this user" in "\n".join(recorded(tree).notes)


L4T_FILES = {
    "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64": "36.4.3",
    "# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t210ref, EABI: aarch64": "32.7.1",
    "something else": "unknown",
}


@pytest.mark.parametrize("text", L4T_FILES)
def test_the_l4t_release_is_read(text: str, tree: Path) -> None:
    assert l4t_release(write_tree(tree, {"etc/nv_tegra_release": text})) == L4T_FILES[text]


def test_a_jetsons_module_version_is_no_driver_version(tree: Path) -> None:
    write_tree(
        tree, {"etc/nv_tegra_release": "# R36 (release), REVISION: 4.3", **loaded_module("540.4.0"), **device_nodes()}
    )
    assert recorded(tree).driver is None


WSL_FILES = {
    "the paravirtual device": ({"dev/dxg": ""}, True),
    "the kernel's name": ({"proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2\n"}, True),
    "the libraries of Windows": ({"usr/lib/wsl/lib/libcuda.so.1": ""}, True),
    "an ordinary kernel": ({"proc/sys/kernel/osrelease": "6.8.0-45-generic\n"}, False),
    "WSL 1, which has no GPU": ({"proc/sys/kernel/osrelease": "4.4.0-19041-Microsoft\n"}, False),
}


@pytest.mark.parametrize("name", WSL_FILES)
def test_wsl_is_recognised_by(name: str, tree: Path) -> None:
    files, expected = WSL_FILES[name]
    assert is_wsl(write_tree(tree, files)) is expected


def test_a_second_libcuda_on_wsl_is_noticed_unless_it_leads_to_the_first(tree: Path) -> None:
    write_tree(tree, {"usr/lib/wsl/lib/libcuda.so.1": "windows", "usr/lib/wsl/drivers/nv/libcuda.so.1.1": "windows"})
    assert shadowing_library(tree) is None
    write_tree(tree, {"usr/lib64/libcuda.so.1@": str(tree / "usr/lib/wsl/drivers/nv/libcuda.so.1.1")})
    assert shadowing_library(tree) is None
    write_tree(tree, {"usr/lib/libcuda.so.1": "linux"})
    assert shadowing_library(tree) == "/usr/lib/libcuda.so.1"


def test_an_unreadable_file_is_the_same_as_none(tree: Path) -> None:
    write_tree(tree, {"sys/module/nvidia/version/": "", "sys/bus/pci/devices/0000:01:00.0/vendor/": ""})
    assert recorded(tree).driver is None
