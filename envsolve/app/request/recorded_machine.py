"""The machine that a lock was made for, as recorded in the lock, for use if the present machine lacks a GPU.

A lock records everything that it depends on: the lowest driver that it needs, the compute capabilities that it
supports, and the C library (the facts of :func:`envsolve.lockfile.facts.facts_of`, or its comments).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from envsolve.app.request.targets import OF_LOCK
from envsolve.errors import UsageError
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.reading import lock_at
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, Host, Platform
from envsolve.model.versions import DriverVersion, LibcVersion

ORIGIN = OF_LOCK


class RecordedMachine(NamedTuple):
    """The machine that a lock records. For the CPU it has no driver and no GPUs."""

    driver: DriverVersion | None
    capabilities: tuple[ComputeCapability, ...]
    glibc: LibcVersion | None

    @property
    def is_gpu(self) -> bool:
        """Whether it has any GPU."""
        return self.driver is not None or bool(self.capabilities)

    def __str__(self) -> str:
        named = ", ".join(map(str, self.capabilities)) or "any GPU"
        return named if self.driver is None else f"{named}, driver {self.driver}"

    def stands_in_for(self, host: Host) -> Host:
        """``host`` completed with the recorded values, and with the lock's C library if both can run the lock.

        A newer C library than the lock's does not change the packages.
        """
        origin = dict(host.origin)
        driver, gpus = host.driver, host.gpus
        if driver is None and self.driver is not None:
            driver, origin["driver"] = self.driver, ORIGIN
        if not gpus and self.capabilities:
            gpus, origin["gpus"] = tuple(Gpu(None, it) for it in self.capabilities), ORIGIN
        older = self.glibc is not None and host.glibc is not None and self.glibc < host.glibc
        glibc = self.glibc if older else host.glibc
        return host._replace(driver=driver, gpus=gpus, glibc=glibc, origin=origin)


def recorded_machine(path: Path, platform: Platform) -> RecordedMachine | None:
    """The machine of the lock at ``path``; None if there is no file, or it does not record one."""
    try:
        lock = lock_at(path, platform)
    except UsageError:
        return None  # code that needs the contents reports the error
    return None if lock is None or lock.made is None else _machine(lock)


def _machine(lock: Lock) -> RecordedMachine | None:
    driver, capabilities = (None, ()) if lock.stack is None else (lock.stack.minimum_driver, lock.stack.capabilities)
    try:
        return RecordedMachine(
            None if driver is None else DriverVersion.parse(driver),
            tuple(map(ComputeCapability.parse, capabilities)),
            None if lock.glibc is None else LibcVersion.parse(lock.glibc),
        )
    except ValueError:
        return None
