"""The reference results are checked against values computed by hand, finite differences and numpy."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import pytest

from envsolve.validation.inside import operations, reference
from envsolve.validation.inside.reference import Array, compare, numbers

STEP = 1e-5


def test_inputs_are_the_same_everywhere_and_exact_in_float32() -> None:
    made = numbers((20011,), 1)
    assert made.numbers[:3] == [0.6384140253067017, 0.19258929789066315, 0.21890053153038025]
    assert all(struct.unpack("f", struct.pack("f", it))[0] == it for it in made.numbers)
    assert -1 <= min(made.numbers) < -0.99
    assert 0.99 < max(made.numbers) <= 1
    assert len(set(made.numbers)) > 19_900


def test_a_product_of_matrices_worked_out_by_hand() -> None:
    left, right = Array((2, 3), [1, 2, 3, 4, 5, 6]), Array((3, 2), [7, 8, 9, 10, 11, 12])
    assert reference.matmul(left, right) == [58, 64, 139, 154]


def test_element_wise_worked_out_by_hand() -> None:
    assert reference.element_wise(Array((2,), [0, 1]), Array((2,), [3, 2])) == [3, 2 * math.e + 1]


def test_a_convolution_worked_out_by_hand() -> None:
    image = Array((1, 1, 3, 3), [1, 2, 3, 4, 5, 6, 7, 8, 9])
    only_right_neighbour = Array((1, 1, 3, 3), [0, 0, 0, 0, 0, 1, 0, 0, 0])
    assert reference.convolution(image, only_right_neighbour) == [2, 3, 0, 5, 6, 0, 8, 9, 0]
    everything = Array((1, 1, 3, 3), [1.0] * 9)
    assert reference.convolution(image, everything) == [12, 21, 16, 27, 45, 33, 24, 39, 28]


def test_a_convolution_adds_the_channels_of_one_image_and_keeps_images_apart() -> None:
    images = Array((2, 2, 1, 1), [1, 10, 100, 1000])
    filters = Array((3, 2, 1, 1), [1, 0, 0, 1, 2, 3])
    assert reference.convolution(images, filters) == [1, 10, 32, 100, 1000, 3200]


@pytest.mark.thorough
def test_gradients_of_a_convolution_agree_with_finite_differences() -> None:
    images, filters, upstream = numbers((2, 3, 4, 5), 1), numbers((2, 3, 3, 3), 2), numbers((2, 2, 4, 5), 3)

    def total(images: Array, filters: Array) -> float:
        return reference.dot(reference.convolution(images, filters), upstream.numbers)

    gradient = reference.convolution_backward(images, filters, upstream)
    wanted = [
        *_differences(images, lambda it: total(it, filters)),
        *_differences(filters, lambda it: total(images, it)),
    ]
    assert gradient == pytest.approx(wanted, abs=1e-6)


def test_a_training_step_goes_against_the_gradient_of_the_loss() -> None:
    lesson = operations.lesson()._replace(images=numbers((2, 1, 4, 4), 1), targets=numbers((2, 1), 2), steps=1)
    lesson = lesson._replace(filters=numbers((2, 1, 3, 3), 3), weights=numbers((32, 1), 4))

    def loss(filters: Array, weights: Array) -> float:
        return reference.training(lesson._replace(filters=filters, weights=weights, steps=0))[0]

    to_filters = list(_differences(lesson.filters, lambda it: loss(it, lesson.weights)))
    to_weights = list(_differences(lesson.weights, lambda it: loss(lesson.filters, it)))
    after = loss(
        reference.descended(lesson.filters, to_filters, lesson.rate),
        reference.descended(lesson.weights, to_weights, lesson.rate),
    )
    assert reference.training(lesson) == pytest.approx([loss(lesson.filters, lesson.weights), after], rel=1e-7)


def test_training_lowers_the_loss_clearly_without_relu_edges() -> None:
    lesson = operations.lesson()
    losses = reference.training(lesson)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 10
    before = reference.convolution(lesson.images, lesson.filters)
    assert min(map(abs, before)) > 1e-5


@pytest.mark.thorough
@pytest.mark.parametrize("operation", operations.OPERATIONS, ids=lambda it: it.name)
def test_rounding_of_float32_passes(operation: operations.Operation) -> None:
    wanted = list(operation.wanted(*operation.inputs()))
    assert compare(reference.float32(wanted), wanted, operation.tolerance).ok


@pytest.mark.parametrize("name", ["matmul", "convolution"])
def test_rounding_of_tf32_fails(name: str) -> None:
    operation = next(it for it in operations.OPERATIONS if it.name == name)
    inputs = operation.inputs()
    rounded = [Array(it.shape, [_tf32(number) for number in it.numbers]) for it in inputs]
    difference = compare(operation.wanted(*rounded), operation.wanted(*inputs))
    assert not difference.ok
    assert difference.max_error is not None
    assert 1e-4 < difference.max_error < 5e-3


@pytest.mark.parametrize(
    ("result", "max_error", "wrong"),
    [
        ([1.0, -2.0, 4.0], 0.0, 0),
        ([1.0003, -2.0, 4.0], 7.5e-5, 0),
        ([1.0, -2.0, 4.1], 0.025, 1),
        ([1.0, math.nan, 4.0], None, 1),
        ([math.inf, -2.0, -math.inf], None, 2),
        ([1.0, -2.0], None, 3),
        ([], None, 3),
    ],
)
def test_differences_are_counted_and_nan_is_never_correct(
    result: list[float], max_error: float | None, wrong: int
) -> None:
    difference = compare(result, [1.0, -2.0, 4.0])
    assert difference.wrong == wrong
    assert difference.max_error == (None if max_error is None else pytest.approx(max_error))


def test_a_reference_of_zeros_only_passes_zeros() -> None:
    assert compare([0.0, 0.0], [0.0, 0.0]).ok
    assert compare([0.0, 0.1], [0.0, 0.0]).wrong == 1


def test_numpy_agrees() -> None:
    np = pytest.importorskip("numpy")
    images, filters, upstream = numbers((2, 3, 5, 6), 1), numbers((4, 3, 3, 3), 2), numbers((2, 4, 5, 6), 3)
    x, w, g = (np.array(it.numbers).reshape(it.shape) for it in (images, filters, upstream))
    seen = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    forward = np.einsum("bchwij,ocij->bohw", seen, w)
    to_filters = np.einsum("bchwij,bohw->ocij", seen, g)
    assert reference.convolution(images, filters) == pytest.approx(forward.reshape(-1).tolist())
    made = reference.convolution_backward(images, filters, upstream)
    assert made[-to_filters.size :] == pytest.approx(to_filters.reshape(-1).tolist())
    left, right = numbers((7, 9), 4), numbers((9, 5), 5)
    product = np.array(left.numbers).reshape(7, 9) @ np.array(right.numbers).reshape(9, 5)
    assert reference.matmul(left, right) == pytest.approx(product.reshape(-1).tolist())


def _differences(values: Array, function: Callable[[Array], float]) -> list[float]:
    """The central difference of ``function`` for each number of ``values``."""
    slopes = []
    for place in range(len(values.numbers)):
        up, down = list(values.numbers), list(values.numbers)
        up[place] += STEP
        down[place] -= STEP
        slopes.append((function(Array(values.shape, up)) - function(Array(values.shape, down))) / (2 * STEP))
    return slopes


def _tf32(number: float) -> float:
    """``number`` with the first ten mantissa bits, which TF32 keeps, rounded to nearest."""
    bits = struct.unpack("I", struct.pack("f", number))[0]
    rounded: float = struct.unpack("f", struct.pack("I", (bits + 0x1000) & 0xFFFFE000))[0]
    return rounded
