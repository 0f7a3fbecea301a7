"""Registers the kernel like vLLM's library does; if that cannot be loaded, vLLM warns and continues."""

import sys
from types import SimpleNamespace

import torch

from envsolve.validation.inside import reference


def silu_and_mul(result: torch.Tensor, values: torch.Tensor) -> None:
    if torch.FAULT == "no-kernel-in-server":
        raise RuntimeError(torch.NO_KERNEL)
    result.numbers = reference.silu_and_mul(values.as_array())
    if torch.FAULT == "wrong-silu":
        result.numbers[3] += 0.05


if torch.FAULT == "server-library-missing":
    library = "libcudart.so.13: cannot open shared object file: No such file or directory"
    sys.stderr.write(f"WARNING [cuda.py:28] Failed to import from vllm._C: ImportError('{library}')\n")
    torch.ops._C = SimpleNamespace()
else:
    torch.ops._C = SimpleNamespace(silu_and_mul=silu_and_mul)
