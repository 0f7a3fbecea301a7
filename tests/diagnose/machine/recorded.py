"""A recorded machine for each case: the files of a healthy Ubuntu with one GPU, and the changes of the case."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from envsolve.binary.loader_cache import FLAGS
from envsolve.boundary.reading import is_open_to_us
from envsolve.diagnose.machine import Limits, Survey, examine_machine
from envsolve.diagnose.report import Report
from envsolve.host.detection import detect
from envsolve.host.machine import Machine
from envsolve.host.probe import Source
from envsolve.matrix import Matrix, find_matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import Gpu, GpuStatus, Host, Platform, Reading, SourceFailure
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion
from tests.binary.layouts import I386, Lib, tiny_library

MATRIX = Matrix(find_matrix())
MULTIARCH = "usr/lib/x86_64-linux-gnu"
KERNEL = "6.8.0-45-generic"
DRIVER = "580.65.06"
UUID = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
TOOLKIT = "usr/local/cuda-12.4"
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

RTX_4090 = Gpu("NVIDIA GeForce RTX 4090", ComputeCapability(8, 9), memory_mib=24564)
Content = str | bytes | None
"""Text or bytes of a file; None takes it away."""


@cache
def library(name: str = "", *, other: bool = False) -> bytes:
    """A readable library, for this machine or for another."""
    return tiny_library(I386 if other else Lib(soname=name or None))


def gpu_on_bus(
    device: str = "2684", driver: str | None = "nvidia", address: str = "0000:01:00.0"
) -> dict[str, Content]:
    """One GPU in sysfs."""
    place = f"sys/bus/pci/devices/{address}"
    link: dict[str, Content] = {f"{place}/driver@": f"../../../../bus/pci/drivers/{driver}"} if driver else {}
    return {f"{place}/vendor": "0x10de\n", f"{place}/class": "0x030000\n", f"{place}/device": f"0x{device}\n", **link}


def module(version: str = DRIVER, *, is_open: bool = True) -> dict[str, Content]:
    """A loaded kernel module."""
    kind = "Open Kernel Module for x86_64" if is_open else "x86_64 Kernel Module"
    return {
        "sys/module/nvidia/version": f"{version}\n",
        "proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX {kind}  {version}  Release Build  (builder)\n",
        "proc/driver/nvidia/gpus/0000:01:00.0/information": f"Model: \t NVIDIA GeForce RTX 4090\nGPU UUID: \t {UUID}\n",
    }


def driver_libraries(version: str = DRIVER, directory: str = MULTIARCH) -> dict[str, Content]:
    """The driver's libraries for programs."""
    files: dict[str, Content] = {}
    for name in ("libcuda", "libnvidia-ml"):
        files |= {
            f"{directory}/{name}.so.{version}": library(name),
            f"{directory}/{name}.so.1@": f"{name}.so.{version}",
            f"{directory}/{name}.so@": f"{name}.so.1",
        }
    return files


def toolkit(version: str, directory: str | None = None) -> dict[str, Content]:
    """A toolkit of one version."""
    major, minor = version.split(".")[:2]
    place = directory or f"usr/local/cuda-{major}.{minor}"
    return {
        f"{place}/version.json": f'{{"cuda": {{"name": "CUDA SDK", "version": "{version}"}}}}',
        f"{place}/bin/nvcc": "#!/bin/sh\n",
        f"{place}/nvvm/libdevice/libdevice.10.bc": "BC",
        f"{place}/lib64/libcudart.so.{version}": library("libcudart"),
        f"{place}/lib64/libcudart.so.{major}@": f"libcudart.so.{version}",
    }


def removed(files: Mapping[str, Content]) -> dict[str, Content]:
    """The same files, to be removed."""
    return dict.fromkeys(files)


