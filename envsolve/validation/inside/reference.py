"""The reference for the operations of a framework: the same inputs everywhere, and float64 results in plain Python.

No framework checks itself or another one: numpy need not be installed, and a CPU run shares this code with a GPU run.
The sizes are large enough for the kernels of real work, and small enough for plain Python.

An array is a flat list in row-major order and its shape. Images are NCHW, filters OIHW. A convolution is the
cross-correlation, as in frameworks, with stride 1 and a border of zeros that keeps the size (filter sizes are odd).
"""

from __future__ import annotations

import array
import math
import operator
from typing import Iterator, List, NamedTuple, Sequence, Tuple

TOLERANCE = 1e-4
"""The largest allowed error, relative to the largest number of the result: between the error of float32 here (below
1e-6) and that of TF32 (about 3e-4), so that unrequested reduced precision is detected.
"""

Numbers = List[float]


class Array(NamedTuple):
    """Numbers that float32 holds exactly, and their shape."""

    shape: Tuple[int, ...]
    numbers: Numbers


class Difference(NamedTuple):
    """How far a result is from its reference."""

    max_error: float | None
    """The largest error relative to the largest number of the reference; None if a number is NaN."""
    wrong: int
    """How many numbers differ by more than the tolerance."""
    total: int

    @property
    def ok(self) -> bool:
        """Whether every number is within the tolerance."""
        return self.wrong == 0


class Lesson(NamedTuple):
    """A training of a small network: convolution, ReLU, one linear layer; mean squared error, gradient descent."""

    images: Array
    targets: Array
    filters: Array
    weights: Array
    rate: float
    steps: int


def numbers(shape: Sequence[int], seed: int) -> Array:
    """Pseudo-random numbers between -1 and 1 that are the same everywhere, using all bits of a float32.

    Multiples of the golden ratio modulo 1 are spread evenly; their squares scatter neighbours.
    """
    golden = (math.sqrt(5) - 1) / 2
    values = ((golden * (index * index + 31 * index + 977 * seed)) % 1.0 for index in range(product(shape)))
    return Array(tuple(shape), float32(2 * value - 1 for value in values))


def float32(values: Iterator[float] | Sequence[float]) -> Numbers:
    """``values`` rounded to float32."""
    return array.array("f", values).tolist()


def product(shape: Sequence[int]) -> int:
    """The number of elements in an array of this shape."""
    count = 1
    for size in shape:
        count *= size
    return count


def element_wise(left: Array, right: Array) -> Numbers:
    """exp(left) * right + left."""
    return [math.exp(a) * b + a for a, b in zip(left.numbers, right.numbers)]


def powers_of_two(values: Array) -> Numbers:
    """2 to the power of each number."""
    return [2.0**it for it in values.numbers]


def silu_and_mul(values: Array) -> Numbers:
    """SiLU of the left half of each row, left / (1 + exp(-left)), times the right half."""
    columns = values.shape[1]
    half = columns // 2
    rows = [values.numbers[start : start + columns] for start in range(0, len(values.numbers), columns)]
    return [a / (1 + math.exp(-a)) * b for row in rows for a, b in zip(row[:half], row[half:])]


def matmul(left: Array, right: Array) -> Numbers:
    """The product of two matrices."""
    inner, width = right.shape
    columns = [right.numbers[column::width] for column in range(width)]
    rows = [left.numbers[start : start + inner] for start in range(0, len(left.numbers), inner)]
    return [dot(row, column) for row in rows for column in columns]


def convolution(images: Array, filters: Array) -> Numbers:
    """The convolution, NCHW."""
    size = product(filters.shape[1:])
    kernels = [filters.numbers[start : start + size] for start in range(0, len(filters.numbers), size)]
    result = []
    for image in range(images.shape[0]):
        seen = windows(images, image, filters.shape[2:])
        result += [dot(kernel, window) for kernel in kernels for window in seen]
    return result


def convolution_backward(images: Array, filters: Array, upstream: Array) -> Numbers:
    """The gradients of ``sum(convolution * upstream)``: with respect to the images, then to the filters."""
    return convolution(upstream, mirrored(filters)) + filter_gradient(images, filters.shape, upstream)


