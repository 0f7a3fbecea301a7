"""One reader per framework."""

from __future__ import annotations

from envsolve.matrix.load import Matrix
from scripts.matrix_refresh.frameworks.cupy import CupyReader
from scripts.matrix_refresh.frameworks.jax import JaxReader
from scripts.matrix_refresh.frameworks.onnxruntime import OnnxRuntimeReader
from scripts.matrix_refresh.frameworks.paddlepaddle import PaddlePaddleReader
from scripts.matrix_refresh.frameworks.pytorch import PyTorchIndexReader, PyTorchReader
from scripts.matrix_refresh.frameworks.tensorflow import TensorFlowReader
from scripts.matrix_refresh.reader import Reader
from scripts.matrix_refresh.requirements import CudaReleases


def readers(matrix: Matrix) -> dict[str, Reader]:
    """Every reader by its name."""
    cuda_releases = CudaReleases(matrix.components)
    known: list[Reader] = [
        TensorFlowReader(cuda_releases),
        PyTorchReader(cuda_releases),
        PyTorchIndexReader(cuda_releases),
        CupyReader(cuda_releases),
        JaxReader(cuda_releases, matrix),
        OnnxRuntimeReader(cuda_releases),
        PaddlePaddleReader(),
    ]
    return {reader.name: reader for reader in known}
