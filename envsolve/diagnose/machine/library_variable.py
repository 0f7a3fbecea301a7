"""What may be taken out of LD_LIBRARY_PATH: never the one directory through which the driver's library is found.

On NixOS, in some containers and under HPC modules the loader comes to libcuda by that variable alone; who removes the
variable there loses the GPU.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import NamedTuple

from envsolve.host.loader import LIBRARY_PATH

UNSET = f"unset {LIBRARY_PATH}"
_SEPARATORS = re.compile("[:;]")


class Cut(NamedTuple):
    """What to do about harmful directories of the variable.

    ``keeps`` is the directory that has to stay for the driver's library, None where the whole variable may go.
    ``commands`` are none where that directory is itself a harmful one.
    """

    keeps: str | None
    commands: tuple[str, ...]


def without(value: str, driver: str | None, is_harmful: Callable[[str], bool]) -> Cut:
    """``driver`` is the directory in ``value`` by which alone libcuda is found, None where it is found without."""
    if driver is None:
        return Cut(None, (UNSET,))
    if is_harmful(driver):
        return Cut(driver, ())
    left = ":".join(entry for entry in _SEPARATORS.split(value) if entry and not is_harmful(entry))
    return Cut(driver, (f"export {LIBRARY_PATH}={shlex.quote(left)}",))
