"""One reader per framework."""

from __future__ import annotations

from scripts.matrix_refresh.frameworks.pytorch import PyTorchReader
from scripts.matrix_refresh.frameworks.tensorflow import TensorFlowReader
from scripts.matrix_refresh.reader import Reader
from scripts.matrix_refresh.requirements import CudaReleases


def readers(cuda_releases: CudaReleases) -> dict[str, Reader]:
    """Every reader by the name of its framework."""
    known: list[Reader] = [TensorFlowReader(cuda_releases), PyTorchReader(cuda_releases)]
    return {reader.framework: reader for reader in known}
