"""The driver of the machine against the CUDA that each framework was built with.

* Machine code of a toolkit runs from the driver that minor-version compatibility names (NVIDIA, CUDA compatibility); a
  forward-compatibility package in front of the driver's library raises what the driver supports.
* PTX is compiled by the driver, which has to support the compiling toolkit in full (NVIDIA/nvbandwidth#61).
"""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.environment.builds import Build
from envsolve.diagnose.environment.remedies import mended
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding, Severity
from envsolve.model.release import Toolkit
from envsolve.model.versions import CudaVersion, DriverVersion

_PTX_ONLY = "ptx-only"


def driver_for_builds(scene: Scene) -> Iterator[Finding]:
    """Frameworks that were built with a CUDA for which the driver is too old."""
    for build in scene.builds:
        toolkit = _toolkit(build, scene)
        if toolkit is not None and _is_below(toolkit, scene):
            yield _too_old(build, toolkit, scene)


def driver_for_ptx(scene: Scene) -> Iterator[Finding]:
    """Frameworks that hold only PTX for a GPU, of a CUDA that the driver does not support in full."""
    compiled = {finding.about for finding in scene.static.findings if finding.id == _PTX_ONLY}
    for build in scene.builds:
        cuda = build.cuda_version
        if build.name in compiled and cuda is not None and _is_newer_than_driver(cuda, scene):
            yield _ptx_too_new(build, cuda, scene)


def _toolkit(build: Build, scene: Scene) -> Toolkit | None:
    """The toolkit of the build; where only the major is known the oldest of it, which asks for least."""
    toolkits = scene.matrix.cuda.toolkits
    exact = build.cuda_version
    if exact is not None:
        return next((it for it in toolkits if it.version == exact), None) or _oldest(toolkits, exact.major)
    return _oldest(toolkits, build.cuda_major)


def _oldest(toolkits: tuple[Toolkit, ...], major: int | None) -> Toolkit | None:
    of_major = [it for it in toolkits if it.version.major == major]
    return min(of_major, key=lambda it: it.version, default=None)


def _is_below(toolkit: Toolkit, scene: Scene) -> bool:
    """Whether the driver is below the floor, and no compatibility package is in front that supports the major."""
    host = scene.host
    supports = host.driver_cuda is not None and host.driver_cuda.major >= toolkit.version.major
    if supports or (host.driver is None and host.driver_cuda is None):
        return False
    return host.driver is None or not host.driver.meets(toolkit.floor(windows=scene.windows_driver))


def _is_newer_than_driver(cuda: CudaVersion, scene: Scene) -> bool:
    """Whether the driver does not support ``cuda`` in full: by what libcuda says, else by its version."""
    if scene.host.driver_cuda is not None:
        return scene.host.driver_cuda < cuda
    full = scene.matrix.cuda.driver_for(cuda, windows=scene.windows_driver)
    return scene.host.driver is not None and full is not None and not scene.host.driver.meets(full)


def _driver(scene: Scene) -> str:
    told = f"driver {scene.host.driver}" if scene.host.driver is not None else "the driver"
    cuda = f" (CUDA {scene.host.driver_cuda})" if scene.host.driver_cuda is not None else ""
    return told + cuda


def _advice(floor: DriverVersion | None) -> str:
    newer = f"update the driver to {floor} or newer" if floor is not None else "update the driver"
    return f"install a build that this driver runs, which envsolve picks, or {newer}, where that still supports the GPU"


def _too_old(build: Build, toolkit: Toolkit, scene: Scene) -> Finding:
    floor = toolkit.floor(windows=scene.windows_driver)
    cuda = build.cuda_version or f"{toolkit.version.major}"
    return Finding(
        "driver-too-old",
        f"the NVIDIA driver is too old for {build.title}",
        Severity.ERROR,
        f"{build.label} is built for CUDA {cuda}, which runs from driver {floor} on; this machine has {_driver(scene)}",
        _advice(floor),
        mended(scene),
        (f"{build.label}: CUDA {cuda}", _driver(scene)),
        about=build.name,
        sources=tuple(it.reference for it in toolkit.evidence)[:1],
    )


def _ptx_too_new(build: Build, cuda: CudaVersion, scene: Scene) -> Finding:
    full = scene.matrix.cuda.driver_for(cuda, windows=scene.windows_driver)
    return Finding(
        "ptx-too-new",
        f"the driver cannot compile the PTX of {build.title}",
        Severity.ERROR,
        f"{build.label} holds no machine code for a GPU of this machine, only PTX of CUDA {cuda}; {_driver(scene)} "
        "does not support that CUDA in full, and without it compiles no PTX of it: kernels end with "
        "cudaErrorUnsupportedPtxVersion",
        _advice(full),
        mended(scene),
        (f"{build.label}: CUDA {cuda}", _driver(scene)),
        about=build.name,
        sources=("NVIDIA/nvbandwidth#61",),
    )
