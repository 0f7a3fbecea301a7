"""What packages are called whose version is that of CUDA, or of cuDNN."""

from __future__ import annotations

PYTORCH_CUDA = "pytorch-cuda"
CUDA_PACKAGES = ("cuda-version", "cudatoolkit", PYTORCH_CUDA)
"""Conda packages whose version is that of CUDA, the one that says it for all parts first."""
CUDNN_PACKAGES = ("libcudnn", "cudnn", "nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
"""Conda packages, then wheels."""
