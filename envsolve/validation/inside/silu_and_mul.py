"""SiLU and a product in one kernel, in half precision: each language model server for PyTorch has its own one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from . import operations, reference
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


class ServerKernels(PyTorch, ABC):
    """A package with such a kernel, and its PyTorch, whose own probe does the burn."""

    operations = OPERATIONS

    def silu_and_mul(self, values: Array) -> Outcome:
        """SiLU of the left half of each row, times the right half."""
        return self.outcome(self.activated(self._tensor(values).half()).float())

    @abstractmethod
    def activated(self, halves: Any) -> Any:
        """The same for a tensor of float16."""
