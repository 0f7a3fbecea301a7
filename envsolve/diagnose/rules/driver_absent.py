"""Why a process reaches no driver, by what is known of the machine."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.case import Case, merged
from envsolve.diagnose.cause import Cause
from envsolve.diagnose.rules.roots import Fields, told_with
from envsolve.model.host import Platform


def on_mac(case: Case) -> bool:
    """Whether it plainly happened on macOS, by the platform alone: "mps" is NVIDIA's Multi-Process Service too."""
    return case.platform in (Platform.OSX_64, Platform.OSX_ARM64)


def may_be_container(case: Case) -> bool:
    """Whether the program runs in a container, as told, or as it does on such a system."""
    return case.container or case.saw("container-system")


def no_driver(case: Case) -> Iterator[Cause]:
    """Why there may be no driver at all."""
    if case.saw("wsl-1"):
        seen = case.of("wsl-1")
        yield Cause("wsl-1", seen[0].fields, evidence=tuple(it.line for it in seen))
    elif case.saw("windows-without-gpu-for-wsl"):
        yield windows_too_old(case)
    elif on_mac(case):
        yield Cause("macos-without-cuda")
    elif case.wsl:
        yield Cause("wsl-driver-not-reached")
    elif may_be_container(case):
        yield Cause("container-without-gpu")
        if case.driver is None:
            yield Cause("driver-library-missing")
    elif case.driver is not None:
        yield Cause("container-without-gpu")
    else:
        yield Cause("driver-library-missing")


def windows_too_old(case: Case) -> Cause:
    """A Windows that has no GPU for WSL, by its build or version."""
    seen = case.of("windows-without-gpu-for-wsl")
    told = {name: value for it in reversed(seen) for name, value in it.fields.items()}
    build = told.get("build") or told.get("build_of_version") or told.get("version", "")
    return Cause("windows-too-old-for-wsl", {"build": build}, evidence=tuple(it.line for it in seen))


def no_library(case: Case, fields: Fields) -> Iterator[Cause]:
    """Why there is no driver's library, by what is known of the machine."""
    absent, container = Cause("driver-library-missing", fields), Cause("container-without-gpu", fields)
    if on_mac(case):
        yield Cause("macos-without-cuda")
    elif case.saw("wsl-1"):
        yield told_with(case, "wsl-1", "wsl-1")
    elif case.wsl:
        yield from windows_too_old_for_wsl(case)
        yield Cause("wsl-driver-not-reached")
        yield absent
    elif case.jetson:
        yield Cause("jetson-device-files")
        yield container
    elif case.container or case.saw("image-without-driver"):
        yield container
        yield absent
    elif case.driver is not None:
        yield Cause("driver-hidden-from-process", fields)
        yield container
    else:
        yield from (no_gpu_allocated(case),) if case.saw("slurm", "colab") else ()
        yield absent
        yield container


def windows_too_old_for_wsl(case: Case) -> Iterator[Cause]:
    """The cause of a Windows without GPUs for WSL, where one is told."""
    if case.saw("windows-without-gpu-for-wsl"):
        yield windows_too_old(case)


def no_gpu_allocated(case: Case) -> Cause:
    """A job or a notebook without a GPU."""
    if case.saw("slurm"):
        return told_with(
            case, "no-gpu-allocated", "slurm", {"place": "a job of Slurm that asked for none (--gres=gpu)"}
        )
    if case.saw("colab"):
        service = merged(case.of("colab")).get("service", "colab").capitalize()
        return told_with(case, "no-gpu-allocated", "colab", {"place": f"a notebook of {service} without a GPU runtime"})
    return Cause("no-gpu-allocated")
