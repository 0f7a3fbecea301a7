"""The kind of container that this process runs in, by the marks of each kind; the fix depends on it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from envsolve.diagnose.machine.files import MachineFiles
from envsolve.validation.places import CONTAINER_MARKS


class Container(NamedTuple):
    """One kind of container: its name, and the mark that identified it."""

    kind: str
    mark: str


_GROUPS = (("kubernetes", "kubepods"), ("podman", "libpod"), ("docker", "docker"), ("lxc", "lxc"))
"""Words in the control groups of process 1; in version 2 of control groups they are not visible inside."""

_SYSTEMD = "/run/systemd/container"
"""systemd's name of its own container: ``lxc``, ``docker``, ``podman``, ``systemd-nspawn``; ``wsl`` is not a container.
"""


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
