"""The driver of the machine against the CUDA that each framework was built with.

* Machine code of a toolkit runs from the driver that minor-version compatibility names (NVIDIA, CUDA compatibility); a
  forward-compatibility package in front of the driver's library raises what the driver supports.
* PTX is compiled by the driver, which has to support the compiling toolkit in full (NVIDIA/nvbandwidth#61).
"""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.environment.builds import Build
from envsolve.diagnose.environment.scene import Scene
from envsolve.findings.catalogue import make_finding
from envsolve.model.finding import Finding
from envsolve.model.release import Toolkit
from envsolve.model.versions import CudaVersion, DriverVersion

_PTX_ONLY = "ptx-only"


def driver_for_builds(scene: Scene) -> Iterator[Finding]:
    """Frameworks that were built with a CUDA for which the driver is too old."""
    for build in scene.builds:
        toolkit = _toolkit(build, scene)
        if toolkit is not None and _is_below(toolkit, scene):
            cuda = build.cuda_version or toolkit.version.major
            yield make_finding(
                "driver-too-old-for-build",
                scene.facts | _facts(build, cuda, toolkit.floor(windows=scene.windows_driver), scene),
                (f"{build.label}: CUDA {cuda}", _driver(scene)),
                about=build.name,
                sources=tuple(it.reference for it in toolkit.evidence)[:1],
            )


def driver_for_ptx(scene: Scene) -> Iterator[Finding]:
    """Frameworks that hold only PTX for a GPU, of a CUDA that the driver does not support in full."""
    compiled = {finding.about for finding in scene.static.findings if finding.id == _PTX_ONLY}
    for build in scene.builds:
        cuda = build.cuda_version
        if build.name in compiled and cuda is not None and _is_newer_than_driver(cuda, scene):
            yield _ptx_too_new(build, cuda, scene)


def _toolkit(build: Build, scene: Scene) -> Toolkit | None:
    """The toolkit of the build; where only the major is known the oldest of it, which needs least."""
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
    driver = f"driver {scene.host.driver}" if scene.host.driver is not None else "the driver"
    cuda = f" (CUDA {scene.host.driver_cuda})" if scene.host.driver_cuda is not None else ""
    return driver + cuda


def _facts(build: Build, cuda: object, floor: DriverVersion | None, scene: Scene) -> dict[str, object]:
    return {
        "framework": build.title,
        "version": build.version,
        "built_cuda": cuda,
        "floor": floor,
        "driver": scene.host.driver,
        "driver_cuda": scene.host.driver_cuda,
    }


def _ptx_too_new(build: Build, cuda: CudaVersion, scene: Scene) -> Finding:
    return make_finding(
        "ptx-too-new-for-driver",
        scene.facts | _facts(build, cuda, scene.matrix.cuda.driver_for(cuda, windows=scene.windows_driver), scene),
        (f"{build.label}: CUDA {cuda}", _driver(scene)),
        about=build.name,
        sources=("NVIDIA/nvbandwidth#61",),
    )
