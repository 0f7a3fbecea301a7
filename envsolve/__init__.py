"""envsolve: CUDA stacks that run on the GPU and the driver you have."""

__version__ = "0.1.0"
