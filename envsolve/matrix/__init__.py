"""The curated compatibility matrix: which framework builds exist and what they need."""

from envsolve.matrix.load import Matrix, find_matrix
from envsolve.matrix.names import GpuModel, GpuNames

__all__ = ["GpuModel", "GpuNames", "Matrix", "find_matrix"]
