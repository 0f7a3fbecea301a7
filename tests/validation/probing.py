"""Running the driver probe on a machine simulated by the fake driver."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envsolve.validation.child import Children, Outcome
from tests.fake_driver.builder import FakeDriver

NAMES = ("libcuda.so.1",)


def probed(
    fake_driver: FakeDriver,
    *,
    libraries: Sequence[str] = NAMES,
    gpus: str | Sequence[int] | None = None,
    burn: float = 0,
    python: Path = Path(sys.executable),
    timeout: float = 60,
    **machine: Any,
) -> Outcome:
    """The result of the probe with this job on ``machine``, as arguments of FakeDriver.environ."""
    job = {"libraries": libraries, "gpus": gpus, "burn": burn}
    with Children() as children:
        return children.run(python, "driver", job, fake_driver.environ(**machine), timeout)
