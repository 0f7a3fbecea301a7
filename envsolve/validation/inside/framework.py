"""The interface of a framework for the operations. Each ``on_<framework>.py`` has one subclass.

Frameworks are untyped here on purpose: any version of them may be installed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Callable, List, Mapping, NamedTuple, Sequence, Tuple

from .reference import Array, Lesson, Numbers

Loss = Callable[[Any, Any], Any]
"""A function of two tensors that returns one number."""
Step = Callable[[Any, Any], Tuple[Any, Sequence[Any]]]
"""The same, returning also the gradients."""


class UnsupportedError(Exception):
    """The framework does not support this by design; the text says why."""


class NoDeviceError(Exception):
    """The framework reports, without an error of its own, that it has no such device."""


class Outcome(NamedTuple):
    """The result of an operation, read back from the device: row-major, NCHW, several arrays one after the other."""

    numbers: Numbers
    on_device: bool
    """Whether it ran on the requested device, as far as the framework reports it."""


class Framework(ABC):
    """An imported framework. Its exceptions are not caught: they are what the probe is looking for."""

    version = ""
    built_cuda: str | None = None
    """The CUDA that it reports it was built with."""
    cpu_build = False
    """Whether it was built without CUDA."""
    operations: Sequence[Any] = ()
    """What is run in place of the usual operations and the burn."""

    def __init__(self, proves: Mapping[str, str]) -> None:
        self.proves = proves
        """The library or compiler that each operation tests on a GPU."""
        self.remarks: List[str] = []
        """Ids of findings besides the operations: what works only because the probe helped."""

    @abstractmethod
    def open(self, device: str, index: int) -> str:
        """Use the device, ``cuda`` or ``cpu``, for everything that follows, and return its name.

        Raises UnsupportedError for a device that the framework does not support by design.
        """

    def element_wise(self, left: Array, right: Array) -> Outcome:
        """exp(left) * right + left."""
        raise UnsupportedError("it has no element-wise operations")

    @abstractmethod
    def matmul(self, left: Array, right: Array) -> Outcome:
        """The product of two matrices, without reduced precision."""

    def convolution(self, images: Array, filters: Array) -> Outcome:
        """The convolution with unchanged size."""
        raise UnsupportedError("it has no convolution")

    def convolution_backward(self, images: Array, filters: Array, upstream: Array) -> Outcome:
        """The gradients with respect to images and filters, one after the other."""
        raise UnsupportedError("it computes no gradients")

    def training(self, lesson: Lesson) -> Outcome:
        """The loss before each step and after the last."""
        raise UnsupportedError("it does not train")

    def run_time_compilation(self, values: Array) -> Outcome:
        """2 to the power of each number, by a kernel that is compiled at its first use, unlike the others."""
        raise UnsupportedError("no kernel needs another compiler than its element-wise operations")

    @abstractmethod
    def products(self, left: Array, right: Array) -> Callable[[], int]:
        """A function that repeats a product and counts the numbers that differ from the first one, bit by bit."""


class TensorFramework(Framework):
    """A tensor framework: each operation is written once, with functions that all of these frameworks have.

    ``own`` is the name of its kernels, ``products`` the library for matrix products, ``compiler`` that of kernels that
    are compiled at run time. Images are NCHW and filters OIHW, as in the reference.
    """

    exp: Callable[[Any], Any]
    relu: Callable[[Any], Any]
    product: Callable[[Any, Any], Any]
    """The product of two matrices, without reduced precision."""

    def __init__(self, own: str, products: str = "cuBLAS", compiler: str = "") -> None:
        super().__init__(
            {
                "element-wise": own,
                "matmul": products,
                "convolution": "cuDNN",
                "convolution-backward": "cuDNN",
                "training": "all of these together",
                "run-time-compilation": compiler,
            }
        )

    @abstractmethod
    def _tensor(self, values: Array) -> Any:
        """An array on the device."""

    @abstractmethod
    def _numbers(self, tensor: Any) -> Any:
        """The values of a tensor, row-major."""

    @abstractmethod
    def _is_here(self, tensor: Any) -> bool:
        """Whether a tensor was made on the device."""

    @abstractmethod
    def _convolve(self, images: Any, filters: Any) -> Any:
        """The convolution of three by three, with unchanged size."""

    @abstractmethod
    def _differentiated(self, function: Loss) -> Step:
        """``function``, which returns one number, with its gradients with respect to both arguments."""

    def _compiled(self, function: Callable[..., Any]) -> Any:
        """``function``, compiled as users of the framework would."""
        return function

    def _total(self, tensor: Any) -> Any:
        """The sum of all numbers."""
        return tensor.sum()

    def _rows(self, tensor: Any, count: int) -> Any:
        """A matrix of ``count`` rows."""
        return tensor.reshape((count, -1))

    def _different(self, left: Any, right: Any) -> int:
        """The number of differing values; only the count leaves the device."""
        return int((left != right).sum().item())

    def element_wise(self, left: Array, right: Array) -> Outcome:
        """Comes first: it uses no NVIDIA library except the runtime."""
        function = self._compiled(lambda a, b: self.exp(a) * b + a)
        return self.outcome(function(self._tensor(left), self._tensor(right)))

    def matmul(self, left: Array, right: Array) -> Outcome:
        """A product of two matrices."""
        return self.outcome(self._compiled(self.product)(self._tensor(left), self._tensor(right)))

    def convolution(self, images: Array, filters: Array) -> Outcome:
        """A convolution."""
        return self.outcome(self._compiled(self._convolve)(self._tensor(images), self._tensor(filters)))

    def convolution_backward(self, images: Array, filters: Array, upstream: Array) -> Outcome:
        """Both gradients, of one number: with an explicit gradient, PyTorch loads its symbolic shapes for seconds."""
        slope = self._tensor(upstream)
        step = self._differentiated(lambda a, b: self._total(self._convolve(a, b) * slope))
        return self.outcome(*step(self._tensor(images), self._tensor(filters))[1])

    def training(self, lesson: Lesson) -> Outcome:
        """Gradient descent, written out: an optimizer of PyTorch first loads its compiler, for seconds."""
        images, targets = self._tensor(lesson.images), self._tensor(lesson.targets)

        def loss(filters: Any, weights: Any) -> Any:
            hidden = self._rows(self.relu(self._convolve(images, filters)), lesson.images.shape[0])
            return (1 / lesson.targets.shape[0]) * self._total((self.product(hidden, weights) - targets) ** 2)

        step = self._differentiated(loss)
        filters, weights = self._tensor(lesson.filters), self._tensor(lesson.weights)
        losses = []
        for _ in range(lesson.steps + 1):
            value, slopes = step(filters, weights)
            losses.append(value)
            filters, weights = filters - lesson.rate * slopes[0], weights - lesson.rate * slopes[1]
        return self.outcome(*losses)

    def products(self, left: Array, right: Array) -> Callable[[], int]:
        """Products that stay on the device."""
        a, b = self._tensor(left), self._tensor(right)
        product = self._compiled(self.product)
        first = product(a, b)
        return lambda: self._different(product(a, b), first)

    def outcome(self, *results: Any) -> Outcome:
        """The results, read back from the device."""
        return Outcome([number for it in results for number in self._numbers(it)], all(map(self._is_here, results)))
