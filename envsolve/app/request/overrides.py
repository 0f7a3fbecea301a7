"""Environment variables of other tools that describe the machine, in their own units.

The driver: 1. UV_CUDA_DRIVER_VERSION (a driver version) 2. CONDA_OVERRIDE_CUDA (a CUDA version; empty: no CUDA at all).
The GPU: CONDA_OVERRIDE_CUDA_ARCH (a compute capability).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from envsolve.errors import Hint, UsageError
from envsolve.matrix.tables import CudaTable
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, GpuStatus, Host
from envsolve.model.versions import CudaVersion, DriverVersion

T = TypeVar("T")

UV_DRIVER = "UV_CUDA_DRIVER_VERSION"
CONDA_CUDA = "CONDA_OVERRIDE_CUDA"
CONDA_CAPABILITY = "CONDA_OVERRIDE_CUDA_ARCH"


def overridden(host: Host, cuda: CudaTable, environ: Mapping[str, str]) -> Host:
    """``host`` with UV_CUDA_DRIVER_VERSION, CONDA_OVERRIDE_CUDA and CONDA_OVERRIDE_CUDA_ARCH applied.

    CONDA_OVERRIDE_CUDA is a CUDA version and means the oldest driver that fully supports it. If empty, there is no
    CUDA, as in conda. Raises UsageError if a value cannot be read.
    """
    capability = _read(environ, CONDA_CAPABILITY, ComputeCapability.parse)
    if capability is not None:
        require_known(capability, cuda, CONDA_CAPABILITY)
        host = host._replace(gpus=(Gpu(None, capability),), status=GpuStatus.READY)
        host = with_origin(host, "gpus", CONDA_CAPABILITY)
    driver = _read(environ, UV_DRIVER, DriverVersion.parse)
    if driver is not None:
        return with_driver(host, driver, UV_DRIVER)
    if environ.get(CONDA_CUDA) == "":
        origins = {key: value for key, value in host.origin.items() if key != "driver"}
        emptied = host._replace(driver=None, driver_cuda=None, gpus=(), status=GpuStatus.NO_GPU, origin=origins)
        return with_origin(with_origin(emptied, "driver_cuda", CONDA_CUDA), "gpus", CONDA_CUDA)
    version = _read(environ, CONDA_CUDA, _major_or_minor)
    if version is None:
        return host
    driver = cuda.driver_for(version, windows=host.platform.is_windows or host.wsl)
    if driver is None:
        raise UsageError(
            "invalid-environment-variable", f"{CONDA_CUDA}: no known driver supports CUDA {version} or older"
        )
    return with_origin(with_driver(host, driver, CONDA_CUDA)._replace(driver_cuda=version), "driver_cuda", CONDA_CUDA)


def with_driver(host: Host, driver: DriverVersion | None, origin: str) -> Host:
    """``host`` with another driver, and without the CUDA version of the old one."""
    if driver is None:
        return host
    origins = {key: value for key, value in host.origin.items() if key != "driver_cuda"}
    changed = host._replace(driver=driver, driver_cuda=None, origin=origins)
    return with_origin(changed, "driver", origin)


def with_origin(host: Host, key: str, origin: str) -> Host:
    """``host`` with ``origin`` as the source of its field ``key``."""
    return host._replace(origin={**host.origin, key: origin})


def require_known(capability: ComputeCapability, cuda: CudaTable, origin: str) -> None:
    """Raise UsageError for a capability that no GPU of the matrix has. The error names its origin."""
    known = {life.capability for life in cuda.architectures}
    if capability not in known:
        raise UsageError(
            "unknown-gpu",
            f"no known NVIDIA GPU has compute capability {capability} (from {origin})",
            (f"known: {', '.join(map(str, sorted(known)))}",),
            (Hint(f"{origin} accepts one of these"),),
        )


def _major_or_minor(text: str) -> CudaVersion:
    """A CUDA version as conda accepts it: 12.4, or 12 for 12.0."""
    return CudaVersion.parse(f"{text}.0" if text.isdigit() else text)


def _read(environ: Mapping[str, str], name: str, parse: Callable[[str], T]) -> T | None:
    value = environ.get(name)
    if not value:
        return None
    try:
        return parse(value)
    except ValueError as error:
        raise UsageError("invalid-environment-variable", f"{name}: {error}") from error
