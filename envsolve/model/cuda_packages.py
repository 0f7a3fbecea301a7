"""Names of packages with the version of CUDA or cuDNN."""

from __future__ import annotations

PYTORCH_CUDA = "pytorch-cuda"
CUDA_PACKAGES = ("cuda-version", "cudatoolkit", PYTORCH_CUDA)
"""Conda packages with the version of CUDA; the one with the version of all parts comes first."""
CUDNN_PACKAGES = ("libcudnn", "cudnn", "nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
"""Conda packages, then wheels."""
