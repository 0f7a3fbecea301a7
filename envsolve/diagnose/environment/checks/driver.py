"""The driver of the machine against the CUDA that each framework was built with.

* Machine code of a toolkit needs the driver of minor-version compatibility (NVIDIA, CUDA compatibility); a
forward-compatibility package before the driver's library raises what the driver supports.
* PTX is compiled by the driver, which has to support the compiling toolkit in full (NVIDIA/nvbandwidth#61).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envsolve.diagnose.environment.builds import Build
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding
from envsolve.model.release import Toolkit
from envsolve.model.versions import CudaVersion, DriverVersion

_PTX_ONLY = "ptx-only"


def driver_for_builds(scene: Scene) -> Iterator[Finding]:
    """Frameworks built with a CUDA for which the driver is too old."""
    for build in scene.builds:
        toolkit = _toolkit(build, scene)
        if toolkit is not None and _is_below(toolkit, scene):
            cuda = build.cuda_version or toolkit.version.major
            floor = toolkit.floor(windows=scene.windows_driver)
            sources = tuple(it.reference for it in toolkit.evidence)[:1]
            yield _too_old("driver-too-old-for-build", build, cuda, floor, sources, scene)


def driver_for_ptx(scene: Scene) -> Iterator[Finding]:
    """Frameworks that only have PTX for a GPU, of a CUDA that the driver does not support in full."""
    compiled = {finding.about for finding in scene.static.findings if finding.id == _PTX_ONLY}
    for build in scene.builds:
        cuda = build.cuda_version
        if build.name in compiled and cuda is not None and _is_newer_than_driver(cuda, scene):
            floor = scene.matrix.cuda.driver_for(cuda, windows=scene.windows_driver)
            yield _too_old("ptx-too-new-for-driver", build, cuda, floor, ("NVIDIA/nvbandwidth#61",), scene)


def _toolkit(build: Build, scene: Scene) -> Toolkit | None:
    """The toolkit of the build; if only the major is known, its oldest one, which needs the least."""
    toolkits = scene.matrix.cuda.toolkits
    exact = build.cuda_version
    if exact is not None:
        return next((it for it in toolkits if it.version == exact), None) or _oldest(toolkits, exact.major)
    return _oldest(toolkits, build.cuda_major)


def _oldest(toolkits: tuple[Toolkit, ...], major: int | None) -> Toolkit | None:
    of_major = [it for it in toolkits if it.version.major == major]
    return min(of_major, key=lambda it: it.version, default=None)


def _is_below(toolkit: Toolkit, scene: Scene) -> bool:
    """Whether the driver is below the floor, and no compatibility package that supports the major comes first."""
    host = scene.host
    supports = host.driver_cuda is not None and host.driver_cuda.major >= toolkit.version.major
    if supports or (host.driver is None and host.driver_cuda is None):
        return False
    return host.driver is None or not host.driver.meets(toolkit.floor(windows=scene.windows_driver))


def _is_newer_than_driver(cuda: CudaVersion, scene: Scene) -> bool:
    """Whether the driver does not support ``cuda`` in full, as libcuda reports, or else by its version."""
    if scene.host.driver_cuda is not None:
        return scene.host.driver_cuda < cuda
    full = scene.matrix.cuda.driver_for(cuda, windows=scene.windows_driver)
    return scene.host.driver is not None and full is not None and not scene.host.driver.meets(full)


def _too_old(
    identifier: str, build: Build, cuda: object, floor: DriverVersion | None, sources: Iterable[str], scene: Scene
) -> Finding:
    driver, supports = scene.host.driver, scene.host.driver_cuda
    named = f"driver {driver}" if driver is not None else "the driver"
    evidence = (f"{build.label}: CUDA {cuda}", f"{named} (CUDA {supports})" if supports is not None else named)
    return scene.finding(
        identifier,
        evidence,
        about=build,
        sources=sources,
        built_cuda=cuda,
        floor=floor,
        driver=driver,
        driver_cuda=supports,
    )
