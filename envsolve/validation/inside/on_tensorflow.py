"""TensorFlow, eager. Without soft placement an operation that its device has no kernel for fails instead of moving.

TensorFlow says why there is no GPU on stderr only, so nothing of that is silenced here.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Sequence, Tuple

from . import operations
from .channel import Channel
from .framework import Framework, NoDeviceError, Outcome, UnsupportedError
from .reference import Array, Lesson

TO_NHWC = (0, 2, 3, 1)
TO_NCHW = (0, 3, 1, 2)
TO_HWIO = (2, 3, 1, 0)
TO_OIHW = (3, 2, 0, 1)

PROVES = {
    "element-wise": "TensorFlow's own kernels",
    "matmul": "cuBLAS",
    "convolution": "cuDNN",
    "convolution-backward": "cuDNN",
    "training": "all of these together",
}


def probe(job: Dict[str, object], channel: Channel) -> Dict[str, object]:
    """Run the operations with TensorFlow."""
    return operations.run(job, channel, "tensorflow", TensorFlow)


class TensorFlow(Framework):
    """TensorFlow, from 1.14 on. Images are NHWC inside, the order that its kernels for CPUs know too."""

    def __init__(self, _device: str) -> None:
        super().__init__(PROVES)
        os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # the GPU may be in use
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
        import numpy  # noqa: ICN001 - kept as an attribute
        import tensorflow  # noqa: ICN001 - as above

        if not hasattr(tensorflow, "config"):
            text = "TensorFlow {} is older than 1.14".format(tensorflow.__version__)
            raise UnsupportedError(text)
        self.numpy: Any = numpy
        self.tf: Any = tensorflow
        self.version = str(tensorflow.__version__)
        self.cpu_build = not tensorflow.test.is_built_with_cuda()
        self.built_cuda = None if self.cpu_build else self._built_cuda()
        self.place = ""

    def open(self, device: str, index: int) -> str:
        """The device, as the only GPU that TensorFlow sees, or with none in sight."""
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
        if hasattr(config, "enable_tensor_float_32_execution"):  # from 2.4 on, the first one with TF32
            config.enable_tensor_float_32_execution(False)
        self.place = "/GPU:0"
        return self._name(gpus[index])

    def element_wise(self, left: Array, right: Array) -> Outcome:
        """First of all operations: it goes through no library of NVIDIA's but the runtime."""
        with self.tf.device(self.place):
            a, b = self._tensor(left), self._tensor(right)
            return self._outcome((self.tf.exp(a) * b + a, None))

    def matmul(self, left: Array, right: Array) -> Outcome:
        """A product of two matrices."""
        with self.tf.device(self.place):
            return self._outcome((self.tf.matmul(self._tensor(left), self._tensor(right)), None))

    def convolution(self, images: Array, filters: Array) -> Outcome:
        """A convolution."""
        with self.tf.device(self.place):
            made = self._convolve(self._tensor(images, TO_NHWC), self._tensor(filters, TO_HWIO))
            return self._outcome((made, TO_NCHW))

    def convolution_backward(self, images: Array, filters: Array, upstream: Array) -> Outcome:
        """Both gradients, by automatic differentiation."""
        with self.tf.device(self.place):
            leaves = self._tensor(images, TO_NHWC), self._tensor(filters, TO_HWIO)
            with self.tf.GradientTape() as tape:
                tape.watch(leaves)
                made = self._convolve(*leaves)
            slopes = tape.gradient(made, leaves, output_gradients=self._tensor(upstream, TO_NHWC))
            return self._outcome((slopes[0], TO_NCHW), (slopes[1], TO_OIHW))

    def training(self, lesson: Lesson) -> Outcome:
        """Gradient descent written out; Keras is a package of its own."""
        with self.tf.device(self.place):
            images, targets = self._tensor(lesson.images, TO_NHWC), self._tensor(lesson.targets)
            leaves = [self._tensor(lesson.filters, TO_HWIO), self._tensor(lesson.weights)]
            losses = []
            for _ in range(lesson.steps + 1):
                with self.tf.GradientTape() as tape:
                    tape.watch(leaves)
                    loss = self._loss(images, targets, *leaves)
                losses.append((loss, None))
                slopes = tape.gradient(loss, leaves)
                leaves = [it - lesson.rate * by for it, by in zip(leaves, slopes)]
            return self._outcome(*losses)

    def products(self, left: Array, right: Array) -> Callable[[], int]:
        """Products that stay on the device; only the count comes back."""
        tf = self.tf
        with tf.device(self.place):
            a, b = self._tensor(left), self._tensor(right)
            first = tf.matmul(a, b)

        def again() -> int:
            with tf.device(self.place):  # as float32: on a GPU, sums of int32 are the CPU's
                return int(tf.reduce_sum(tf.cast(tf.not_equal(tf.matmul(a, b), first), tf.float32)).numpy())

        return again

    def _loss(self, images: Any, targets: Any, filters: Any, weights: Any) -> Any:
        tf = self.tf
        hidden = tf.transpose(tf.nn.relu(self._convolve(images, filters)), TO_NCHW)
        errors = tf.matmul(tf.reshape(hidden, (images.shape[0], -1)), weights) - targets
        return tf.reduce_mean(errors * errors)

    def _tensor(self, values: Array, order: Sequence[int] = ()) -> Any:
        array = self.numpy.array(values.numbers, "float32").reshape(values.shape)
        return self.tf.constant(array.transpose(order) if order else array)

    def _convolve(self, images: Any, filters: Any) -> Any:
        return self.tf.nn.conv2d(images, filters, strides=(1, 1, 1, 1), padding="SAME")

    def _outcome(self, *results: Tuple[Any, Any]) -> Outcome:
        numbers = []
        for tensor, order in results:
            array = tensor.numpy()
            numbers += (array.transpose(order) if order else array).reshape(-1).tolist()
        return Outcome(numbers, all(self._is_here(tensor) for tensor, _ in results))

    def _is_here(self, tensor: Any) -> bool:
        if not tensor.device.endswith(self.place[1:]):  # /job:localhost/replica:0/task:0/device:GPU:0
            return False
        if self.place == "/CPU:0" or not hasattr(self.tf.config.experimental, "get_memory_info"):  # from 2.5 on
            return True
        return int(self.tf.config.experimental.get_memory_info("GPU:0")["peak"]) > 0

    def _built_cuda(self) -> str | None:
        if not hasattr(self.tf.sysconfig, "get_build_info"):  # from 2.3 on
            return None
        version = self.tf.sysconfig.get_build_info().get("cuda_version")
        return None if version is None else str(version)

    def _name(self, gpu: Any) -> str:
        if not hasattr(self.tf.config.experimental, "get_device_details"):  # from 2.4 on
            return str(gpu.name)
        return str(self.tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name))
