"""The system that processes run in: its container, its distribution (os-release(5)), and the drivers that it allows.

A driver is never updated to a version that drops the GPUs of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from envsolve.diagnose.machine.files import MachineFiles
from envsolve.host.containers import CONTAINER_MARKS

_GROUPS = (("kubernetes", "kubepods"), ("podman", "libpod"), ("docker", "docker"), ("lxc", "lxc"))
"""Words in the control groups of process 1; in version 2 of control groups they are not visible inside."""
_SYSTEMD = "/run/systemd/container"
"""systemd's name of its own container: ``lxc``, ``docker``, ``podman``, ``systemd-nspawn``; ``wsl`` is not a container.
"""
_LINE = re.compile(r"^(ID|ID_LIKE|VERSION_ID|PRETTY_NAME)=(.*)$", re.MULTILINE)
_FAMILIES = ("rhel", "centos", "amzn", "suse", "sles", "ubuntu", "debian", "fedora", "arch", "nixos")
"""Ids of distributions; the first that matches or is a parent decides."""


class Container(NamedTuple):
    """One kind of container: its name, and the mark that identified it."""

    kind: str
    mark: str


def container_of(files: MachineFiles, environ: Mapping[str, str]) -> Container | None:
    """The container, by the first mark that is found."""
    for kind, mark in CONTAINER_MARKS:
        if files.exists(mark) if mark.startswith("/") else environ.get(mark):
            return Container(kind, mark)
    return _by_systemd(files) or _by_groups(files)


def _by_systemd(files: MachineFiles) -> Container | None:
    kind = files.text(_SYSTEMD)
    return None if not kind or kind == "wsl" else Container(kind, _SYSTEMD)


def _by_groups(files: MachineFiles) -> Container | None:
    groups = files.text("/proc/1/cgroup") or ""
    for kind, word in _GROUPS:
        if re.search(rf"[:/]{word}", groups):
            return Container(kind, "/proc/1/cgroup")
    return None


class Distribution(NamedTuple):
    """A distribution by its own id and those of its parents, the nearest first."""

    id: str
    family: tuple[str, ...] = ()
    version: str = ""
    name: str = ""

    def is_a(self, *ids: str) -> bool:
        """Whether it is one of ``ids`` or derived from one."""
        return any(it in ids for it in (self.id, *self.family))


def distribution_of(files: MachineFiles) -> Distribution | None:
    """The distribution; None if no file names it."""
    text = files.text("/etc/os-release") or files.text("/usr/lib/os-release")
    if text is None:
        return None
    values = {key: value.strip().strip("\"'") for key, value in _LINE.findall(text)}
    if not values.get("ID"):
        return None
    return Distribution(
        values["ID"].lower(),
        tuple(values.get("ID_LIKE", "").lower().split()),
        values.get("VERSION_ID", ""),
        values.get("PRETTY_NAME", ""),
    )


class Limit(NamedTuple):
    """The driver branches that the GPUs of a machine allow.

    ``last`` is the last branch that supports all of them and ``last_for`` the GPU that limits it; ``first`` is the
    first.
    """

    last: int | None = None
    last_for: str | None = None
    first: int | None = None
    first_for: str | None = None

    @property
    def is_impossible(self) -> bool:
        """Whether no branch supports all GPUs."""
        return self.first is not None and self.last is not None and self.first > self.last

    @property
    def facts(self) -> dict[str, object]:
        """The limit as facts of a check."""
        return {
            "last_branch": self.last,
            "last_for": self.last_for,
            "first_branch": None if self.first_for == self.last_for else self.first,
            "first_for": self.first_for,
            "impossible": self.is_impossible,
        }


def family_of(distribution: Distribution | None) -> str | None:
    """The distribution, or the parent, that decides how a driver is installed; None for any other."""
    return next((it for it in _FAMILIES if distribution is not None and distribution.is_a(it)), None)
