"""What the checks are given: everything that is looked at comes in here, so that a recorded machine can be examined."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from envsolve.diagnose.machine.files import Limits
from envsolve.host.files import is_open_to_us
from envsolve.host.machine import Machine
from envsolve.model.host import Host


class Surroundings(NamedTuple):
    """One machine to examine.

    ``machine`` is its platform, its variables and the root of its files; ``host`` what detection said of it, as it was
    detected: overrides of the user (``--driver``, CONDA_OVERRIDE_CUDA) must not be applied to it. ``may_open`` says
    whether this user may read and write a device file.
    """

    machine: Machine
    host: Host
    may_open: Callable[[Path], bool] = is_open_to_us
    limits: Limits = Limits()
    clock: Callable[[], float] = time.monotonic
