"""Whether this process may open the driver's device nodes, which a container or a missing group can prevent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.reading import exists, is_open_to_us, names_of
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from envsolve.model.host import Reading, SourceFailure

_GPU_NODE = re.compile(r"nvidia\d+\Z")


class DeviceNodesProbe(NamedTuple):
    """``/dev/nvidiactl`` and ``/dev/nvidia0...``; it applies only if the kernel module is loaded."""

    root: Path
    name: str = Source.DEVICE_NODES

    def read(self) -> Reading | None:
        """Return a problem if nodes are missing or closed to this user, otherwise None: nodes contain no facts."""
        if not module_is_loaded(self.root):
            return None
        problem = self._problem()
        return None if problem is None else Reading(self.name, problem=problem)

    def _problem(self) -> SourceFailure | None:
        devices = self.root / "dev"
        nodes = [name for name in names_of(devices) if _GPU_NODE.match(name)]
        missing = [] if exists(devices / "nvidiactl") else ["/dev/nvidiactl"]
        missing += [] if nodes else ["/dev/nvidia0"]
        if missing:
            return SourceFailure(Trouble.DEVICE_NODES_MISSING, f"{' and '.join(missing)} missing")
        needed = ["nvidiactl", *nodes]
        denied = [f"/dev/{name}" for name in needed if not is_open_to_us(devices / name)]
        if denied:
            return SourceFailure(Trouble.DEVICE_NODES_DENIED, f"{', '.join(denied)} may not be opened by this user")
        return None


def module_is_loaded(root: Path) -> bool:
    """Whether the NVIDIA kernel module is loaded, even if its version is unknown."""
    return exists(root / "sys/module/nvidia") or exists(root / "proc/driver/nvidia/version")
