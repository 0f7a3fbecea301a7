"""vLLM, whose import alone loads none of its libraries: ``vllm._custom_ops`` does, and registers the kernels."""

from __future__ import annotations

from typing import Any

from . import operations
from .silu_and_mul import ServerKernels


class Vllm(ServerKernels):
    """vLLM, since 0.6. If a library cannot be loaded it warns, and the kernel is missing."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        import vllm
        import vllm._custom_ops

        self.version = str(vllm.__version__)

    def activated(self, halves: Any) -> Any:
        """As SiluAndMul in vllm/model_executor/layers/activation.py calls it."""
        rows, columns = halves.shape
        result = halves.new_empty((rows, columns // 2))
        self.torch.ops._C.silu_and_mul(result, halves)  # noqa: SLF001 - the name of its library
        return result


probe = operations.probe_of(Vllm)
