"""Facts that several checks need, each looked up once and only if a check needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from envsolve.binary.lookup import Rule
from envsolve.boundary.reading import is_open_to_us
from envsolve.diagnose.machine.files import Limits, MachineFiles
from envsolve.diagnose.machine.libraries import (
    LoaderView,
    Reached,
    damage_of,
    facts_without,
    loader_view,
    reached,
)
from envsolve.diagnose.machine.operating_system import (
    Container,
    Distribution,
    Limit,
    container_of,
    distribution_of,
    family_of,
)
from envsolve.diagnose.machine.toolkit import Toolkit, toolkits_of
from envsolve.findings.catalogue import make_finding, shipped
from envsolve.host.device_nodes import module_is_loaded
from envsolve.host.evidence import LIVE_SOURCES
from envsolve.host.jetson import l4t_release
from envsolve.host.kernel_module import ProcVersionProbe, SysModuleProbe
from envsolve.host.loader import CUDA_LIBRARY, LIBRARY_PATH, NVML_LIBRARY, UNUSUAL_DIRECTORIES, library_entries
from envsolve.host.machine import Machine
from envsolve.host.pci import PciDevice, gpus_on_bus
from envsolve.host.probe import Source
from envsolve.host.wsl import WSL_LIBRARIES, is_wsl
from envsolve.matrix import Matrix
from envsolve.model.finding import Finding
from envsolve.model.host import Gpu, GpuStatus, Host, Platform, Reading
from envsolve.model.release import Architecture
from envsolve.model.versions import DriverVersion
from envsolve.validation.places import Place, facts_of, places_of

_PROC_VERSION = "/proc/driver/nvidia/version"
_LIMITS = Limits()


class Survey:
    """One examination of one machine: the facts about it, each looked up once. A recorded machine is examined like any.

    ``machine`` is its platform, its variables and the root of its files. ``host`` is the result of the detection,
    without overrides of the user (``--driver``, CONDA_OVERRIDE_CUDA). ``may_open`` says whether this user may read and
    write a device file.
    """

    def __init__(
        self,
        machine: Machine,
        host: Host,
        matrix: Matrix,
        *,
        may_open: Callable[[Path], bool] = is_open_to_us,
        limits: Limits = _LIMITS,
    ) -> None:
        self.platform, self.environ, self.root, _ = machine
        self.host = host
        self.matrix = matrix
        self.may_open = may_open
        self.files = MachineFiles(self.root, windows=self.platform.is_windows, limits=limits)

    # the machine

    @property
    def is_linux(self) -> bool:
        """Whether the files are those of a Linux, including WSL."""
        return self.platform in (Platform.LINUX_64, Platform.LINUX_AARCH64)

    @cached_property
    def is_wsl(self) -> bool:
        """Whether this is WSL 2."""
        return self.is_linux and (self.host.wsl or is_wsl(self.root))

    @cached_property
    def l4t(self) -> str | None:
        """The release of Jetson Linux; None elsewhere."""
        return l4t_release(self.root) if self.is_linux else None

    @cached_property
    def container(self) -> Container | None:
        """The container this process runs in."""
        return container_of(self.files, self.environ) if self.is_linux else None

    @cached_property
    def distribution(self) -> Distribution | None:
        """The distribution of Linux."""
        return distribution_of(self.files) if self.is_linux else None

    @cached_property
    def places(self) -> frozenset[Place]:
        """Where processes run, for the advice."""
        places = places_of(self.root, windows=self.platform.is_windows)
        return places | {Place.CONTAINER} if self.container is not None else places

    @property
    def has_own_driver(self) -> bool:
        """Whether the kernel of this system drives its GPUs: Linux, but no Jetson, WSL or container."""
        return self.is_linux and not self.is_wsl and self.l4t is None and self.container is None

    @cached_property
    def facts(self) -> dict[str, object]:
        """The facts of every check: where processes run, and the driver branches that the GPUs allow."""
        limit = None if self.limit.last is None else shipped().step("driver-bounds", self.limit.facts.get)[0]
        family = family_of(self.distribution)
        return {**facts_of(self.places), **self.limit.facts, "driver_limit": limit, "distribution": family}

    def finding(self, identifier: str, evidence: Iterable[str] = (), **facts: Any) -> Finding:
        """The finding of a check, from the facts of every check and its own; arguments as for ``make_finding``."""
        return make_finding(identifier, evidence, **{**self.facts, **facts})

    def facts_without(self, directories: Iterable[str]) -> dict[str, object]:
        """Facts on keeping ``directories`` of LD_LIBRARY_PATH away from programs, for the step ``own-libraries``."""
        return facts_without(directories, self.environ[LIBRARY_PATH], self.driver_directory, lambda it: it.rstrip("/"))

    # its GPUs

    @cached_property
    def bus(self) -> tuple[PciDevice, ...]:
        """The NVIDIA GPUs on the PCI bus."""
        return (gpus_on_bus(self.root) if self.is_linux else None) or ()

    def reading(self, source: Source) -> Reading | None:
        """The reading of one source of the detection."""
        return next((it for it in self.host.readings if it.source == source), None)

    @cached_property
    def gpus(self) -> tuple[Gpu, ...]:
        """Every kind of GPU that the detection or the bus lists, including those that no driver lists."""
        on_bus = self.reading(Source.PCI)
        loose = (on_bus.gpus or ()) if on_bus is not None else ()
        known = {gpu.compute_capability for gpu in self.host.gpus}
        return (*self.host.gpus, *(gpu for gpu in loose if gpu.compute_capability not in known))

    @property
    def live_readings(self) -> tuple[Reading, ...]:
        """The readings of NVML, libcuda and nvidia-smi, which need a working driver."""
        return tuple(reading for reading in map(self.reading, LIVE_SOURCES) if reading is not None)

    @property
    def working_gpus(self) -> tuple[Gpu, ...]:
        """GPUs that a working driver lists."""
        return tuple(gpu for reading in self.live_readings for gpu in reading.gpus or ())

    @property
    def libcuda_works(self) -> bool:
        """Whether libcuda was queried and listed a GPU: then no file can prove that it does not work."""
        reading = self.reading(Source.LIBCUDA)
        return reading is not None and bool(reading.gpus)

    @property
    def has_gpu(self) -> bool:
        """Whether there is any sign of an NVIDIA GPU."""
        return bool(self.bus) or self.host.status is not GpuStatus.NO_HARDWARE

    @property
    def gpus_seen(self) -> tuple[str, ...]:
        """The GPUs as listed on the bus, or else by the detection."""
        on_bus = tuple(f"PCI {it.address}: 10de:{it.device}, {it.bound_to or 'no driver'}" for it in self.bus)
        return on_bus or tuple(gpu.label for gpu in self.gpus if self.host.status is not GpuStatus.NO_HARDWARE)

    def life_of(self, gpu: Gpu) -> Architecture | None:
        """The architecture of a GPU."""
        return None if gpu.compute_capability is None else self.matrix.cuda.life_of(gpu.compute_capability)

    @cached_property
    def limit(self) -> Limit:
        """The first and the last driver branch that support all of its GPUs."""
        lives = [(it, gpu) for gpu in self.gpus for it in (self.life_of(gpu),) if it is not None and not it.is_jetson]
        lasts = [(it.last_branch, gpu.label) for it, gpu in lives if it.last_branch is not None]
        firsts = [(it.first_branch, gpu.label) for it, gpu in lives if it.first_branch is not None]
        last, last_for = min(lasts, default=(None, None))
        first, first_for = max(firsts, default=(None, None))
        return Limit(last, last_for, first, first_for)

    # its driver

    @cached_property
    def module_is_loaded(self) -> bool:
        """Whether the kernel module of the driver is loaded; a container shares it with its host."""
        return self.is_linux and module_is_loaded(self.root)

    @cached_property
    def module_version(self) -> DriverVersion | None:
        """The version of the loaded kernel module."""
        readings = (probe(self.root).read() for probe in (SysModuleProbe, ProcVersionProbe))
        return next((it.driver for it in readings if it is not None and it.driver is not None), None)

    @cached_property
    def module_is_open(self) -> bool | None:
        """Whether the loaded kernel module is the open one; None if nothing says so."""
        text = self.files.text(_PROC_VERSION)
        return None if text is None else "Open Kernel Module" in text

    @cached_property
    def libcuda(self) -> Reached | None:
        """The CUDA driver library that programs load."""
        return reached(self.files, self.loader, CUDA_LIBRARY)

    @cached_property
    def misplaced_libraries(self) -> list[str]:
        """Where the CUDA driver library is, if the loader finds none."""
        paths = (f"/{directory}/{CUDA_LIBRARY}" for directory in (WSL_LIBRARIES, *UNUSUAL_DIRECTORIES))
        return [path for path in paths if self.libcuda is None and self.files.is_file(path)]

    @cached_property
    def nvml(self) -> Reached | None:
        """The NVML library that programs load."""
        return reached(self.files, self.loader, NVML_LIBRARY)

    @cached_property
    def driver_directory(self) -> str | None:
        """The only directory of LD_LIBRARY_PATH through which programs find the driver's CUDA library."""
        found = [(rule, path) for rule, path in self.loader.candidates(CUDA_LIBRARY) if self._is_usable(path)]
        by_others = any(rule is not Rule.LIBRARY_PATH for rule, _ in found)
        return None if by_others or not found else self.files.parent(found[0][1])

    @property
    def installed_driver(self) -> DriverVersion | None:
        """The version of the installed driver, loaded or not."""
        return self.host.driver or self.module_version or (self.libcuda.version if self.libcuda is not None else None)

    def _is_usable(self, library: str) -> bool:
        """Whether a program can use the library: it exists, is not damaged, and is not a stub of the toolkit."""
        real = self.files.real(library)
        if real is None or "/stubs/" in real or not self.files.is_file(real):
            return False
        return damage_of(self.files, real, self.loader.abi) is None

    # its libraries and toolkits

    @cached_property
    def library_path(self) -> tuple[str, ...]:
        """The entries of LD_LIBRARY_PATH as written, including empty ones; none if it is not set."""
        value = self.environ.get(LIBRARY_PATH) if self.is_linux else None
        return tuple(library_entries(value))

    @cached_property
    def program_path(self) -> tuple[str, ...]:
        """The absolute entries of PATH."""
        entries = self.environ.get("PATH", "").split(";" if self.platform.is_windows else ":")
        return tuple(dict.fromkeys(entry for entry in entries if self.files.is_absolute(entry)))

    @cached_property
    def library_directories(self) -> tuple[str, ...]:
        """The directories of LD_LIBRARY_PATH, or of PATH on Windows: absolute, each once."""
        if self.platform.is_windows:
            return self.program_path
        entries = (entry.rstrip("/") or "/" for entry in self.library_path if self.files.is_absolute(entry))
        return tuple(dict.fromkeys(entries))

    @cached_property
    def loader(self) -> LoaderView:
        """What the loader uses."""
        return loader_view(self.files, self.platform, self.library_directories if self.is_linux else ())

    @cached_property
    def toolkits(self) -> tuple[Toolkit, ...]:
        """The CUDA toolkits of the machine."""
        return toolkits_of(self.files, self.platform, self.environ, self.program_path)

    @property
    def of_environments(self) -> tuple[str, ...]:
        """The prefixes of active environments: files in them are not the machine's."""
        return tuple(self.environ[name] for name in ("CONDA_PREFIX", "VIRTUAL_ENV") if self.environ.get(name))
