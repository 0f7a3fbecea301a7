"""How the driver of this machine is installed or renewed, by distribution, and never one that drops its GPUs."""

from __future__ import annotations

from typing import NamedTuple

from envsolve.diagnose.machine.distribution import Distribution
from envsolve.findings.catalogue import shipped
from envsolve.model.host import Platform

_FAMILIES = ("rhel", "centos", "amzn", "suse", "sles", "ubuntu", "debian", "fedora", "arch", "nixos")
"""Ids of distributions, in the order in which the first that it is or descends from counts."""


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

    @property
    def facts(self) -> dict[str, object]:
        """The same as facts of a check."""
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
    """How to install a driver that all GPUs of this machine can use."""
    family = next((it for it in _FAMILIES if distribution is not None and distribution.is_a(it)), None)
    facts = {**limit.facts, "windows": platform.is_windows, "distribution": family}
    text, commands = shipped().step("install-driver", facts.get)
    return Way(" ".join(filter(None, (text, bounds(limit)))), () if limit.is_impossible else commands)


def bounds(limit: Limit) -> str:
    """What the GPUs of a machine ask of a driver, in sentences; "" if they ask for nothing."""
    return shipped().step("driver-bounds", limit.facts.get)[0]
