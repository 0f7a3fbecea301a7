"""What may be taken out of LD_LIBRARY_PATH: never the one directory through which the driver's library is found.

On NixOS, in some containers and under HPC modules the loader comes to libcuda by that variable alone; who removes the
variable there loses the GPU.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable

from envsolve.host.loader import LIBRARY_PATH

UNSET = f"unset {LIBRARY_PATH}"


def entries_of(value: str | None) -> list[str]:
    """The entries of the variable, the empty ones too; none if it is not set (ld.so(8): colons or semicolons)."""
    return re.split("[:;]", value) if value else []


def facts_without(
    directories: Iterable[str], value: str, driver: str | None, place_of: Callable[[str], str]
) -> dict[str, object]:
    """Facts on how to keep harmful ``directories`` of the variable from programs, for the step ``own-libraries``.

    ``driver`` is the directory in ``value`` by which alone libcuda is found, None if it is found without: it has to
    stay, and nothing can be removed where it is itself harmful. ``place_of`` makes two spellings of a directory equal.
    """
    harmful = tuple(dict.fromkeys(directories))
    places = set(map(place_of, harmful))
    left = ":".join(it for it in entries_of(value) if it and place_of(it) not in places)
    cut = UNSET if driver is None else f"export {LIBRARY_PATH}={shlex.quote(left)}"
    is_lost = driver is not None and place_of(driver) in places
    return {"cut": None if is_lost else cut, "keeps": driver, "directories": harmful}
