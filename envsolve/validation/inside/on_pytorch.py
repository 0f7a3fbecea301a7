"""PyTorch. ``torch.cuda.init()`` says why there is no GPU; ``torch.cuda.is_available()`` only that there is none.

Some of its kernels are not in its libraries: NVRTC compiles them at their first use, among them those of exp2, erfc and
special functions, and of abs, prod and others of complex numbers, as after an FFT (``jitted_gpu_kernel`` in
``aten/src/ATen/native/cuda``; "Just-in-Time Compilation" in https://docs.pytorch.org/docs/stable/notes/cuda.html).
"""

from __future__ import annotations

import os
from typing import Any, Sequence, Tuple

from . import operations
from .framework import Loss, Outcome, Step, TensorFramework, UnsupportedError
from .reference import Array


class PyTorch(TensorFramework):
    """PyTorch, since 1.0. numpy need not be installed."""

    def __init__(self, _device: str) -> None:
        super().__init__("PyTorch's own kernels", compiler="NVRTC")
        os.environ["USE_PYTORCH_KERNEL_CACHE"] = "0"  # kernels compiled earlier prove nothing
        import torch

        self.torch: Any = torch
        self.exp, self.relu, self.product = torch.exp, torch.relu, torch.matmul
        self.version = str(torch.__version__)
        self.built_cuda = torch.version.cuda
        self.cpu_build = torch.version.cuda is None
        self.device: Any = None

    def open(self, device: str, index: int) -> str:
        """Use the device, with TF32 off and without cuDNN's search for its fastest kernel."""
        torch = self.torch
        if device == "cpu":
            self.device = torch.device("cpu")
            return "CPU"
        torch.cuda.init()
        torch.cuda.set_device(index)
        self.device = torch.device("cuda", index)
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.allow_tf32 = False
        if hasattr(torch.backends.cuda, "matmul"):  # since 1.7, the first release with TF32
            torch.backends.cuda.matmul.allow_tf32 = False
        return str(torch.cuda.get_device_name(index))

    def run_time_compilation(self, values: Array) -> Outcome:
        """exp2; early releases have its kernel in their libraries, and pass."""
        if not hasattr(self.torch, "exp2"):
            raise UnsupportedError("PyTorch before 1.7 has no exp2")
        return self.outcome(self.torch.exp2(self._tensor(values)))

    def _tensor(self, values: Array) -> Any:
        return self.torch.tensor(values.numbers, dtype=self.torch.float32, device=self.device).reshape(values.shape)

    def _numbers(self, tensor: Any) -> Any:
        return tensor.detach().cpu().reshape(-1).tolist()

    def _is_here(self, tensor: Any) -> bool:
        if self.device.type == "cpu":
            return str(tensor.device.type) == "cpu"
        return bool(tensor.is_cuda) and self.torch.cuda.max_memory_allocated(self.device) > 0

    def _convolve(self, images: Any, filters: Any) -> Any:
        return self.torch.nn.functional.conv2d(images, filters, padding=1)

    def _differentiated(self, function: Loss) -> Step:
        def run(*tensors: Any) -> Tuple[Any, Sequence[Any]]:
            leaves = [it.detach().requires_grad_() for it in tensors]
            value = function(*leaves)
            return value.detach(), self.torch.autograd.grad(value, leaves)

        return run


probe = operations.probe_of(PyTorch)
