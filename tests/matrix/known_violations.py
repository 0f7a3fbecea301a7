"""Where the shipped data break a law of the matrix today. Whoever mends a row takes its line out."""

from __future__ import annotations

KNOWN_VIOLATIONS: frozenset[str] = frozenset(
    {
        *(
            f"pytorch.toml: release {version} (conda-forge, cuda130, {platform}): "
            "cuDNN 9.10.2.21 for CUDA 13 is not in cudnn.toml"
            for version in ("2.13.0", "2.12.1", "2.12.0", "2.11.0", "2.10.0")
            for platform in ("linux-64", "linux-aarch64", "win-64")
        ),
        "pytorch.toml: release 2.0.0 (conda-forge, cuda112, linux-64): stands there twice for Python 3.10",
        "cuda.toml: architecture 7.2: is not in compiles_for of CUDA 9.0, against first_cuda 9.0, last_cuda 12.9",
        "cudnn.toml: release 9.1.0.70.post1 (CUDA 12): stands below the older 9.1.0.70",
        "cudnn.toml: release 9.0.0.312.post1 (CUDA 12): stands below the older 9.0.0.312",
    }
)
"""What the shipped data still breaks. It shrinks to nothing: a row that is mended is taken out here."""
