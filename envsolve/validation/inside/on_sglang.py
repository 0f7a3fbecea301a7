"""SGLang, whose kernels are in sgl_kernel: a package of its own, called sgl-kernel or, from 0.4 on, sglang-kernel."""

from __future__ import annotations

from typing import Any

from . import operations
from .silu_and_mul import ServerKernels


class SgLang(ServerKernels):
    """sgl_kernel, since 0.1. Its RMS norm may be FlashInfer's; this kernel is its own."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        import sgl_kernel

        self.kernels = sgl_kernel
        self.version = str(sgl_kernel.__version__)

    def activated(self, halves: Any) -> Any:
        """Calls its Python function, which passes what the kernel of a release needs besides the tensors."""
        return self.kernels.silu_and_mul(halves)


probe = operations.probe_of(SgLang)
