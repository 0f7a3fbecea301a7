"""The kernels of an SGLang, as far as the probe needs them."""

import torch
from vllm._custom_ops import silu_and_mul as run

__version__ = "0.4.10"
if torch.FAULT == "server-library-missing":
    raise ImportError("libcudart.so.13: cannot open shared object file: No such file or directory")


def silu_and_mul(values: torch.Tensor) -> torch.Tensor:
    rows, columns = values.shape
    result = values.new_empty((rows, columns // 2))
    run(result, values)
    return result
