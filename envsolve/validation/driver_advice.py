"""What to do about a CUDA driver: one advice is a sentence, its commands, and where it holds. These are said often."""

from __future__ import annotations

from typing import NamedTuple

from envsolve.validation.places import Place


class Advice(NamedTuple):
    """One thing to do, in a sentence, with the commands for it; only in one ``place``, where it names one."""

    text: str
    commands: tuple[str, ...] = ()
    place: Place | None = None


REBOOT = Advice("Restart the machine.", ("sudo reboot",), Place.LINUX)
REBOOT_WINDOWS = Advice("Restart Windows.", (), Place.WINDOWS)
REINSTALL = Advice(
    "Install NVIDIA's driver again, all of it in one version, and restart (on a Jetson: JetPack).", (), Place.LINUX
)
REINSTALL_WINDOWS = Advice("Install NVIDIA's driver for Windows again and restart.", (), Place.WINDOWS)
UPDATE = Advice("Install a newer NVIDIA driver, or solve again for the driver that is there.", ("envsolve detect",))
UPDATE_WSL = Advice(
    "On WSL: update NVIDIA's driver in Windows and start WSL anew; no driver belongs inside Linux.",
    ("wsl.exe --shutdown",),
    Place.WSL,
)
UPDATE_JETSON = Advice("On a Jetson: the driver is part of JetPack; update JetPack.", (), Place.JETSON)
CONTAINER_GPUS = Advice(
    "In a container: start it with GPUs (`docker run --gpus all`, or the CDI device `nvidia.com/gpu=all`), and with "
    "NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
    (),
    Place.CONTAINER,
)
CONTAINER_AGAIN = Advice(
    "In a container: start it again; it still holds the driver's files of an earlier day. With CDI, write the "
    "specification again on the host first (`nvidia-ctk cdi generate`).",
    (),
    Place.CONTAINER,
)
KERNEL_LOG = Advice(
    "Look for NVRM and Xid lines in the kernel's log.", ("sudo dmesg | grep -E 'NVRM|Xid'",), Place.LINUX
)
HARDWARE = (
    KERNEL_LOG,
    Advice("Look at temperature, power and error counters of the GPU.", ("nvidia-smi -q",)),
    Advice("Take back any overclocking. If it happens again after a restart, try another driver, then another GPU."),
)
MPS = (
    Advice("Start the MPS control daemon anew, or run without MPS: stop it, and unset CUDA_MPS_PIPE_DIRECTORY."),
    Advice(
        "Its logs are in CUDA_MPS_LOG_DIRECTORY or /var/log/nvidia-mps.",
        ("echo quit | nvidia-cuda-mps-control", "nvidia-cuda-mps-control -d"),
        Place.POSIX,
    ),
    Advice("In a container: it needs the host's MPS pipe directory and --ipc=host.", (), Place.CONTAINER),
)
