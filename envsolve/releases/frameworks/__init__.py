"""One reader per framework."""

from __future__ import annotations

from envsolve.matrix.load import Matrix
from envsolve.releases.frameworks.cupy import CupyReader
from envsolve.releases.frameworks.jax import JaxReader
from envsolve.releases.frameworks.onnxruntime import OnnxRuntimeReader
from envsolve.releases.frameworks.paddlepaddle import PaddlePaddleReader
from envsolve.releases.frameworks.pytorch import PyTorchIndexReader, PyTorchReader
from envsolve.releases.frameworks.tensorflow import TensorFlowReader
from envsolve.releases.reader import Reader
from envsolve.releases.requirements import CudaReleases


def readers(matrix: Matrix) -> dict[str, Reader]:
    """Return every reader by name."""
    cuda_releases = CudaReleases(matrix.components)
    known: list[Reader] = [
        TensorFlowReader(cuda_releases),
        PyTorchReader(cuda_releases),
        PyTorchIndexReader(cuda_releases),
        CupyReader(cuda_releases),
        JaxReader(cuda_releases, matrix),
        OnnxRuntimeReader(cuda_releases),
        PaddlePaddleReader(cuda_releases),
    ]
    return {reader.name: reader for reader in known}
