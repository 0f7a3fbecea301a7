"""TensorFlow, eager. Without soft placement an operation without a kernel for its device fails instead of moving.

TensorFlow only says on stderr why there is no GPU, so stderr is not silenced here.

Functions with ``jit_compile``, as those of Keras if it is left to its default, are compiled by XLA with libdevice and
ptxas or nvJitLink, which nothing else of TensorFlow needs.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Sequence, Tuple

from . import operations
from .framework import Loss, NoDeviceError, Outcome, Step, TensorFramework, UnsupportedError
from .reference import Array

TO_NHWC = (0, 2, 3, 1)
TO_NCHW = (0, 3, 1, 2)
TO_HWIO = (2, 3, 1, 0)


class TensorFlow(TensorFramework):
    """TensorFlow, since 1.14. Convolutions are NHWC, which its CPU kernels support too."""

    def __init__(self, _device: str) -> None:
        super().__init__("TensorFlow's own kernels", compiler="XLA, with libdevice and ptxas")
        os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # the GPU may be in use
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
        import numpy  # noqa: ICN001 - kept as an attribute
        import tensorflow  # noqa: ICN001 - as above

        if not hasattr(tensorflow, "config"):
            text = "TensorFlow {} is older than 1.14".format(tensorflow.__version__)
            raise UnsupportedError(text)
        self.numpy: Any = numpy
        self.tf: Any = tensorflow
        self.exp, self.relu, self.product = tensorflow.exp, tensorflow.nn.relu, tensorflow.matmul
        self.version = str(tensorflow.__version__)
        self.cpu_build = not tensorflow.test.is_built_with_cuda()
        self.built_cuda = None if self.cpu_build else self._built_cuda()
        self.place = ""

    def open(self, device: str, index: int) -> str:
        """Use the device: as the only GPU that TensorFlow sees, or without any GPU."""
        tf = self.tf
        if not tf.executing_eagerly():
            tf.compat.v1.enable_eager_execution()  # 1.x
        config = tf.config.experimental
        gpus = config.list_physical_devices("GPU")
        tf.config.set_soft_device_placement(False)
        if device == "cpu":
            config.set_visible_devices([], "GPU")
            self.place = "/CPU:0"
            return "CPU"
        if index >= len(gpus):
            text = "TensorFlow lists {} GPUs".format(len(gpus))
            raise NoDeviceError(text)
        config.set_visible_devices(gpus[index], "GPU")
        if hasattr(config, "enable_tensor_float_32_execution"):  # since 2.4, the first release with TF32
            config.enable_tensor_float_32_execution(False)
        self.place = "/GPU:0"
        return self._name(gpus[index])

    def run_time_compilation(self, values: Array) -> Outcome:
        """A power in XLA, which takes the function from libdevice."""
        if [int(it) for it in self.version.split(".")[:2]] < [2, 5]:
            raise UnsupportedError("TensorFlow before 2.5 has no jit_compile")
        function = self.tf.function(lambda it: self.tf.pow(2.0, it), jit_compile=True)
        return self.outcome(self._compiled(function)(self._tensor(values)))

    def _tensor(self, values: Array) -> Any:
        with self.tf.device(self.place):
            return self.tf.constant(self.numpy.array(values.numbers, "float32").reshape(values.shape))

    def _numbers(self, tensor: Any) -> Any:
        return tensor.numpy().reshape(-1).tolist()

    def _is_here(self, tensor: Any) -> bool:
        if not tensor.device.endswith(self.place[1:]):  # /job:localhost/replica:0/task:0/device:GPU:0
            return False
        if self.place == "/CPU:0" or not hasattr(self.tf.config.experimental, "get_memory_info"):  # since 2.5
            return True
        return int(self.tf.config.experimental.get_memory_info("GPU:0")["peak"]) > 0

    def _convolve(self, images: Any, filters: Any) -> Any:
        turned = self.tf.transpose(images, TO_NHWC), self.tf.transpose(filters, TO_HWIO)
        made = self.tf.nn.conv2d(*turned, strides=(1, 1, 1, 1), padding="SAME")
        return self.tf.transpose(made, TO_NCHW)

    def _compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def placed(*tensors: Any) -> Any:
            with self.tf.device(self.place):
                return function(*tensors)

        return placed

    def _differentiated(self, function: Loss) -> Step:
        def run(*leaves: Any) -> Tuple[Any, Sequence[Any]]:
            with self.tf.GradientTape() as tape:
                tape.watch(leaves)
                value = function(*leaves)
            return value, tape.gradient(value, leaves)

        return self._compiled(run)

    def _total(self, tensor: Any) -> Any:
        return self.tf.reduce_sum(tensor)

    def _rows(self, tensor: Any, count: int) -> Any:
        return self.tf.reshape(tensor, (count, -1))

    def _different(self, left: Any, right: Any) -> int:
        with self.tf.device(self.place):  # as float32: on a GPU, sums of int32 run on the CPU
            return int(self.tf.reduce_sum(self.tf.cast(self.tf.not_equal(left, right), self.tf.float32)).numpy())

    def _built_cuda(self) -> str | None:
        if not hasattr(self.tf.sysconfig, "get_build_info"):  # since 2.3
            return None
        version = self.tf.sysconfig.get_build_info().get("cuda_version")
        return None if version is None else str(version)

    def _name(self, gpu: Any) -> str:
        if not hasattr(self.tf.config.experimental, "get_device_details"):  # since 2.4
            return str(gpu.name)
        return str(self.tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name))


probe = operations.probe_of(TensorFlow)
