"""The Linux distribution (os-release(5)), for the commands that install software."""

from __future__ import annotations

import re
from typing import NamedTuple

from envsolve.diagnose.machine.files import MachineFiles

_LINE = re.compile(r"^(ID|ID_LIKE|VERSION_ID|PRETTY_NAME)=(.*)$", re.MULTILINE)


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
