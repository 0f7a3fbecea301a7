"""What the loaded kernel module reports in sysfs and procfs.

These files need no library, no device node and no permission. They are about the kernel of the machine, so a container
sees them whether or not it has a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.reading import names_of, short_text
from envsolve.host.gpus import grouped
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from envsolve.model.host import Gpu, Reading, SourceFailure
from envsolve.model.versions import DriverVersion

_NVRM_LINE = re.compile(r"^NVRM version:.*?Kernel Module(?:\s+for\s+\S+)?\s+([0-9]+(?:\.[0-9]+)+)\s", re.MULTILINE)
"""``... NVIDIA UNIX x86_64 Kernel Module  550.54.14  ...`` or ``... Open Kernel Module for x86_64  565.57.01  ...``."""

_MODEL_LINE = re.compile(r"^Model:\s*(.+?)\s*$", re.MULTILINE)


class SysModuleProbe(NamedTuple):
    """``/sys/module/nvidia/version``: one line, the version."""

    root: Path
    name: str = Source.SYS_MODULE

    def read(self) -> Reading | None:
        """Return the version, or None while no module with a version is loaded."""
        text = short_text(self.root / "sys/module/nvidia/version")
        return None if text is None else _reading(self.name, text, text)


class ProcVersionProbe(NamedTuple):
    """``/proc/driver/nvidia/version``, in the format of the closed and of the open module."""

    root: Path
    name: str = Source.PROC_VERSION

    def read(self) -> Reading | None:
        """Return the version in the NVRM line, or None while no module is loaded."""
        text = short_text(self.root / "proc/driver/nvidia/version")
        if text is None:
            return None
        match = _NVRM_LINE.search(text + "\n")
        return _reading(self.name, match[1] if match else "", text)


class ProcGpusProbe(NamedTuple):
    """``/proc/driver/nvidia/gpus/*/information``: product names without compute capabilities."""

    root: Path
    name: str = Source.PROC_GPUS

    def read(self) -> Reading | None:
        """Return the names of the module's GPUs, or None if it lists none."""
        gpus = grouped(Gpu(model, None) for model in self._models())
        return Reading(self.name, gpus=gpus) if gpus else None

    def _models(self) -> Iterator[str]:
        directory = self.root / "proc/driver/nvidia/gpus"
        for address in names_of(directory):
            match = _MODEL_LINE.search(short_text(directory / address / "information") or "")
            if match is not None:
                yield match[1]


def _reading(source: str, version: str, text: str) -> Reading:
    try:
        return Reading(source, driver=DriverVersion.parse(version))
    except ValueError:
        line = text.partition("\n")[0]
        return Reading(source, problem=SourceFailure(Trouble.UNREADABLE_ANSWER, f"no driver version in {line!r}"))