def mirrored(filters: Array) -> Array:
    """The filters of the backward pass: inputs and outputs swapped, each filter rotated by half a turn."""
    outputs, inputs, height, width = filters.shape
    area = height * width
    turned = []
    for channel in range(inputs):
        for output in range(outputs):
            start = (output * inputs + channel) * area
            turned += filters.numbers[start : start + area][::-1]
    return Array((inputs, outputs, height, width), turned)


def filter_gradient(images: Array, shape: Sequence[int], upstream: Array) -> Numbers:
    """The gradient with respect to filters of this shape."""
    pixels = images.shape[2] * images.shape[3]
    total = [0.0] * product(shape)
    for image in range(images.shape[0]):
        columns = list(zip(*windows(images, image, shape[2:])))
        start = image * shape[0] * pixels
        planes = [upstream.numbers[start + it * pixels : start + (it + 1) * pixels] for it in range(shape[0])]
        part = [dot(plane, column) for plane in planes for column in columns]
        total = [a + b for a, b in zip(total, part)]
    return total


def windows(images: Array, image: int, area: Sequence[int]) -> List[Numbers]:
    """The inputs of a filter of ``area`` at each pixel of one image: its channels one after the other."""
    _, channels, height, width = images.shape
    rows, columns = area
    padded = [bordered(images, image, channel, rows // 2, columns // 2) for channel in range(channels)]
    return [
        [number for plane in padded for row in plane[top : top + rows] for number in row[left : left + columns]]
        for top in range(height)
        for left in range(width)
    ]


def bordered(images: Array, image: int, channel: int, above: int, beside: int) -> List[Numbers]:
    """The rows of one channel with a border of zeros."""
    _, channels, height, width = images.shape
    start = (image * channels + channel) * height * width
    empty = [0.0] * (width + 2 * beside)
    rows = [images.numbers[start + row * width : start + (row + 1) * width] for row in range(height)]
    edge = [0.0] * beside
    return [empty] * above + [edge + row + edge for row in rows] + [empty] * above


def training(lesson: Lesson) -> Numbers:
    """The loss before each step of gradient descent, and after the last."""
    losses = []
    for step in range(lesson.steps + 1):
        batch, channels = lesson.images.shape[0], lesson.filters.shape[0]
        shape = (batch, channels, *lesson.images.shape[2:])
        before = convolution(lesson.images, lesson.filters)
        hidden = [max(number, 0.0) for number in before]
        features = len(hidden) // batch
        errors = [
            made - wanted
            for made, wanted in zip(matmul(Array((batch, features), hidden), lesson.weights), lesson.targets.numbers)
        ]
        losses.append(dot(errors, errors) / batch)
        if step == lesson.steps:
            break
        outward = [2 * error / batch for error in errors]
        to_weights = [dot(outward, hidden[feature::features]) for feature in range(features)]
        to_hidden = [error * weight for error in outward for weight in lesson.weights.numbers]
        to_before = [slope if number > 0 else 0.0 for slope, number in zip(to_hidden, before)]
        to_filters = filter_gradient(lesson.images, lesson.filters.shape, Array(shape, to_before))
        lesson = lesson._replace(
            weights=descended(lesson.weights, to_weights, lesson.rate),
            filters=descended(lesson.filters, to_filters, lesson.rate),
        )
    return losses


def descended(values: Array, gradient: Numbers, rate: float) -> Array:
    """``values`` after one step of gradient descent."""
    return Array(values.shape, [value - rate * slope for value, slope in zip(values.numbers, gradient)])


def dot(left: Sequence[float], right: Sequence[float]) -> float:
    """The sum of the products."""
    total: float = sum(map(operator.mul, left, right))
    return total


def compare(result: Sequence[float], wanted: Sequence[float], tolerance: float = TOLERANCE) -> Difference:
    """The difference between ``result`` and ``wanted``; a result of another length is entirely wrong."""
    if len(result) != len(wanted):
        return Difference(None, len(wanted), len(wanted))
    scale = max(map(abs, wanted)) or 1.0
    errors = [abs(got - right) / scale for got, right in zip(result, wanted)]
    wrong = sum(1 for error in errors if not error <= tolerance)  # also true for NaN
    largest = max(errors) if all(map(math.isfinite, errors)) else None
    return Difference(largest, wrong, len(wanted))
