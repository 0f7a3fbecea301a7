"""JAX. With a platform set it fails if that is not available; otherwise it takes the CPU and says so in a log."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
from typing import Any, Callable, Dict

from . import operations
from .channel import Channel
from .framework import Framework, NoDeviceError, Outcome
from .reference import Array, Lesson

PLATFORMS = {"cuda": ("gpu", "cuda"), "cpu": ("cpu",)}
"""What JAX calls the platform of a device."""
OLD_KERNELS = ("cuda", "cublas_kernels.so", "cusolver_kernels.so")
"""In the folder of jaxlib, before the code for CUDA became a plugin."""

PROVES = {
    "element-wise": "XLA",
    "matmul": "XLA, which takes cuBLAS or a kernel of its own",
    "convolution": "cuDNN",
    "convolution-backward": "cuDNN",
    "training": "all of these together",
}


def probe(job: Dict[str, object], channel: Channel) -> Dict[str, object]:
    """Run the operations with JAX."""
    return operations.run(job, channel, "jax", Jax)


class Jax(Framework):
    """JAX with its jaxlib. Each operation is compiled by XLA as a whole, as users' functions are."""

    def __init__(self, device: str) -> None:
        super().__init__(PROVES)
        os.environ["JAX_PLATFORMS"] = device
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # the GPU may be in use
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
        import jax
        import numpy  # noqa: ICN001 - kept as an attribute

        self.numpy: Any = numpy
        self.jax: Any = jax
        self.version = str(jax.__version__)
        self.cpu_build = not has_cuda()
        self.built_cuda = None if self.cpu_build else built_cuda()
        self.device: Any = None

    def open(self, device: str, index: int) -> str:
        """The device; TF32 is off by the precision that each operation is asked for."""
        try:
            devices = self.jax.devices()
        except AssertionError as error:  # without a word, of xla_bridge.backends
            text = "JAX left CUDA out: its plugin did not start, or there is no device file of a GPU"
            raise NoDeviceError(text) from error
        if index >= len(devices) or devices[0].platform not in PLATFORMS[device]:
            text = "JAX lists {}".format(", ".join(map(str, devices)) or "no devices")
            raise NoDeviceError(text)
        self.device = devices[index]
        return "CPU" if device == "cpu" else str(self.device.device_kind)

    def element_wise(self, left: Array, right: Array) -> Outcome:
        """Code that XLA makes for this GPU."""
        exp = self.jax.numpy.exp
        return self._outcome(self.jax.jit(lambda a, b: exp(a) * b + a)(self._array(left), self._array(right)))

    def matmul(self, left: Array, right: Array) -> Outcome:
        """A product of two matrices."""
        return self._outcome(self.jax.jit(self._product)(self._array(left), self._array(right)))

    def convolution(self, images: Array, filters: Array) -> Outcome:
        """A convolution."""
        return self._outcome(self.jax.jit(self._convolve)(self._array(images), self._array(filters)))

    def convolution_backward(self, images: Array, filters: Array, upstream: Array) -> Outcome:
        """Both gradients, by automatic differentiation."""

        def total(a: Any, b: Any, slope: Any) -> Any:
            return (self._convolve(a, b) * slope).sum()

        gradients = self.jax.jit(self.jax.grad(total, argnums=(0, 1)))
        return self._outcome(*gradients(self._array(images), self._array(filters), self._array(upstream)))

    def training(self, lesson: Lesson) -> Outcome:
        """Gradient descent, one compiled function for loss and gradients."""
        images, targets = self._array(lesson.images), self._array(lesson.targets)
        filters, weights = self._array(lesson.filters), self._array(lesson.weights)

        def loss(filters: Any, weights: Any) -> Any:
            hidden = self.jax.nn.relu(self._convolve(images, filters)).reshape(images.shape[0], -1)
            return ((self._product(hidden, weights) - targets) ** 2).mean()

        step = self.jax.jit(self.jax.value_and_grad(loss, argnums=(0, 1)))
        losses = []
        for _ in range(lesson.steps + 1):
            value, slopes = step(filters, weights)
            losses.append(value)
            filters, weights = filters - lesson.rate * slopes[0], weights - lesson.rate * slopes[1]
        return self._outcome(*losses)

    def products(self, left: Array, right: Array) -> Callable[[], int]:
        """Products that stay on the device; only the count comes back."""
        a, b = self._array(left), self._array(right)
        product = self.jax.jit(self._product)
        first = product(a, b)
        return lambda: int((product(a, b) != first).sum())

    def _product(self, left: Any, right: Any) -> Any:
        return self.jax.numpy.matmul(left, right, precision=self.jax.lax.Precision.HIGHEST)

    def _convolve(self, images: Any, filters: Any) -> Any:
        padding = ((1, 1), (1, 1))
        return self.jax.lax.conv_general_dilated(
            images, filters, (1, 1), padding, precision=self.jax.lax.Precision.HIGHEST
        )

    def _array(self, values: Array) -> Any:
        return self.jax.device_put(self.numpy.array(values.numbers, "float32").reshape(values.shape), self.device)

    def _outcome(self, *results: Any) -> Outcome:
        numbers = [number for it in results for number in self.numpy.asarray(it).reshape(-1).tolist()]
        return Outcome(numbers, all(map(self._is_here, results)))

    def _is_here(self, result: Any) -> bool:
        devices = result.devices() if hasattr(result, "devices") else {result.device()}  # devices() came with 0.4
        return set(devices) == {self.device}


def has_cuda() -> bool:
    """Whether JAX has code for CUDA: a plugin (of pip or conda), or in jaxlib itself, as in its earlier wheels."""
    plugins = importlib.util.find_spec("jax_plugins")
    places = list(plugins.submodule_search_locations or ()) if plugins is not None else []
    if any(module.name.startswith("xla_cuda") for module in pkgutil.iter_modules(places)):
        return True
    jaxlib = importlib.util.find_spec("jaxlib")
    folders = list(jaxlib.submodule_search_locations or ()) if jaxlib is not None else []
    return any(os.path.exists(os.path.join(folder, name)) for folder in folders for name in OLD_KERNELS)


def built_cuda() -> str | None:
    """The CUDA that the plugin was built with, 12.9 of 12090; its module needs CUDA's libraries to load."""
    try:
        from jax._src.lib import cuda_versions

        number = int(cuda_versions.cuda_runtime_build_version())
    except Exception:
        return None
    return "{}.{}".format(number // 1000, number % 1000 // 10)
