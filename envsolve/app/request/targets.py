"""Turns a request into the machines that its stack must run on: named GPUs, host files, or this machine.

The driver of the target comes from, in order: 1. ``--driver`` (or ENVSOLVE_DRIVER) 2. UV_CUDA_DRIVER_VERSION 3.
CONDA_OVERRIDE_CUDA 4. detection. Its GPUs: 1. ``--gpu`` or ``--host`` 2. CONDA_OVERRIDE_CUDA_ARCH 3. detection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from envsolve.app.request.command import way_out
from envsolve.app.request.hosts import each_host, only_host, read_hosts, this_platform, with_known_cuda, with_named_gpus
from envsolve.app.request.overrides import CONDA_CUDA, UV_DRIVER, with_driver, with_origin
from envsolve.errors import Hint, UnsolvableError, UsageError
from envsolve.matrix.load import Matrix
from envsolve.matrix.tables import CudaTable
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import ASSUMED_GLIBC, Gpu, GpuStatus, Host, Platform
from envsolve.model.note import Note
from envsolve.model.request import Request
from envsolve.model.requester import Requester
from envsolve.model.solution import Machine, Problem
from envsolve.model.versions import LibcVersion

GB10 = ComputeCapability(12, 1)
_MOST_NAMED = 4
OF_LOCK = "the lock"
"""The origin of a driver or a GPU that an existing lock records."""


class Target(NamedTuple):
    """The problem of a request on one platform, the hosts that it was made from, and notes.

    ``request`` is the whole request, so that commands for it keep all platforms; of its host files only those of this
    platform. ``fell_to_cpu`` means that no GPU was found and the CPU was not requested.
    """

    request: Request
    problem: Problem
    hosts: tuple[Host, ...]
    notes: tuple[Note, ...]
    fell_to_cpu: bool

    def with_bounds(self, **bounds: Any) -> Target:
        """The target with other ``frameworks``, ``python`` or ``cuda`` in both the request and the problem."""
        return self._replace(request=self.request._replace(**bounds), problem=self.problem._replace(**bounds))


_ASSUMED = "assumed"
"""The origin of a C library that was not specified or detected."""
CPU_ENVIRONMENT = "this is a CPU environment"


def targets_of(request: Request, matrix: Matrix, environ: Mapping[str, str]) -> tuple[Target, ...]:
    """Find the machines of ``request``, with one target for each platform that it or its host files name.

    Raises UsageError for contradictory options, unknown GPUs and host files that cannot be read; UnsolvableError if a
    GPU is present but cannot be identified.
    """
    _check_contradictions(request)
    request = each_host(request)
    if request.hosts:
        parts = list(_parts_by_platform(request, matrix))
    else:
        named: list[tuple[Platform, ...]] = [(platform,) for platform in request.platforms] or [()]
        each = (request._replace(platforms=platforms) for platforms in named)
        parts = [(part, (only_host(part, matrix, environ),)) for part in each]
    targets = (_target(part, hosts, matrix, environ, CPU_ENVIRONMENT) for part, hosts in parts)
    if request.hosts:
        return tuple(targets)
    return tuple(it._replace(request=it.request._replace(platforms=request.platforms)) for it in targets)


def platforms_of(request: Request, matrix: Matrix) -> tuple[Platform, ...]:
    """The platforms of :func:`targets_of`, each once, without detecting a machine. Raises the same errors."""
    if request.hosts and not request.platforms:
        return tuple(dict.fromkeys(host.platform for host in read_hosts(each_host(request), matrix)))
    return request.platforms or (this_platform(),)


def target_of(request: Request, matrix: Matrix, environ: Mapping[str, str], *, answer: str = CPU_ENVIRONMENT) -> Target:
    """Find the machines of a request for one platform. Raises the same errors as :func:`targets_of`.

    ``answer`` is the name of the result in the note that no GPU was found.
    """
    _check_contradictions(request)
    request = each_host(request)
    hosts = read_hosts(request, matrix) if request.hosts else (only_host(request, matrix, environ),)
    return _target(request, hosts, matrix, environ, answer)


def _parts_by_platform(request: Request, matrix: Matrix) -> Iterator[tuple[Request, tuple[Host, ...]]]:
    """The request for the hosts of each platform, in the order in which they were named."""
    hosts = read_hosts(request, matrix)
    platforms = request.platforms or tuple(dict.fromkeys(host.platform for host in hosts))
    if len(platforms) == 1:
        yield request, hosts
        return
    for stranger in (host for host in hosts if host.platform not in platforms):
        raise _contradicts_host_file(platforms, stranger, request.requester)
    for platform in platforms:
        here = [(name, host) for name, host in zip(request.hosts, hosts, strict=True) if host.platform is platform]
        if not here:
            message = (
                f"{request.requester.setting('platforms', platform)} has no machine: no host file has that platform"
            )
            raise UsageError("contradictory-options", message, hints=(Hint("give a host file for it, or omit it"),))
        part = request._replace(platforms=(platform,), hosts=tuple(name for name, _ in here))
        yield part, tuple(host for _, host in here)


def _target(
    request: Request, hosts: tuple[Host, ...], matrix: Matrix, environ: Mapping[str, str], answer: str
) -> Target:
    hosts = tuple(with_driver(host, request.driver, request.requester.name_of("driver")) for host in hosts)
    hosts = tuple(with_known_cuda(with_named_gpus(host, matrix), matrix.cuda) for host in hosts)
    platform = _platform(request, hosts)
    hosts = tuple(_with_glibc(host, platform, request) for host in hosts)
    _require_on_platform(hosts, platform, matrix.cuda, request)
    looked = not request.wants_cpu and bool(request.hosts or request.gpus in ((), ("auto",)))
    cpu = request.wants_cpu or (looked and _falls_to_cpu(hosts, request))
    for host in hosts if looked and not cpu else ():
        _require_identified(host, request, matrix.cuda)
    notes = [
        *(Note("host", text) for host in hosts for text in host.notes),
        *_platform_notes(hosts, platform, matrix.cuda, request.requester),
    ]
    if looked and cpu:
        notes.append(_cpu_note(hosts[0], platform, environ, answer, request.requester))
    problem = Problem(
        frameworks=request.frameworks,
        platform=platform,
        machines=_all_machines(request, hosts, matrix.cuda, platform, cpu=cpu),
        cpu=cpu,
        python=request.python,
        cuda=request.cuda,
    )
    return Target(request, problem, hosts, tuple(notes), fell_to_cpu=looked and cpu)


def _all_machines(
    request: Request, hosts: Sequence[Host], cuda: CudaTable, platform: Platform, *, cpu: bool
) -> tuple[Machine, ...]:
    """The machines of all hosts. Those that no rule distinguishes count as one."""
    names = request.hosts or ("",) * len(hosts)
    machines = tuple(
        machine._replace(hosts=(name,) if name else ())
        for name, host in zip(names, hosts, strict=True)
        for machine in _machines(host, request, cuda, platform, cpu=cpu)
    )
    if len(machines) == 1:
        return machines
    from envsolve.resolve.fleet import profiles

    return profiles(machines, cuda)


def glibc_of(problem: Problem) -> LibcVersion | None:
    """The oldest C library of the machines; None if they do not run Linux."""
    return min((machine.glibc for machine in problem.machines if machine.glibc is not None), default=None)


def _check_contradictions(request: Request) -> None:
    option = request.requester.setting

    def refuse(message: str) -> UsageError:
        return UsageError("contradictory-options", message)

    if "none" in request.gpus and len(request.gpus) > 1:
        raise refuse(f"{option('gpus', 'none')} requests the CPU and cannot be combined with GPUs")
    if "auto" in request.gpus and len(request.gpus) > 1:
        raise refuse(f"{option('gpus', 'auto')} uses this machine's GPUs and cannot be combined with others")
    if request.hosts and request.gpus:
        both = f"{request.requester.name_of('hosts')} and {request.requester.name_of('gpus')}"
        raise refuse(f"{both} both name GPUs: give one of them")
    for key, value in (("driver", request.driver), ("cuda", request.cuda)):
        if request.wants_cpu and value is not None:
            about = request.requester.name_of(key)
            raise refuse(f"{option('gpus', 'none')} requests the CPU and {about} a GPU: give one of them")
    if request.glibc is not None and request.platforms and not any(it.is_linux for it in request.platforms):
        raise refuse(
            f"{request.requester.name_of('glibc')} applies only to Linux, and the target is {request.platforms[0]}"
        )


def _platform(request: Request, hosts: tuple[Host, ...]) -> Platform:
    platforms = {host.platform for host in hosts}
    if request.platform is not None:
        other = next((host for host in hosts if request.hosts and host.platform is not request.platform), None)
        if other is not None:
            raise _contradicts_host_file((request.platform,), other, request.requester)
        return request.platform
    if len(platforms) > 1:
        names = ", ".join(sorted(platforms))
        raise UsageError(
            "several-platforms", f"the hosts have different platforms ({names}): solve for each one separately"
        )
    return platforms.pop()


def _contradicts_host_file(platforms: Sequence[Platform], other: Host, requester: Requester) -> UsageError:
    named = requester.setting("platforms", " and ".join(platforms))
    message = f"{named} contradicts the host file, which is for {other.platform}"
    return UsageError("contradictory-options", message)


def _falls_to_cpu(hosts: tuple[Host, ...], request: Request) -> bool:
    """Whether there is no GPU: none was found, and no driver was given for another machine.

    Raises UsageError if some hosts have GPUs and others do not.
    """
    without = [host for host in hosts if not host.gpus and host.status in (GpuStatus.NO_HARDWARE, GpuStatus.NO_GPU)]
    stating = (request.requester.name_of("driver"), UV_DRIVER, CONDA_CUDA, OF_LOCK)
    stated = any(host.origin.get("driver") in stating for host in hosts)
    if stated or request.cuda is not None or not without:
        return False
    if len(without) < len(hosts):
        raise _hosts_differ(hosts, without, request)
    return True


def _hosts_differ(hosts: Sequence[Host], without: Sequence[Host], request: Request) -> UsageError:
    """The error if only some host files have GPUs. Names a few, and shows both commands if they are short."""
    names: dict[bool, list[str]] = {True: [], False: []}
    for name, host in zip(request.hosts, hosts, strict=True):
        names[host in without].append(name)
    bare = names[True]
    more = f" and {len(bare) - _MOST_NAMED} more" if len(bare) > _MOST_NAMED else ""
    message = (
        f"{', '.join(bare[:_MOST_NAMED])}{more} of the {len(hosts)} hosts have no NVIDIA GPU: "
        "no build fits hosts with and without one"
    )
    text = "solve for the hosts with GPUs and for the others separately"
    if len(hosts) > _MOST_NAMED:
        return UsageError("hosts-differ", message, hints=(Hint(text),))
    parts = (request._replace(hosts=tuple(names[kind])) for kind in (False, True))
    return UsageError("hosts-differ", message, hints=tuple(way_out(text, part, request) for part in parts))


def _platform_notes(
    hosts: tuple[Host, ...], platform: Platform, cuda: CudaTable, requester: Requester
) -> Iterator[Note]:
    """Notes on facts that options do not show: the platform of a GB10, and where a Jetson gets its CUDA."""
    capabilities = sorted({capability for host in hosts for capability in host.capabilities})
    if platform is not Platform.LINUX_AARCH64 and GB10 in capabilities:
        text = f"compute capability {GB10} is the DGX Spark's GB10, a linux-aarch64 machine"
        naming = requester.setting("platforms", Platform.LINUX_AARCH64)
        text = f"{text}, but this environment is for {platform}: use {naming} to make one for it"
        yield Note("platform-of-gb10", text)
    for capability in capabilities:
        life = cuda.life_of(capability)
        if life is not None and life.is_jetson:
            text = f"compute capability {capability} is that of Jetson modules, which get their driver from JetPack"
            text = f"{text} with other version numbers: check which CUDA your JetPack supports"
            yield Note("driver-of-jetson", text)


def _cpu_note(host: Host, platform: Platform, environ: Mapping[str, str], answer: str, requester: Requester) -> Note:
    if not platform.has_cuda:
        return Note("no-gpu", f"CUDA does not exist for {platform}: {answer}")
    if host.origin.get("gpus") == CONDA_CUDA and environ.get(CONDA_CUDA) == "":
        return Note("no-gpu", f"{CONDA_CUDA} is empty, which means no CUDA: {answer}")
    text = f"no NVIDIA GPU was found: {answer}; use {requester.name_of('gpus')} to solve for a GPU"
    return Note("no-gpu", text)


def _require_identified(host: Host, request: Request, cuda: CudaTable) -> None:
    """Raise UnsolvableError if a GPU is present but unknown, instead of choosing a CPU build or guessing."""
    known = {life.capability for life in cuda.architectures}
    strange = [gpu for gpu in host.gpus if gpu.compute_capability not in known]
    by_option = request.driver is not None or request.cuda is not None
    stated = by_option or host.origin.get("driver") in (UV_DRIVER, CONDA_CUDA, OF_LOCK)
    if not strange and (host.gpus or stated):
        return
    reasons = tuple(reading.problem.text for reading in host.readings if reading.problem is not None)
    named = request._replace(gpus=("RTX 3090",), hosts=())
    for_cpu = named._replace(gpus=("none",), cuda=None, driver=None)
    raise UnsolvableError(
        "gpu-not-identified",
        _unidentified(strange[0]) if strange else _BLOCKED[host.status],
        host.notes or reasons,
        (
            Hint("show what each source reports", "envsolve detect"),
            way_out("name the GPU by product or compute capability, for example", named, request),
            way_out("or request a CPU environment", for_cpu, request),
        ),
    )


def _unidentified(gpu: Gpu) -> str:
    name = gpu.name or "an NVIDIA GPU"
    if gpu.compute_capability is None:
        return f"{name} is present, but its compute capability is unknown"
    return f"{name} has compute capability {gpu.compute_capability}, which this version of envsolve does not support"


_BLOCKED = {
    GpuStatus.NO_ACCESS: "an NVIDIA driver is loaded, but this process cannot reach its GPUs",
    GpuStatus.DRIVER_BROKEN: "the NVIDIA driver does not work, so its GPUs cannot be identified",
    GpuStatus.NO_DRIVER: "an NVIDIA GPU is present without a driver, and its model is unknown",
    GpuStatus.READY: "no GPU was identified",
    GpuStatus.NO_HARDWARE: "no GPU was identified",
    GpuStatus.NO_GPU: "the driver reports no GPU",
}


def _machines(host: Host, request: Request, cuda: CudaTable, platform: Platform, *, cpu: bool) -> Iterator[Machine]:
    """The machine of a host; several if GPUs were named without a driver and no driver supports all of them."""
    machine = _machine(host, cuda, platform, cpu=cpu)
    named = host.origin.get("gpus") == request.requester.name_of("gpus") and machine.driver is None
    if not named or not _apart(machine, cuda):
        yield machine
        return
    for entry in machine.gpus:
        yield machine._replace(gpus=(entry,))


def _apart(machine: Machine, cuda: CudaTable) -> bool:
    lives = [life for gpu, _ in machine.gpus if (life := cuda.life_of(gpu)) is not None]
    begins = [life.first_branch for life in lives if life.first_branch is not None]
    ends = [cuda.after(life.last_branch) for life in lives if life.last_branch is not None]
    return bool(begins and ends) and max(begins) >= min(ends)


def _with_glibc(host: Host, platform: Platform, request: Request) -> Host:
    """``host`` with the C library of the target: requested, detected, or assumed."""
    if not platform.is_linux:
        return host._replace(glibc=None)
    if request.glibc is not None:
        return with_origin(host._replace(glibc=request.glibc), "glibc", request.requester.name_of("glibc"))
    if host.glibc is not None and host.platform is platform:
        return host
    return with_origin(host._replace(glibc=ASSUMED_GLIBC), "glibc", _ASSUMED)


def _machine(host: Host, cuda: CudaTable, platform: Platform, *, cpu: bool) -> Machine:
    glibc, assumed = host.glibc, host.origin.get("glibc") == _ASSUMED
    if cpu:
        return Machine(driver=None, gpus=(), glibc=glibc, assumed_glibc=assumed)
    windows = platform.is_windows or host.wsl
    driver, origin = host.driver, host.origin.get("driver", "")
    if driver is None and host.driver_cuda is not None:
        driver, origin = cuda.driver_for(host.driver_cuda, windows=windows), host.origin.get("driver_cuda", "")
    gpus = {gpu.compute_capability: gpu.name or "" for gpu in host.gpus if gpu.compute_capability is not None}
    return Machine(
        driver,
        tuple(sorted(gpus.items())),
        glibc,
        driver_origin=origin,
        windows_driver=windows,
        assumed_glibc=assumed,
    )


def _require_on_platform(hosts: tuple[Host, ...], platform: Platform, cuda: CudaTable, request: Request) -> None:
    """Raise UsageError for a Jetson's GPU on a platform that no Jetson has."""
    there = request._replace(platforms=(Platform.LINUX_AARCH64,))
    for host in hosts:
        for capability in host.capabilities:
            life = cuda.life_of(capability)
            if life is not None and life.is_jetson and platform is not Platform.LINUX_AARCH64:
                raise UsageError(
                    "gpu-not-on-platform",
                    f"compute capability {capability} is that of Jetson modules, which do not exist for {platform}",
                    hints=(way_out("use their platform", there, request),),
                )