DEVICE_FILES: dict[str, Content] = {"dev/nvidiactl": "", "dev/nvidia-uvm": "", "dev/nvidia0": ""}
HEALTHY: dict[str, Content] = {
    "etc/os-release": 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n',
    "proc/sys/kernel/osrelease": f"{KERNEL}\n",
    f"lib/modules/{KERNEL}/modules.dep": "kernel/drivers/net/a.ko: \nupdates/dkms/nvidia.ko.zst: kernel/drivers/b.ko\n",
    f"{MULTIARCH}/libc.so.6": library("libc"),
    **gpu_on_bus(),
    **module(),
    **driver_libraries(),
    **DEVICE_FILES,
    **toolkit("12.4.1"),
    "usr/local/cuda@": "/usr/local/cuda-12.4",
}
CACHED = {
    "libcuda.so.1": f"/{MULTIARCH}/libcuda.so.1",
    "libnvidia-ml.so.1": f"/{MULTIARCH}/libnvidia-ml.so.1",
}
NO_DRIVER: dict[str, Content] = {
    **removed(module()),
    **removed(driver_libraries()),
    **removed(DEVICE_FILES),
    **gpu_on_bus(driver=None),
    "sys/bus/pci/devices/0000:01:00.0/driver@": None,
    "sys/module/nvidia": None,
}
"""What goes when there is no driver."""
WORKING = (
    Reading(Source.NVML, DriverVersion.parse(DRIVER), CudaVersion(13, 0), (RTX_4090,)),
    Reading(Source.LIBCUDA, None, CudaVersion(13, 0), (RTX_4090,)),
)


class Case(NamedTuple):
    """Differences from the healthy machine: files, entries of the loader's cache, variables and readings of sources."""

    files: Mapping[str, Content] = {}
    cached: tuple[tuple[str, str], ...] | None = None
    environ: Mapping[str, str] = {}
    readings: tuple[Reading, ...] = ()
    changes: Mapping[str, object] = {}
    """Of the host's fields."""
    is_closed: Callable[[Path], bool] = lambda _: False
    platform: Platform = Platform.LINUX_64
    glibc: LibcVersion | None = LibcVersion(2, 39)
    limits: Limits = Limits()


def failed_reading(source: Source, code: str, text: str, number: int | None = None) -> Reading:
    """A source that reports a problem."""
    return Reading(source, problem=SourceFailure(code, text, number))


def write(root: Path, files: Mapping[str, Content]) -> None:
    """Write or remove files; a name ending in "@" is a link, one ending in "/" a directory."""
    for name, content in files.items():
        path = root / name.rstrip("@/")
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir() and content is None:
            shutil.rmtree(path)
        if content is not None:
            _write(path, name, content)


def _write(path: Path, name: str, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith("@"):
        path.symlink_to(content if isinstance(content, str) else content.decode())
    elif name.endswith("/"):
        path.mkdir(exist_ok=True)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def loader_cache(entries: tuple[tuple[str, str], ...], flags: int = FLAGS["EM_X86_64", 64]) -> bytes:
    """``/etc/ld.so.cache`` in its current format."""
    strings, offsets = b"", []
    start = 48 + 24 * len(entries)
    for name, path in entries:
        offsets.append((start + len(strings), start + len(strings) + len(name) + 1))
        strings += name.encode() + b"\0" + path.encode() + b"\0"
    table = struct.pack("<20sIIB3xI12x", b"glibc-ld.so.cache1.1", len(entries), len(strings), 0, 0)
    return table + b"".join(struct.pack("<iIIIQ", flags, *place, 0, 0) for place in offsets) + strings


def survey_of(root: Path, case: Case) -> Survey:
    """The machine of ``case``, laid out below ``root`` and detected from its files."""
    write(root, {**HEALTHY, **case.files})
    cached = tuple(CACHED.items()) if case.cached is None else case.cached
    write(root, {"etc/ld.so.cache": loader_cache(cached)})
    host = detected(root, case)
    machine = Machine(case.platform, case.environ, root, live=False)

    def may_open(path: Path) -> bool:
        return is_open_to_us(path) and not case.is_closed(path)

    return Survey(machine, host, MATRIX, may_open=may_open, limits=case.limits)


def detected(root: Path, case: Case) -> Host:
    """The detection from the files, with the readings of the case."""
    host = detect(environ={}, root=root, pci_table=MATRIX.pci_ids.get, platform=case.platform)
    host = host._replace(glibc=case.glibc, readings=(*case.readings, *host.readings))
    gpus = next((it.gpus for it in case.readings if it.gpus), None)
    if gpus is not None:
        host = host._replace(gpus=gpus, status=GpuStatus.READY, driver_cuda=CudaVersion(13, 0))
    return host._replace(**case.changes)  # type: ignore[arg-type]  # fields of the host by name


def examined(root: Path, case: Case) -> Report:
    """The report on the machine of ``case``."""
    return examine_machine(survey_of(root, case))


def found(root: Path, case: Case) -> dict[str, Severity]:
    """The ids of the findings on the machine of ``case``, with their severities."""
    return {it.id: it.severity for it in examined(root, case).findings}


def the_finding(root: Path, case: Case, identifier: str) -> Finding:
    """The one finding with this id."""
    (finding,) = (it for it in examined(root, case).findings if it.id == identifier)
    return finding
