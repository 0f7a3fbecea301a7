"""A container whose host has a driver, and which was not given it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envsolve.binary.unreadable import Damage
from envsolve.diagnose.machine.seen import gpus_seen, misplaced_libraries
from envsolve.diagnose.machine.survey import Survey
from envsolve.host.evidence import Surroundings as Variables
from envsolve.host.loader import CUDA_LIBRARY
from envsolve.model.finding import Finding, Severity

DEVICES, CAPABILITIES = "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"

_STARTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "docker": (
        "Install the NVIDIA Container Toolkit on the host and start the container with --gpus all, or with CDI.",
        ("docker run --gpus all IMAGE", "docker run --device nvidia.com/gpu=all IMAGE"),
    ),
    "podman": (
        "Install the NVIDIA Container Toolkit on the host, write its CDI specification, and start with the device.",
        ("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml", "podman run --device nvidia.com/gpu=all IMAGE"),
    ),
    "kubernetes": (
        "Ask for a GPU in the pod (`resources: limits: nvidia.com/gpu: 1`); the cluster needs NVIDIA's device plugin.",
        ("kubectl describe nodes | grep nvidia.com/gpu",),
    ),
    "apptainer": ("Start it with --nv.", ("apptainer exec --nv IMAGE COMMAND",)),
    "lxc": (
        "Give the container the GPU and the driver's libraries.",
        ("lxc config device add NAME gpu gpu", "lxc config set NAME nvidia.runtime true"),
    ),
}
"""By kind; from the guides of the NVIDIA Container Toolkit, of its device plugin, of Apptainer and of LXD."""


def check_container(survey: Survey) -> Iterator[Finding]:
    """A container without the driver's library on a machine that has a driver or a GPU."""
    if survey.container is None or survey.is_wsl or survey.libcuda_works or not _lacks_library(survey):
        return
    if misplaced_libraries(survey) or not (survey.module_is_loaded or survey.bus):
        return
    asked = Variables(driver_capabilities=survey.environ.get(CAPABILITIES))
    yield _without_compute(survey) if asked.container_without_compute else _without_gpus(survey)


def _lacks_library(survey: Survey) -> bool:
    """Whether there is no CUDA library, or only the empty file that a runtime left in the image."""
    found = survey.libcuda
    return found is None or (found.damage is not None and found.damage.damage is Damage.EMPTY)


def _without_compute(survey: Survey) -> Finding:
    value = survey.environ[CAPABILITIES]
    return Finding(
        "container-without-compute",
        "The container was given the driver without its CUDA part",
        Severity.ERROR,
        f"{CAPABILITIES} is {value!r}, which leaves {CUDA_LIBRARY} out of this container: it needs `compute`.",
        f"Start the container with {CAPABILITIES}=compute,utility (or all).",
        (f"docker run --gpus all -e {CAPABILITIES}=compute,utility IMAGE",) if _kind(survey) == "docker" else (),
        (f"{CAPABILITIES}={value}", *_evidence(survey)),
    )


def _without_gpus(survey: Survey) -> Finding:
    value = survey.environ.get(DEVICES)
    fix, commands = _STARTS.get(_kind(survey), ("Start the container with GPUs, as its runtime wants it.", ()))
    asked = "" if value is None else f" {DEVICES} is {value!r}."
    return Finding(
        "container-without-gpu",
        "The container was started without GPUs",
        Severity.ERROR,
        f"The host has a GPU, and {CUDA_LIBRARY} is not in this container: a container gets the driver's libraries "
        f"and device files from its runtime, and this one was not given them.{asked}",
        fix,
        commands,
        (*((f"{DEVICES}={value}",) if value is not None else ()), *_evidence(survey)),
    )


def _kind(survey: Survey) -> str:
    return survey.container.kind if survey.container is not None else ""


def _evidence(survey: Survey) -> tuple[str, ...]:
    mark = () if survey.container is None else (f"{survey.container.mark} ({survey.container.kind})",)
    module = (f"kernel module {survey.module_version or 'of no known version'}",) if survey.module_is_loaded else ()
    left = () if survey.libcuda is None else (f"{survey.libcuda} is empty",)
    return (*mark, *module, *left, *gpus_seen(survey))
