"""How the driver of this machine is installed or renewed, by distribution, and never one that drops its GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from envsolve.diagnose.machine.distribution import Distribution
from envsolve.model.host import Platform

PAGE = "https://www.nvidia.com/en-us/drivers/"
GUIDE = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
_R580 = 580


class Limit(NamedTuple):
    """What the GPUs of a machine ask of a driver.

    ``last`` is the last branch that supports all of them and ``last_for`` the GPU that sets it; ``first`` is the first.
    """

    last: int | None = None
    last_for: str | None = None
    first: int | None = None
    first_for: str | None = None

    @property
    def is_impossible(self) -> bool:
        """Whether no branch supports all GPUs."""
        return self.first is not None and self.last is not None and self.first > self.last


class Way(NamedTuple):
    """One way to install a driver: a sentence and its commands."""

    text: str
    commands: tuple[str, ...] = ()


def installation(distribution: Distribution | None, platform: Platform, limit: Limit) -> Way:
    """How to install a driver that all GPUs of this machine can use."""
    if platform.is_windows:
        way = Way(f"Install NVIDIA's driver for Windows from {PAGE} and restart.")
    else:
        way = _on_linux(distribution, limit.last)
    return Way(" ".join((way.text, *bounds(limit))), () if limit.is_impossible else way.commands)


def bounds(limit: Limit) -> tuple[str, ...]:
    """What the GPUs of a machine ask of a driver, in sentences."""
    found = []
    if limit.last is not None:
        found.append(
            f"The last driver branch for {limit.last_for} is R{limit.last}: a newer one no longer supports it, so take "
            f"R{limit.last} and nothing after it."
        )
    if limit.first is not None and limit.first_for != limit.last_for:
        found.append(f"{limit.first_for} needs a driver of R{limit.first} or newer.")
    if limit.is_impossible:
        found.append("No driver is for both of them: one of these GPUs cannot be used.")
    return tuple(found)


def _on_linux(distribution: Distribution | None, last: int | None) -> Way:
    if distribution is not None:
        for ids, way in _WAYS.items():
            if distribution.is_a(*ids):
                return way(last)
    return _by_guide(last)


def _by_guide(_last: int | None) -> Way:
    return Way(f"Install NVIDIA's driver as its guide says, {GUIDE}, and restart; neither conda nor pip can.")


def _ubuntu(last: int | None) -> Way:
    """Commands: github.com/ubuntu/ubuntu-release-notes/issues/213."""
    chosen = "" if last is None else f" nvidia:{last}"
    return Way("Install the driver with Ubuntu's tool and restart.", (f"sudo ubuntu-drivers install{chosen}",))


def _debian(last: int | None) -> Way:
    """Packages: wiki.debian.org/NvidiaGraphicsDrivers; which branch they hold depends on the release."""
    text = (
        "Install Debian's package (of the sections contrib, non-free and non-free-firmware) and restart; where its "
        f"branch does not suit the GPU, take NVIDIA's: {GUIDE}."
    )
    if last is not None:
        return Way(text)
    return Way(text, ('sudo apt install "linux-headers-$(dpkg --print-architecture)" nvidia-driver',))


def _fedora(last: int | None) -> Way:
    """Packages: rpmfusion.org/Howto/NVIDIA."""
    text = "Install the driver of RPM Fusion (its repository nonfree must be enabled) and restart"
    if last is not None:
        return Way(f"{text}; it keeps packages of their own for old GPUs: https://rpmfusion.org/Howto/NVIDIA.")
    return Way(f"{text}.", ("sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda",))


def _arch(last: int | None) -> Way:
    """Packages: archlinux.org/news of 2025-12-20, NVIDIA 590 drops Pascal support."""
    if last == _R580:
        return Way("Build nvidia-580xx-dkms and what it needs from the AUR in place of nvidia-open, and restart.")
    if last is not None:
        return Way("Build the legacy driver of this branch from the AUR, and restart.")
    return Way("Install the driver and restart.", ("sudo pacman -S nvidia-open nvidia-utils",))


def _nixos(last: int | None) -> Way:
    """Options: wiki.nixos.org/wiki/NVIDIA."""
    package = "" if last is None else f" and hardware.nvidia.package to the package legacy_{last}"
    return Way(
        f'Set services.xserver.videoDrivers = [ "nvidia" ] {package} in the configuration, rebuild, and restart.',
        ("sudo nixos-rebuild switch",),
    )


_WAYS: Mapping[tuple[str, ...], Callable[[int | None], Way]] = {
    ("rhel", "centos", "amzn", "suse", "sles"): _by_guide,
    ("ubuntu",): _ubuntu,
    ("debian",): _debian,
    ("fedora",): _fedora,
    ("arch",): _arch,
    ("nixos",): _nixos,
}
"""By id of the distribution; Red Hat's, Amazon's and SUSE's take NVIDIA's repositories, which its guide describes."""
