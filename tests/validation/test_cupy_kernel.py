"""The kernel of the probe for CuPy, compiled as C and run thread by thread: its arithmetic needs no GPU."""

from __future__ import annotations

import ctypes
from pathlib import Path

from envsolve.validation.inside import operations, reference
from envsolve.validation.inside.on_cupy import CONVOLUTION, THREADS
from envsolve.validation.inside.reference import Array, compare, numbers
from tests.validation.compiled import compiled

GRID = """
typedef struct { int x; } Place;
static Place blockIdx, blockDim, threadIdx;
#define __global__
%s
void run(int blocks, int threads, const float* images, const float* filters, float* result, const int* sizes) {
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
            convolve(images, filters, result, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6]);
}
"""


def convolved(library: ctypes.CDLL, images: Array, filters: Array) -> list[float]:
    batch, channels, height, width = images.shape
    outputs, _, rows, columns = filters.shape
    count = batch * outputs * height * width
    poisoned = (ctypes.c_float * (count + THREADS))(*[7e7] * (count + THREADS))
    sizes = (ctypes.c_int * 7)(batch, channels, height, width, outputs, rows, columns)
    library.run((count + THREADS - 1) // THREADS, THREADS, _floats(images), _floats(filters), poisoned, sizes)
    assert list(poisoned[count:]) == [7e7] * THREADS, "written past its end"
    return list(poisoned[:count])


def test_the_kernel_convolves(tmp_path: Path) -> None:
    source = GRID % CONVOLUTION.replace('extern "C" ', "")
    library = ctypes.CDLL(str(compiled(tmp_path / "libkernel.so", source)))
    for images, filters in (
        operations.convolution_inputs(),
        (numbers((3, 2, 5, 7), 1), numbers((4, 2, 5, 3), 2)),
    ):
        assert compare(convolved(library, images, filters), reference.convolution(images, filters), 1e-6).ok


def _floats(values: Array) -> ctypes.Array[ctypes.c_float]:
    return (ctypes.c_float * len(values.numbers))(*values.numbers)
