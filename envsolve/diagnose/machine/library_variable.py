"""What may be removed from LD_LIBRARY_PATH: never the only directory through which the driver's library is found.

On NixOS, in some containers and with HPC modules the loader finds libcuda only through that variable; removing it there
loses the GPU.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable

from envsolve.host.loader import LIBRARY_PATH

UNSET = f"unset {LIBRARY_PATH}"


def entries_of(value: str | None) -> list[str]:
    """The entries of the variable, including empty ones; none if it is not set (ld.so(8): colons or semicolons)."""
    return re.split("[:;]", value) if value else []


def facts_without(
    directories: Iterable[str], value: str, driver: str | None, place_of: Callable[[str], str]
) -> dict[str, object]:
    """Facts on how to keep harmful ``directories`` of the variable away from programs, for the step ``own-libraries``.

    ``driver`` is the only directory in ``value`` through which libcuda is found; None if it is found without the
    variable. It has to stay, and nothing can be removed if it is harmful itself. ``place_of`` normalizes the spelling
    of a directory.
    """
    harmful = tuple(dict.fromkeys(directories))
    places = set(map(place_of, harmful))
    left = ":".join(it for it in entries_of(value) if it and place_of(it) not in places)
    cut = UNSET if driver is None else f"export {LIBRARY_PATH}={shlex.quote(left)}"
    is_lost = driver is not None and place_of(driver) in places
    return {"cut": None if is_lost else cut, "keeps": driver, "directories": harmful}
