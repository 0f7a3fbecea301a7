"""Names of packages with the version of CUDA or cuDNN."""

from __future__ import annotations

CUDATOOLKIT = "cudatoolkit"
FIRST_MODULAR_CUDA = 12
"""From CUDA 12 on, conda-forge splits the toolkit into packages that cuda-version ties together. Before, it is one
package, cudatoolkit, which ends at 11.8: ``cuda-version=12.9`` excludes it (records of the channel)."""
PYTORCH_CUDA = "pytorch-cuda"
CUDA_PACKAGES = ("cuda-version", CUDATOOLKIT, PYTORCH_CUDA)
"""Conda packages with the version of CUDA; the one with the version of all parts comes first."""
CUDNN_PACKAGES = ("libcudnn", "cudnn", "nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
"""Conda packages, then wheels."""
