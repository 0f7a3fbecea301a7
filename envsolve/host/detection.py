"""Detection of this machine: which sources are read, in which order, and when to stop.

Cheap sources (NVML and files) come first. A thorough detection then also queries libcuda and nvidia-smi; a quick one
does so only if the cheap sources leave something open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from envsolve.host.choose import choose
from envsolve.host.device_nodes import DeviceNodesProbe
from envsolve.host.evidence import Evidence, Surroundings, surroundings_of
from envsolve.host.kernel_module import ProcGpusProbe, ProcVersionProbe, SysModuleProbe
from envsolve.host.loader import find_nvidia_smi
from envsolve.host.machine import Machine, this_glibc, this_platform
from envsolve.host.nvml import NvmlProbe
from envsolve.host.pci import PciProbe, PciTable
from envsolve.host.probe import Probe, Source, read_probe
from envsolve.host.trouble import Trouble
from envsolve.model.host import Host, Platform, Reading, SourceFailure


def detect(
    *,
    thorough: bool = True,
    environ: Mapping[str, str],
    root: Path = Path("/"),
    pci_table: PciTable | None = None,
    platform: Platform | None = None,
) -> Host:
    """Detect this machine. A missing GPU is no error: ``status`` and ``notes`` say what is wrong.

    ``thorough`` reads every source and reports contradictions; otherwise slow sources are read only if needed. If
    ``root`` is not "/", it is a recorded file tree: only its files are read, and no library or program is used.
    ``pci_table`` names the GPUs of a machine whose driver does not answer. ``platform`` is the platform of a recorded
    tree.
    """
    machine = Machine(platform or this_platform(), environ, root, live=root == Path("/"))
    return examine(machine, thorough=thorough, pci_table=pci_table, platform_origin="given" if platform else "uname")


def examine(
    machine: Machine, *, thorough: bool = True, pci_table: PciTable | None = None, platform_origin: str = "given"
) -> Host:
    """Read the sources that apply to ``machine``, and choose between them."""
    origin = {"platform": platform_origin}
    glibc = this_glibc() if machine.root == Path("/") and machine.platform == this_platform() else None
    if glibc is not None:
        origin["glibc"] = "confstr"
    return choose(gather(machine, thorough=thorough, pci_table=pci_table), machine.platform, glibc, origin)


def gather(machine: Machine, *, thorough: bool, pci_table: PciTable | None = None) -> Evidence:
    """The readings of all sources that apply; of slow sources only if they are requested or needed."""
    machine.check()
    surroundings = surroundings_of(machine)
    readings = _read_all(cheap_probes(machine, pci_table))
    if machine.live and (thorough or _leaves_open(machine, readings, surroundings)):
        from envsolve.host.libcuda import LibcudaProbe
        from envsolve.host.nvidia_smi import NvidiaSmiProbe

        readings += _read_all((LibcudaProbe(machine), NvidiaSmiProbe(machine)))
    return Evidence(readings, surroundings)


def cheap_probes(machine: Machine, pci_table: PciTable | None) -> tuple[Probe, ...]:
    """Sources that start no program."""
    libraries: tuple[Probe, ...] = (NvmlProbe(machine),) if machine.live and machine.platform.has_cuda else ()
    if machine.platform.is_windows:
        from envsolve.host.windows import RegistryProbe

        return (*libraries, RegistryProbe(pci_table)) if machine.live else ()
    return (
        *libraries,
        SysModuleProbe(machine.root),
        ProcVersionProbe(machine.root),
        ProcGpusProbe(machine.root),
        DeviceNodesProbe(machine.root),
        PciProbe(machine.root, pci_table),
    )


def _read_all(probes: Iterable[Probe]) -> tuple[Reading, ...]:
    return tuple(reading for reading in map(read_probe, probes) if reading is not None)


def _leaves_open(machine: Machine, readings: tuple[Reading, ...], surroundings: Surroundings) -> bool:
    """Whether slow sources could still change the result of a quick detection."""
    if not machine.platform.has_cuda:
        return False
    if _settled(readings):
        return _load_problem_of_libcuda(machine) is not None
    return _has_trace(machine, readings, surroundings)


def _settled(readings: tuple[Reading, ...]) -> bool:
    """Whether NVML reported everything and no file contradicts its driver version."""
    nvml = next((reading for reading in readings if reading.source == Source.NVML), None)
    if nvml is None or nvml.problem is not None or nvml.driver is None or nvml.driver_cuda is None or not nvml.gpus:
        return False
    known = all(gpu.compute_capability is not None for gpu in nvml.gpus)
    return known and all(reading.driver in (None, nvml.driver) for reading in readings)


def _has_trace(machine: Machine, readings: tuple[Reading, ...], surroundings: Surroundings) -> bool:
    """Whether there is any sign of an NVIDIA GPU or driver; on most machines without one there is none."""
    if surroundings.wsl or surroundings.l4t is not None or surroundings.module_loaded:
        return True
    if any(reading.gpus or reading.driver is not None or _tells_trouble(reading) for reading in readings):
        return True
    return find_nvidia_smi(machine) is not None or not _is_missing(_load_problem_of_libcuda(machine))


def _load_problem_of_libcuda(machine: Machine) -> SourceFailure | None:
    from envsolve.host.libcuda import load_problem_of_libcuda

    return load_problem_of_libcuda(machine)


def _tells_trouble(reading: Reading) -> bool:
    return reading.problem is not None and not _is_missing(reading.problem)


def _is_missing(problem: SourceFailure | None) -> bool:
    return problem is not None and problem.code == Trouble.LIBRARY_MISSING
