"""The hosts of a request: host files, nodes of a list, named GPUs, or this machine."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from envsolve.app.request.overrides import CONDA_CUDA, UV_DRIVER, overridden, require_known, with_driver, with_origin
from envsolve.errors import UsageError
from envsolve.matrix.load import Matrix
from envsolve.matrix.tables import CudaTable
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, GpuStatus, Host, Platform
from envsolve.model.request import Request
from envsolve.model.requester import Requester


def detected_host(matrix: Matrix, environ: Mapping[str, str], *, thorough: bool) -> Host:
    """Detect this machine and apply overrides in environment variables of other tools."""
    from envsolve.host.detection import detect

    found = detect(thorough=thorough, environ=environ, pci_table=matrix.gpu_of_pci_id)
    return with_known_cuda(overridden(found, matrix.cuda, environ), matrix.cuda)


def only_host(request: Request, matrix: Matrix, environ: Mapping[str, str]) -> Host:
    """The host of a request without host files: the named GPUs, or this machine."""
    if request.gpus and request.gpus != ("auto",):
        return _named_host(request, matrix, environ)
    return _for_platform(detected_host(matrix, environ, thorough=False), request)


def each_host(request: Request) -> Request:
    """``request`` with its lists of nodes replaced by the names of the nodes."""
    if not request.hosts:
        return request
    from envsolve.fleet.inventory import nodes_named

    known = {it.name for it in request.named_hosts}
    names = ([it] if it in known else [name for name, _ in nodes_named(it)] for it in request.hosts)
    return request._replace(hosts=tuple(name for each in names for name in each))


def read_hosts(request: Request, matrix: Matrix) -> tuple[Host, ...]:
    """The hosts that ``request`` names. Raises UsageError if one cannot be read."""
    from envsolve.fleet.inventory import nodes_named

    known = {it.name: it.host for it in request.named_hosts}
    hosts = tuple(known[name] if name in known else nodes_named(name)[0][1].host for name in request.hosts)
    for name, host in zip(request.hosts, hosts, strict=True):
        for capability in host.capabilities:
            require_known(capability, matrix.cuda, name)
    return hosts


def _named_host(request: Request, matrix: Matrix, environ: Mapping[str, str]) -> Host:
    platform, named = request.platform or this_platform(), request.requester.name_of("gpus")
    if request.wants_cpu:
        here = Host(platform=platform, status=GpuStatus.NO_GPU, origin={"gpus": named})
        return here if platform is not this_platform() else _with_own_glibc(here)
    gpus: dict[Gpu, int] = {}
    for text in request.gpus:
        gpu = _named_gpu(text, matrix, request.requester)
        gpus[gpu] = gpus.get(gpu, 0) + 1
    counted = tuple(gpu._replace(count=count) for gpu, count in gpus.items())
    host = Host(platform=platform, gpus=counted, origin={"gpus": named})
    if request.driver is not None:
        return with_driver(host, request.driver, request.requester.name_of("driver"))
    return overridden(host, matrix.cuda, {name: environ[name] for name in (UV_DRIVER, CONDA_CUDA) if environ.get(name)})


def _with_own_glibc(host: Host) -> Host:
    from envsolve.host.machine import this_glibc

    return host._replace(glibc=this_glibc())


def _named_gpu(text: str, matrix: Matrix, requester: Requester) -> Gpu:
    try:
        capability = ComputeCapability.parse(text)
    except ValueError:
        model = matrix.gpus.find(text, partial(requester.setting, "gpus"))
        return Gpu(model.name, model.capabilities[0])
    require_known(capability, matrix.cuda, requester.name_of("gpus"))
    return Gpu(None, capability)


def with_named_gpus(host: Host, matrix: Matrix) -> Host:
    """Add capabilities that follow from product names; unknown or ambiguous names stay without."""
    if all(gpu.compute_capability is not None for gpu in host.gpus):
        return host
    return host._replace(gpus=tuple(_capable(gpu, matrix) for gpu in host.gpus))


def _capable(gpu: Gpu, matrix: Matrix) -> Gpu:
    if gpu.compute_capability is not None or gpu.name is None:
        return gpu
    try:
        return gpu._replace(compute_capability=matrix.gpus.find(gpu.name).capabilities[0])
    except UsageError:
        return gpu


def this_platform() -> Platform:
    """The platform that envsolve runs on. Raises UsageError if the matrix does not cover it."""
    from envsolve.host.machine import this_platform as found

    return found()


def with_known_cuda(host: Host, cuda: CudaTable) -> Host:
    """Add the CUDA version that a driver supports, which nvidia-smi prints, if only the driver is known."""
    branch = cuda.branch_of(host.driver) if host.driver is not None and host.driver_cuda is None else None
    return host if branch is None else with_origin(host._replace(driver_cuda=branch.cuda), "driver_cuda", "the matrix")


def _for_platform(host: Host, request: Request) -> Host:
    """The detected machine as a target with another system: its GPUs count, but not its driver's version."""
    target = request.platform
    if target is None or target.is_windows is host.platform.is_windows or host.driver is None:
        return host
    if host.origin.get("driver") in (UV_DRIVER, CONDA_CUDA):
        return host
    naming = f"give the target's driver with {request.requester.name_of('driver')}"
    note = f"the driver of this {host.platform} machine is ignored for {target}: {naming}"
    origin = {key: value for key, value in host.origin.items() if key not in ("driver", "driver_cuda")}
    return host._replace(driver=None, driver_cuda=None, origin=origin, notes=(*host.notes, note))
