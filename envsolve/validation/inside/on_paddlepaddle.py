"""PaddlePaddle, in its dynamic mode."""

from __future__ import annotations

from typing import Any, Callable, Dict

from . import operations
from .channel import Channel
from .framework import Framework, NoDeviceError, Outcome, UnsupportedError
from .reference import Array, Lesson

PROVES = {
    "element-wise": "PaddlePaddle's own kernels",
    "matmul": "cuBLAS",
    "convolution": "cuDNN",
    "convolution-backward": "cuDNN",
    "training": "all of these together",
}


def probe(job: Dict[str, object], channel: Channel) -> Dict[str, object]:
    """Run the operations with PaddlePaddle."""
    return operations.run(job, channel, "paddlepaddle", PaddlePaddle)


class PaddlePaddle(Framework):
    """PaddlePaddle, from 2.0 on. TF32 is off by the variable of cuBLAS and cuDNN; Paddle has no switch of its own."""

    def __init__(self, _device: str) -> None:
        super().__init__(PROVES)
        import paddle

        if not hasattr(paddle, "set_device"):
            text = "PaddlePaddle {} is older than 2.0".format(paddle.__version__)
            raise UnsupportedError(text)
        self.paddle: Any = paddle
        self.version = str(paddle.__version__)
        self.cpu_build = not paddle.is_compiled_with_cuda()
        if not self.cpu_build and hasattr(paddle.version, "cuda"):  # from 2.1 on
            self.built_cuda = str(paddle.version.cuda())
        self.device = ""

    def open(self, device: str, index: int) -> str:
        """The device."""
        paddle = self.paddle
        if device == "cpu":
            self.device = str(paddle.set_device("cpu"))
            return "CPU"
        cuda = paddle.device.cuda
        if hasattr(cuda, "device_count") and index >= cuda.device_count():
            text = "PaddlePaddle lists {} GPUs".format(cuda.device_count())
            raise NoDeviceError(text)
        self.device = str(paddle.set_device("gpu:{}".format(index)))
        return str(cuda.get_device_name(index)) if hasattr(cuda, "get_device_name") else "gpu:{}".format(index)

    def element_wise(self, left: Array, right: Array) -> Outcome:
        """First of all operations: it goes through no library of NVIDIA's but the runtime."""
        a, b = self._tensor(left), self._tensor(right)
        return self._outcome(self.paddle.exp(a) * b + a)

    def matmul(self, left: Array, right: Array) -> Outcome:
        """A product of two matrices."""
        return self._outcome(self.paddle.matmul(self._tensor(left), self._tensor(right)))

    def convolution(self, images: Array, filters: Array) -> Outcome:
        """A convolution."""
        return self._outcome(self._convolve(self._tensor(images), self._tensor(filters)))

    def convolution_backward(self, images: Array, filters: Array, upstream: Array) -> Outcome:
        """Both gradients, by automatic differentiation."""
        leaves = [self._leaf(self._tensor(images)), self._leaf(self._tensor(filters))]
        result = self._convolve(*leaves)
        return self._outcome(*self.paddle.grad([result], leaves, [self._tensor(upstream)]))

    def training(self, lesson: Lesson) -> Outcome:
        """Gradient descent written out."""
        paddle = self.paddle
        images, targets = self._tensor(lesson.images), self._tensor(lesson.targets)
        leaves = [self._leaf(self._tensor(lesson.filters)), self._leaf(self._tensor(lesson.weights))]
        losses = []
        for _ in range(lesson.steps + 1):
            hidden = paddle.nn.functional.relu(self._convolve(images, leaves[0])).reshape([images.shape[0], -1])
            loss = ((paddle.matmul(hidden, leaves[1]) - targets) ** 2).mean()
            losses.append(loss)
            slopes = paddle.grad([loss], leaves)
            leaves = [self._leaf((it - lesson.rate * by).detach()) for it, by in zip(leaves, slopes)]
        return self._outcome(*losses)

    def products(self, left: Array, right: Array) -> Callable[[], int]:
        """Products that stay on the device; only the count comes back."""
        paddle = self.paddle
        a, b = self._tensor(left), self._tensor(right)
        first = paddle.matmul(a, b)
        return lambda: int((paddle.matmul(a, b) != first).astype("float32").sum().item())

    def _tensor(self, values: Array) -> Any:
        return self.paddle.to_tensor(values.numbers, dtype="float32").reshape(list(values.shape))

    def _leaf(self, tensor: Any) -> Any:
        tensor.stop_gradient = False
        return tensor

    def _convolve(self, images: Any, filters: Any) -> Any:
        return self.paddle.nn.functional.conv2d(images, filters, padding=1)

    def _outcome(self, *results: Any) -> Outcome:
        numbers = [number for it in results for number in it.numpy().reshape(-1).tolist()]
        return Outcome(numbers, all(map(self._is_here, results)))

    def _is_here(self, result: Any) -> bool:
        return str(result.place) == self.device
