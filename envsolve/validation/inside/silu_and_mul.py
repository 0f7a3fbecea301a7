"""SiLU and a product in one kernel, in half precision: each language model server for PyTorch has its own one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Callable, Dict

from . import operations, reference
from .channel import Channel
from .framework import Outcome
from .on_pytorch import PyTorch
from .reference import Array

TOLERANCE = 5e-3
"""Inputs and results are rounded to eleven bits, each with a relative error of up to 5e-4."""
OPERATIONS = (
    operations.Operation(
        "silu_and_mul",
        "silu_and_mul",
        lambda: (reference.numbers((16, 256), 13),),
        reference.silu_and_mul,
        TOLERANCE,
    ),
)


def run(job: Dict[str, object], channel: Channel, name: str, load: Callable[[str], ServerKernels]) -> Dict[str, object]:
    """Run the kernel of the package ``name``; ``load`` imports it. PyTorch's own probe does the burn."""
    return operations.run(dict(job, burn=0), channel, name, load, OPERATIONS)


class ServerKernels(PyTorch, ABC):
    """A package with such a kernel, and its PyTorch."""

    def silu_and_mul(self, values: Array) -> Outcome:
        """SiLU of the left half of each row, times the right half."""
        return self.outcome(self.activated(self._tensor(values).half()).float())

    @abstractmethod
    def activated(self, halves: Any) -> Any:
        """The same for a tensor of float16."""
