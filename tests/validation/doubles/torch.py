"""A PyTorch that simulates a GPU and does what ENVSOLVE_TEST_TORCH names; as much of it as the probe uses.

It computes with the probe's own reference: what it is for are its faults, and that right answers pass. On import it
loads the libraries that ENVSOLVE_TEST_LOADS names.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from envsolve.validation.inside import reference
from envsolve.validation.inside.reference import Array

FAULT = os.environ.get("ENVSOLVE_TEST_TORCH", "")
NO_KERNEL = "CUDA error: no kernel image is available for execution on the device"
__version__ = "2.13.0"
version = SimpleNamespace(cuda=None if FAULT == "cpu-build" else "12.6")
float32 = "float32"
if FAULT == "library-missing":
    raise ImportError("libcudart.so.12: cannot open shared object file: No such file or directory")
for library in os.environ.get("ENVSOLVE_TEST_LOADS", "").split():
    ctypes.CDLL(library)

Backward = Callable[[list[float]], list[float]]


@dataclass(frozen=True)
class device:  # noqa: N801 - PyTorch's name
    type: str
    index: int = 0


class Tensor:
    """Numbers, and how gradients propagate through them."""

    def __init__(
        self,
        shape: Sequence[int],
        numbers: Sequence[float],
        where: device,
        came: Sequence[tuple[Tensor, Backward]] = (),
    ) -> None:
        self.shape = tuple(shape)
        self.numbers = reference.float32(numbers)
        self.device = where
        self.came = came
        self.gradient: list[float] = []

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def made(
        self, numbers: Sequence[float], *came: tuple[Tensor, Backward], shape: Sequence[int] | None = None
    ) -> Tensor:
        where = device("cpu") if FAULT == "runs-on-cpu" else self.device
        return Tensor(self.shape if shape is None else shape, numbers, where, came)

    def reshape(self, *shape: Any) -> Tensor:
        wanted = list(shape[0]) if isinstance(shape[0], tuple) else list(shape)
        if -1 in wanted:
            wanted[wanted.index(-1)] = len(self.numbers) // abs(math.prod(wanted))
        return self.made(self.numbers, (self, list), shape=wanted)

    def __add__(self, other: Tensor) -> Tensor:
        return self.made([a + b for a, b in zip(self.numbers, other.numbers, strict=True)], (self, list), (other, list))

    def __mul__(self, other: Tensor) -> Tensor:
        return self.made(
            [a * b for a, b in zip(self.numbers, other.numbers, strict=True)],
            (self, lambda up: [a * b for a, b in zip(up, other.numbers, strict=True)]),
            (other, lambda up: [a * b for a, b in zip(up, self.numbers, strict=True)]),
        )

    def __rmul__(self, factor: float) -> Tensor:
        return self.made([factor * it for it in self.numbers], (self, lambda up: [factor * it for it in up]))

    def __sub__(self, other: Tensor) -> Tensor:
        return self + -1.0 * other

    def __pow__(self, power: int) -> Tensor:
        assert power == 2
        return self * self

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        assert isinstance(other, Tensor)
        return self.made([float(a != b) for a, b in zip(self.numbers, other.numbers, strict=True)])

    def sum(self) -> Tensor:
        return self.made([math.fsum(self.numbers)], (self, lambda up: up * len(self.numbers)), shape=())

    def mean(self) -> Tensor:
        return (1 / len(self.numbers)) * self.sum()

    def requires_grad_(self) -> Tensor:
        return self

    def detach(self) -> Tensor:
        return Tensor(self.shape, self.numbers, self.device)

    def cpu(self) -> Tensor:
        return Tensor(self.shape, self.numbers, device("cpu"))

    def tolist(self) -> list[float]:
        return self.numbers

    def item(self) -> float:
        return self.numbers[0]

    def half(self) -> Tensor:
        return self.made(self.numbers)

    def float(self) -> Tensor:
        return self.made(self.numbers)

    def new_empty(self, shape: Sequence[int]) -> Tensor:
        return self.made([math.nan] * math.prod(shape), shape=shape)

    def as_array(self) -> Array:
        return Array(self.shape, self.numbers)


def tensor(numbers: list[float], *, dtype: str, device: device) -> Tensor:
    return Tensor((len(numbers),), numbers, device)


def exp(values: Tensor) -> Tensor:
    if FAULT == "no-kernel":
        raise RuntimeError(NO_KERNEL)
    if FAULT == "out-of-memory":
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 MiB")
    return values.made([math.exp(it) for it in values.numbers])


def exp2(values: Tensor) -> Tensor:
    assert os.environ["USE_PYTORCH_KERNEL_CACHE"] == "0"
    if FAULT == "no-nvrtc":
        raise RuntimeError("Error in dlopen for library libnvrtc.so.13and libnvrtc-a49e67e8.so.13")
    if FAULT == "nvrtc":
        raise RuntimeError("template <typename T> T kernel() {}\n" * 500 + "an internal error, without further words")
    if FAULT == "no-kernel":
        raise RuntimeError(NO_KERNEL)
    return values.made([2.0**it for it in values.numbers])


def relu(values: Tensor) -> Tensor:
    return values.made(
        [max(it, 0.0) for it in values.numbers],
        (values, lambda up: [a if b > 0 else 0.0 for a, b in zip(up, values.numbers, strict=True)]),
    )


def matmul(left: Tensor, right: Tensor) -> Tensor:
    if FAULT in {"no-kernel", "cublas"}:
        raise RuntimeError(NO_KERNEL if FAULT == "no-kernel" else "an internal error, without further words")
    rows, columns = left.shape[0], right.shape[1]
    numbers = reference.matmul(left.as_array(), right.as_array())
    if FAULT == "wrong-matmul":
        numbers[7] += 0.1
    sign = -1.0 if FAULT == "learns-backwards" else 1.0

    def to_left(up: list[float]) -> list[float]:
        return [sign * it for it in reference.matmul(Array((rows, columns), up), transposed(right.as_array()))]

    def to_right(up: list[float]) -> list[float]:
        return [sign * it for it in reference.matmul(transposed(left.as_array()), Array((rows, columns), up))]

    return left.made(numbers, (left, to_left), (right, to_right), shape=(rows, columns))


def transposed(values: Array) -> Array:
    rows, columns = values.shape
    return Array((columns, rows), [values.numbers[row * columns + it] for it in range(columns) for row in range(rows)])


def conv2d(images: Tensor, filters: Tensor, *, padding: int) -> Tensor:
    assert padding == 1
    if FAULT in {"no-kernel", "no-kernel-in-cudnn"}:
        raise RuntimeError(NO_KERNEL)
    if FAULT == "cudnn":
        raise RuntimeError("an internal error, without further words")
    if FAULT == "crash-in-convolution":
        os.abort()
    numbers = reference.convolution(images.as_array(), filters.as_array())
    if FAULT == "nan-in-convolution":
        numbers[5] = math.nan
    shape = (images.shape[0], filters.shape[0], *images.shape[2:])

    def back(up: list[float]) -> list[float]:
        return reference.convolution_backward(images.as_array(), filters.as_array(), Array(shape, up))

    return images.made(
        numbers,
        (images, lambda up: back(up)[: len(images.numbers)]),
        (filters, lambda up: back(up)[len(images.numbers) :]),
        shape=shape,
    )


def grad(result: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    order: list[Tensor] = []
    seen: set[int] = set()

    def visit(it: Tensor) -> None:
        if id(it) not in seen:
            seen.add(id(it))
            for parent, _ in it.came:
                visit(parent)
            order.append(it)

    visit(result)
    for it in order:
        it.gradient = [0.0] * len(it.numbers)
    result.gradient = [1.0]
    for it in reversed(order):
        for parent, backward in it.came:
            parent.gradient = [a + b for a, b in zip(parent.gradient, backward(it.gradient), strict=True)]
    return [leaf.made(leaf.gradient) for leaf in leaves]


def _init() -> None:
    if FAULT == "no-driver":
        raise RuntimeError("Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU")


ops = SimpleNamespace()
nn = SimpleNamespace(functional=SimpleNamespace(conv2d=conv2d))
autograd = SimpleNamespace(grad=grad)
backends = SimpleNamespace(cudnn=SimpleNamespace(), cuda=SimpleNamespace(matmul=SimpleNamespace()))
cuda = SimpleNamespace(
    init=_init,
    set_device=lambda _: None,
    get_device_name=lambda _: "NVIDIA Imaginary",
    max_memory_allocated=lambda _: 0 if FAULT == "allocates-nothing" else 1024,
)
