"""What shows that a process runs in a container."""

from __future__ import annotations

from pathlib import Path

from envsolve.boundary.reading import exists

CONTAINER_MARKS = (
    ("kubernetes", "/var/run/secrets/kubernetes.io"),
    ("kubernetes", "KUBERNETES_SERVICE_HOST"),
    ("apptainer", "APPTAINER_CONTAINER"),
    ("apptainer", "SINGULARITY_CONTAINER"),
    ("apptainer", "/.singularity.d"),
    ("podman", "/run/.containerenv"),
    ("docker", "/.dockerenv"),
)
"""Kinds of containers with the files and variables that each sets, the most specific kind first.

A Kubernetes pod is also a container of Docker or the like.
"""


def is_container(root: Path) -> bool:
    """Whether the machine with the files in ``root`` is a container, by those files."""
    return any(exists(root / mark[1:]) for _, mark in CONTAINER_MARKS if mark.startswith("/"))
