"""CuPy, which compiles its kernels when they are first needed, so it depends on NVRTC and its headers like on cuBLAS.

It has neither a CPU side nor gradients. Its bindings of cuDNN ended with CuPy 13, so no convolution here uses cuDNN:
the one below is our own kernel, and tests that users' kernels compile and run.
"""

from __future__ import annotations

import os
from typing import Any, Callable

from . import operations
from .framework import Framework, Outcome, UnsupportedError
from .reference import Array

THREADS = 128
CONVOLUTION = r"""
extern "C" __global__ void convolve(const float* images, const float* filters, float* result, int batch, int channels,
                                    int height, int width, int outputs, int rows, int columns) {
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= batch * outputs * height * width) return;
    int x = place % width, y = place / width % height;
    int output = place / (width * height) % outputs, image = place / (width * height * outputs);
    float sum = 0;
    for (int channel = 0; channel < channels; ++channel)
        for (int row = 0; row < rows; ++row)
            for (int column = 0; column < columns; ++column) {
                int v = y + row - rows / 2, u = x + column - columns / 2;
                if (v < 0 || v >= height || u < 0 || u >= width) continue;
                sum += images[((image * channels + channel) * height + v) * width + u]
                     * filters[((output * channels + channel) * rows + row) * columns + column];
            }
    result[place] = sum;
}
"""

PROVES = {
    "element-wise": "NVRTC, with CuPy's headers",
    "matmul": "cuBLAS",
    "convolution": "NVRTC, a kernel of one's own (CuPy has no cuDNN)",
}


class CuPy(Framework):
    """CuPy, from 8 on."""

    def __init__(self, device: str) -> None:
        super().__init__(PROVES)
        os.environ["CUPY_CACHE_IN_MEMORY"] = "1"  # kernels compiled earlier prove nothing
        os.environ["CUPY_TF32"] = "0"
        if device == "cpu":
            raise UnsupportedError("CuPy runs on GPUs only")
        import cupy

        self.cupy: Any = cupy
        self.version = str(cupy.__version__)
        number = int(cupy.cuda.driver.get_build_version())
        self.built_cuda = "{}.{}".format(number // 1000, number % 1000 // 10)
        self.device: Any = None

    def open(self, device: str, index: int) -> str:
        """The GPU."""
        runtime = self.cupy.cuda.runtime
        runtime.getDeviceCount()  # raises the driver's error
        self.device = self.cupy.cuda.Device(index)
        self.device.use()
        name = runtime.getDeviceProperties(index)["name"]
        return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)

    def element_wise(self, left: Array, right: Array) -> Outcome:
        """One kernel, compiled for this."""
        kernel = self.cupy.ElementwiseKernel(
            "float32 a, float32 b", "float32 result", "result = expf(a) * b + a", "envsolve_element_wise"
        )
        return self._outcome(kernel(self._array(left), self._array(right)))

    def matmul(self, left: Array, right: Array) -> Outcome:
        """A product of two matrices."""
        return self._outcome(self.cupy.matmul(self._array(left), self._array(right)))

    def convolution(self, images: Array, filters: Array) -> Outcome:
        """A kernel in CUDA C++."""
        batch, channels, height, width = images.shape
        outputs, _, rows, columns = filters.shape
        result = self.cupy.empty((batch, outputs, height, width), "float32")
        sizes = [self.cupy.int32(it) for it in (batch, channels, height, width, outputs, rows, columns)]
        blocks = (result.size + THREADS - 1) // THREADS
        kernel = self.cupy.RawKernel(CONVOLUTION, "convolve")
        kernel((blocks,), (THREADS,), (self._array(images), self._array(filters), result, *sizes))
        return self._outcome(result)

    def products(self, left: Array, right: Array) -> Callable[[], int]:
        """Products that stay on the device; only the count is read back."""
        a, b = self._array(left), self._array(right)
        first = self.cupy.matmul(a, b)
        return lambda: int((self.cupy.matmul(a, b) != first).sum())

    def _array(self, values: Array) -> Any:
        return self.cupy.array(values.numbers, "float32").reshape(values.shape)

    def _outcome(self, result: Any) -> Outcome:
        return Outcome(self.cupy.asnumpy(result).reshape(-1).tolist(), result.device == self.device)


probe = operations.probe_of(CuPy)
