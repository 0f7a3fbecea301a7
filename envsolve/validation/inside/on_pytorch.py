"""PyTorch. ``torch.cuda.init()`` says why there is no GPU; ``torch.cuda.is_available()`` only that there is none."""

from __future__ import annotations

from typing import Any, Callable, Dict

from . import operations
from .channel import Channel
from .framework import Framework, Outcome
from .reference import Array, Lesson

PROVES = {
    "element-wise": "PyTorch's own kernels",
    "matmul": "cuBLAS",
    "convolution": "cuDNN",
    "convolution-backward": "cuDNN",
    "training": "all of these together",
}


def probe(job: Dict[str, object], channel: Channel) -> Dict[str, object]:
    """Run the operations with PyTorch."""
    return operations.run(job, channel, "pytorch", PyTorch)


class PyTorch(Framework):
    """PyTorch, from 1.0 on. numpy need not be installed beside it."""

    def __init__(self, _device: str) -> None:
        super().__init__(PROVES)
        import torch

        self.torch: Any = torch
        self.version = str(torch.__version__)
        self.built_cuda = torch.version.cuda
        self.cpu_build = torch.version.cuda is None
        self.device: Any = None

    def open(self, device: str, index: int) -> str:
        """The device; TF32 is off from here on, and cuDNN does not look for its fastest kernel."""
        torch = self.torch
        if device == "cpu":
            self.device = torch.device("cpu")
            return "CPU"
        torch.cuda.init()
        torch.cuda.set_device(index)
        self.device = torch.device("cuda", index)
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.allow_tf32 = False
        if hasattr(torch.backends.cuda, "matmul"):  # from 1.7 on, the first one with TF32
            torch.backends.cuda.matmul.allow_tf32 = False
        return str(torch.cuda.get_device_name(index))

    def element_wise(self, left: Array, right: Array) -> Outcome:
        """First of all operations: it goes through no library of NVIDIA's but the runtime."""
        a, b = self._tensor(left), self._tensor(right)
        return self._outcome(self.torch.exp(a) * b + a)

    def matmul(self, left: Array, right: Array) -> Outcome:
        """A product of two matrices."""
        return self._outcome(self.torch.matmul(self._tensor(left), self._tensor(right)))

    def convolution(self, images: Array, filters: Array) -> Outcome:
        """A convolution."""
        return self._outcome(self._convolve(self._tensor(images), self._tensor(filters)))

    def convolution_backward(self, images: Array, filters: Array, upstream: Array) -> Outcome:
        """Both gradients, of one number: given a gradient of its own, PyTorch loads its symbolic shapes for seconds."""
        leaves = self._tensor(images).requires_grad_(), self._tensor(filters).requires_grad_()
        total = (self._convolve(*leaves) * self._tensor(upstream)).sum()
        return self._outcome(*self.torch.autograd.grad(total, leaves))

    def training(self, lesson: Lesson) -> Outcome:
        """Gradient descent written out: an optimizer of PyTorch loads its compiler first, for seconds."""
        torch = self.torch
        images, targets = self._tensor(lesson.images), self._tensor(lesson.targets)
        leaves = [self._tensor(lesson.filters).requires_grad_(), self._tensor(lesson.weights).requires_grad_()]
        losses = []
        for step in range(lesson.steps + 1):
            hidden = torch.relu(self._convolve(images, leaves[0])).reshape(lesson.images.shape[0], -1)
            loss = ((torch.matmul(hidden, leaves[1]) - targets) ** 2).mean()
            losses.append(loss.detach().reshape(1))
            if step < lesson.steps:
                slopes = torch.autograd.grad(loss, leaves)
                leaves = [(it - lesson.rate * by).detach().requires_grad_() for it, by in zip(leaves, slopes)]
        return self._outcome(*losses)

    def products(self, left: Array, right: Array) -> Callable[[], int]:
        """Products that stay on the device; only the count comes back."""
        torch = self.torch
        a, b = self._tensor(left), self._tensor(right)
        first = torch.matmul(a, b)
        return lambda: int((torch.matmul(a, b) != first).sum().item())

    def _tensor(self, values: Array) -> Any:
        return self.torch.tensor(values.numbers, dtype=self.torch.float32, device=self.device).reshape(values.shape)

    def _convolve(self, images: Any, filters: Any) -> Any:
        return self.torch.nn.functional.conv2d(images, filters, padding=1)

    def _outcome(self, *results: Any) -> Outcome:
        numbers = [number for it in results for number in it.detach().cpu().reshape(-1).tolist()]
        return Outcome(numbers, all(map(self._is_here, results)))

    def _is_here(self, result: Any) -> bool:
        if self.device.type == "cpu":
            return str(result.device.type) == "cpu"
        return bool(result.is_cuda) and self.torch.cuda.max_memory_allocated(self.device) > 0
