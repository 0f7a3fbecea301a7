"""PaddlePaddle, in its dynamic mode."""

from __future__ import annotations

from typing import Any, Sequence, Tuple

from . import operations
from .framework import Loss, NoDeviceError, Step, TensorFramework, UnsupportedError
from .reference import Array


class PaddlePaddle(TensorFramework):
    """PaddlePaddle, since 2.0. TF32 is off by the variable of cuBLAS and cuDNN; Paddle has no switch of its own."""

    def __init__(self, _device: str) -> None:
        super().__init__("PaddlePaddle's own kernels")
        import paddle

        if not hasattr(paddle, "set_device"):
            text = "PaddlePaddle {} is older than 2.0".format(paddle.__version__)
            raise UnsupportedError(text)
        self.paddle: Any = paddle
        self.exp, self.relu, self.product = paddle.exp, paddle.nn.functional.relu, paddle.matmul
        self.version = str(paddle.__version__)
        self.cpu_build = not paddle.is_compiled_with_cuda()
        if not self.cpu_build and hasattr(paddle.version, "cuda"):  # since 2.1
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

    def _tensor(self, values: Array) -> Any:
        return self.paddle.to_tensor(values.numbers, dtype="float32").reshape(list(values.shape))

    def _numbers(self, tensor: Any) -> Any:
        return tensor.numpy().reshape(-1).tolist()

    def _is_here(self, tensor: Any) -> bool:
        return str(tensor.place) == self.device

    def _convolve(self, images: Any, filters: Any) -> Any:
        return self.paddle.nn.functional.conv2d(images, filters, padding=1)

    def _differentiated(self, function: Loss) -> Step:
        def run(*tensors: Any) -> Tuple[Any, Sequence[Any]]:
            leaves = [it.detach() for it in tensors]
            for leaf in leaves:
                leaf.stop_gradient = False
            value = function(*leaves)
            return value, self.paddle.grad([value], leaves)

        return run

    def _rows(self, tensor: Any, count: int) -> Any:
        return tensor.reshape([count, -1])

    def _different(self, left: Any, right: Any) -> int:
        return int((left != right).astype("float32").sum().item())


probe = operations.probe_of(PaddlePaddle)
