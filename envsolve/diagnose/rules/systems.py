"""Rules on systems that a package has no wheels for: macOS without CUDA, processors of ARM, musl, 32 bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from packaging.version import Version

from envsolve.diagnose.case import Case
from envsolve.diagnose.cause import Cause, Remedy
from envsolve.diagnose.rules.named import known
from envsolve.diagnose.rules.wheels import (
    Asked,
    first_for,
    interpreter_of,
    is_for_cuda,
    newest_pythons,
    pythons_of,
    span,
    wheels_of,
)
from envsolve.model.host import Platform
from envsolve.model.release import Release


def never_for(case: Case, asked: Asked) -> Cause | None:
    """Why there never was such a wheel for the system: CUDA's packages on a Mac, and what only stood for another."""
    if case.platform in _MACS and is_for_cuda(asked.package):
        return Cause("no-cuda-on-macos", known(package=asked.package, **_ON_MACS.get(asked.package, {})))
    if _is_placeholder(case, asked):
        remedy = Remedy(frameworks=("tensorflow",))
        return Cause("tensorflow-gpu-removed", {"asked_version": str(asked.version)}, remedy)
    return None


_MACS = (Platform.OSX_64, Platform.OSX_ARM64)
_ON_MACS: Mapping[str, Mapping[str, str]] = {
    "onnxruntime-gpu": {
        "instead": "onnxruntime, whose CoreML provider uses Apple's GPU",
        "for_cpu": "onnxruntime",
    },
    "tensorflow-gpu": {
        "instead": "tensorflow, with tensorflow-metal for Apple's GPU",
        "for_cpu": "tensorflow",
    },
    "paddlepaddle-gpu": {"instead": "paddlepaddle, which computes on the CPU", "for_cpu": "paddlepaddle"},
}
"""What takes the place of packages for CUDA on a Mac."""
_LAST_TENSORFLOW_GPU = {Platform.WIN_64: Version("2.10.1")}
_LAST_ON_LINUX = Version("2.11")


def _is_placeholder(case: Case, asked: Asked) -> bool:
    """Whether it is a tensorflow-gpu after the last one that had code."""
    last = _LAST_TENSORFLOW_GPU.get(case.platform or Platform.LINUX_64, _LAST_ON_LINUX)
    return asked.package == "tensorflow-gpu" and asked.version is not None and asked.version > last


def no_wheel(case: Case, asked: Asked, wheels: Sequence[Release]) -> Cause:
    """No version at all has a wheel: the Python, the processor, the C library or the index is not what any is for."""
    framework = asked.framework
    told = case.version_of(framework) if framework is not None else None
    if asked.version is None and told is not None:
        asked = asked._replace(version=Version(told.partition("+")[0]))
        wheels = wheels_of(case, asked)
    newest = newest_pythons(case, asked.package)
    pythons = pythons_of(wheels)
    best = pythons or newest
    fields = known(
        package=asked.package,
        asked_version=None if asked.version is None else str(asked.version),
        pythons=span(pythons) if pythons else None,
        newest_pythons=span(newest) if newest else None,
        best_python=best[-1] if best else None,
        interpreter=interpreter_of(case),
        cuda_package=asked.package if case.platform is None and is_for_cuda(asked.package) else None,
        **system_fields(case),
        **_arm_fields(case, asked, wheels),
    )
    return Cause("no-wheel-for-this-system", fields)


def _arm_fields(case: Case, asked: Asked, wheels: Sequence[Release]) -> dict[str, str]:
    """From which release on there are wheels for ARM, where the one that is asked for has none."""
    if case.jetson or wheels or case.platform is not Platform.LINUX_AARCH64:
        return {}
    first = first_for(case, asked.package, Platform.LINUX_AARCH64) if is_for_cuda(asked.package) else None
    if first is not None:
        return {
            "arm_first": str(first.version),
            "arm_release": f"{asked.package} {first.version} or newer, which is for CUDA {first.cuda}",
        }
    release = "a release that has aarch64 wheels (PyTorch's index cu126 and newer)"
    return {"arm_release": release} if asked.framework == "pytorch" else {}


def system_fields(case: Case) -> dict[str, str]:
    """What the text tells of a system for which nobody makes wheels, each under a name of its own."""
    jetson, arm = case.jetson, case.platform is Platform.LINUX_AARCH64
    return known(
        jetson="Jetson" if jetson else None,
        arm="Linux on ARM (aarch64)" if arm and not jetson else None,
        reasons="Other reasons:" if jetson or arm else None,
        elsewhere="Elsewhere use" if jetson or arm else None,
        musl="Alpine Linux" if case.told("musl") is not None else None,
        narrow="32-bit" if case.told("python_bits") is not None else None,
        intel_mac="macOS on Intel" if case.platform is Platform.OSX_64 else None,
    )
