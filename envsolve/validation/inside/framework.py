"""What the operations ask of a framework. Each ``on_<framework>.py`` holds one subclass, the only code that knows it.

A framework is untyped here on purpose: it is whatever the environment has, of any version that ever was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Callable, List, Mapping, NamedTuple

from .reference import Array, Lesson, Numbers


class UnsupportedError(Exception):
    """The framework has no such thing by design; the text says why."""


class NoDeviceError(Exception):
    """The framework is there and says, without an error of its own, that it has no such device."""


class Outcome(NamedTuple):
    """What an operation came to, read back from the device: row-major, NCHW, several arrays one after the other."""

    numbers: Numbers
    on_device: bool
    """Whether it ran where it was asked to, as far as the framework tells."""


class Framework(ABC):
    """A framework that is imported. Whatever it raises goes through: it is what the probe is after."""

    version = ""
    built_cuda: str | None = None
    """The CUDA it says it was built with, where it says so."""
    cpu_build = False
    """Whether it was built without CUDA."""

    def __init__(self, proves: Mapping[str, str]) -> None:
        self.proves = proves
        """Which library or compiler each operation goes through on a GPU."""
        self.remarks: List[str] = []
        """Findings beside the operations: what works only because the probe helped."""

    @abstractmethod
    def open(self, device: str, index: int) -> str:
        """Reach the device, ``cuda`` or ``cpu``, for all that follows; the name it goes by.

        Raises UnsupportedError for a device that the framework cannot use by design.
        """

    def element_wise(self, left: Array, right: Array) -> Outcome:
        """exp(left) * right + left."""
        raise UnsupportedError("it has no element-wise operations")

    @abstractmethod
    def matmul(self, left: Array, right: Array) -> Outcome:
        """The product of two matrices, without reduced precision."""

    def convolution(self, images: Array, filters: Array) -> Outcome:
        """The convolution, size kept."""
        raise UnsupportedError("it has no convolution")

    def convolution_backward(self, images: Array, filters: Array, upstream: Array) -> Outcome:
        """The gradients with respect to images and filters, one after the other."""
        raise UnsupportedError("it computes no gradients")

    def training(self, lesson: Lesson) -> Outcome:
        """The loss before each step and after the last."""
        raise UnsupportedError("it does not train")

    @abstractmethod
    def products(self, left: Array, right: Array) -> Callable[[], int]:
        """A function that multiplies two matrices again and counts the numbers that are not, bit by bit, as before."""
