"""The machine that a lock was made for, as the lock itself tells it: for checking it where there is no GPU.

A lock records the lowest driver that it needs, the compute capabilities that it runs on and the C library, which is all
that it depends on (the facts of :func:`envsolve.lock.python_lock.facts_of`, or its comments).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from envsolve.app.held_stack import packages_in
from envsolve.errors import UsageError
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, Host, Platform
from envsolve.model.versions import DriverVersion, LibcVersion

ORIGIN = "the lock"


def recorded_machine(path: Path, platform: Platform) -> Host | None:
    """The machine of the lock at ``path``; None where there is no file, or it does not say, or is for the CPU."""
    try:
        _, facts = packages_in(path, platform)
    except UsageError:
        return None  # whoever needs what is in it says why it cannot be read
    return None if facts is None else _host(facts, platform)


def _host(facts: Mapping[str, object], platform: Platform) -> Host | None:
    capabilities, driver, glibc = (facts.get(key) for key in ("compute_capabilities", "minimum_driver", "glibc"))
    if not isinstance(capabilities, list) or not capabilities or not isinstance(driver, str):
        return None
    try:
        return Host(
            platform=platform,
            driver=DriverVersion.parse(driver),
            glibc=LibcVersion.parse(glibc) if isinstance(glibc, str) else None,
            gpus=tuple(Gpu(None, ComputeCapability.parse(str(it))) for it in capabilities),
            origin={"driver": ORIGIN, "gpus": ORIGIN},
        )
    except ValueError:
        return None
