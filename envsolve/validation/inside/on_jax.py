"""JAX. With an explicit platform it fails if that is not available; otherwise it uses the CPU and only logs that."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
from typing import Any, Callable

from . import operations
from .framework import Loss, NoDeviceError, TensorFramework
from .reference import Array

PLATFORMS = {"cuda": ("gpu", "cuda"), "cpu": ("cpu",)}
"""JAX's names for the platform of a device."""
OLD_KERNELS = ("cuda", "cublas_kernels.so", "cusolver_kernels.so")
"""In the folder of jaxlib, before the code for CUDA became a plugin."""


class Jax(TensorFramework):
    """JAX with its jaxlib. Each operation is compiled by XLA as a whole, as users' functions are."""

    def __init__(self, device: str) -> None:
        super().__init__("XLA", "XLA, which takes cuBLAS or a kernel of its own")
        os.environ["JAX_PLATFORMS"] = device
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # the GPU may be in use
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
        import jax
        import numpy  # noqa: ICN001 - kept as an attribute

        self.numpy: Any = numpy
        self.jax: Any = jax
        self.exp, self.relu, self.product = jax.numpy.exp, jax.nn.relu, self._product
        self.version = str(jax.__version__)
        self.cpu_build = not has_cuda()
        self.built_cuda = None if self.cpu_build else built_cuda()
        self.device: Any = None

    def open(self, device: str, index: int) -> str:
        """Use the device; the precision of each operation turns TF32 off."""
        try:
            devices = self.jax.devices()
        except AssertionError as error:  # xla_bridge.backends raises it without a message
            text = "JAX left CUDA out: its plugin did not start, or there is no device file of a GPU"
            raise NoDeviceError(text) from error
        if index >= len(devices) or devices[0].platform not in PLATFORMS[device]:
            text = "JAX lists {}".format(", ".join(map(str, devices)) or "no devices")
            raise NoDeviceError(text)
        self.device = devices[index]
        return "CPU" if device == "cpu" else str(self.device.device_kind)

    def _tensor(self, values: Array) -> Any:
        return self.jax.device_put(self.numpy.array(values.numbers, "float32").reshape(values.shape), self.device)

    def _numbers(self, tensor: Any) -> Any:
        return self.numpy.asarray(tensor).reshape(-1).tolist()

    def _is_here(self, tensor: Any) -> bool:
        devices = tensor.devices() if hasattr(tensor, "devices") else {tensor.device()}  # devices() was added in 0.4
        return set(devices) == {self.device}

    def _product(self, left: Any, right: Any) -> Any:
        return self.jax.numpy.matmul(left, right, precision=self.jax.lax.Precision.HIGHEST)

    def _convolve(self, images: Any, filters: Any) -> Any:
        padding = ((1, 1), (1, 1))
        return self.jax.lax.conv_general_dilated(
            images, filters, (1, 1), padding, precision=self.jax.lax.Precision.HIGHEST
        )

    def _compiled(self, function: Callable[..., Any]) -> Any:
        return self.jax.jit(function)

    def _differentiated(self, function: Loss) -> Any:
        return self._compiled(self.jax.value_and_grad(function, argnums=(0, 1)))


def has_cuda() -> bool:
    """Whether JAX has code for CUDA: a plugin (of pip or conda), or in jaxlib itself, as in earlier wheels."""
    plugins = importlib.util.find_spec("jax_plugins")
    places = list(plugins.submodule_search_locations or ()) if plugins is not None else []
    if any(module.name.startswith("xla_cuda") for module in pkgutil.iter_modules(places)):
        return True
    jaxlib = importlib.util.find_spec("jaxlib")
    folders = list(jaxlib.submodule_search_locations or ()) if jaxlib is not None else []
    return any(os.path.exists(os.path.join(folder, name)) for folder in folders for name in OLD_KERNELS)


def built_cuda() -> str | None:
    """The CUDA that the plugin was built with, 12.9 from 12090; its module needs CUDA's libraries to load."""
    try:
        from jax._src.lib import cuda_versions

        number = int(cuda_versions.cuda_runtime_build_version())
    except Exception:
        return None
    return "{}.{}".format(number // 1000, number % 1000 // 10)


probe = operations.probe_of(Jax)
