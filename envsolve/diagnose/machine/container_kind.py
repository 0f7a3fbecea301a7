"""The kind of container that this process runs in, by the marks of each kind; the fix depends on it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from envsolve.diagnose.machine.files import MachineFiles


class Container(NamedTuple):
    """One kind of container: its name, and the mark that identified it."""

    kind: str
    mark: str


_FILES = (
    ("kubernetes", "/var/run/secrets/kubernetes.io"),
    ("apptainer", "/.singularity.d"),
    ("podman", "/run/.containerenv"),
    ("docker", "/.dockerenv"),
)
_VARIABLES = (
    ("kubernetes", "KUBERNETES_SERVICE_HOST"),
    ("apptainer", "APPTAINER_CONTAINER"),
    ("apptainer", "SINGULARITY_CONTAINER"),
)
_GROUPS = (("kubernetes", "kubepods"), ("podman", "libpod"), ("docker", "docker"), ("lxc", "lxc"))
"""Words in the control groups of process 1; in version 2 of control groups they are not visible inside."""

_SYSTEMD = "/run/systemd/container"
"""systemd's name of its own container: ``lxc``, ``docker``, ``podman``, ``systemd-nspawn``; ``wsl`` is not a container.
"""


def container_of(files: MachineFiles, environ: Mapping[str, str]) -> Container | None:
    """The container, the most specific kind first: a Kubernetes pod is also a container of Docker or the like."""
    for kind, path in _FILES[:1]:
        if files.exists(path):
            return Container(kind, path)
    for kind, name in _VARIABLES:
        if environ.get(name):
            return Container(kind, name)
    for kind, path in _FILES[1:]:
        if files.exists(path):
            return Container(kind, path)
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
