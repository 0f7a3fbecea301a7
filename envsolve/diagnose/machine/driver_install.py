"""How to install or update the driver on each distribution, never to a version that drops its GPUs."""

from __future__ import annotations

from typing import NamedTuple

from envsolve.diagnose.machine.operating_system import Distribution
from envsolve.findings.catalogue import shipped
from envsolve.model.host import Platform

_FAMILIES = ("rhel", "centos", "amzn", "suse", "sles", "ubuntu", "debian", "fedora", "arch", "nixos")
"""Ids of distributions; the first that matches or is a parent decides."""


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


class Way(NamedTuple):
    """One way to install a driver: a sentence and its commands."""

    text: str
    commands: tuple[str, ...] = ()


def installation(distribution: Distribution | None, platform: Platform, limit: Limit) -> Way:
    """How to install a driver that supports all GPUs of this machine."""
    family = next((it for it in _FAMILIES if distribution is not None and distribution.is_a(it)), None)
    facts = {**limit.facts, "windows": platform.is_windows, "distribution": family}
    text, commands = shipped().step("install-driver", facts.get)
    return Way(" ".join(filter(None, (text, bounds(limit)))), () if limit.is_impossible else commands)


def bounds(limit: Limit) -> str:
    """Sentences on the driver branches that the GPUs allow; "" if there is no limit."""
    return shipped().step("driver-bounds", limit.facts.get)[0]
