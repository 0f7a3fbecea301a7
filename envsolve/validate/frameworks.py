"""Which frameworks can be proven, which installed packages are one, and how long a proof may take."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from envsolve.model.names import normalized

TIMEOUT = 120.0
"""Seconds for import, device and operations, on a disk and a machine that are slow."""
TIMEOUT_WITH_JIT = 600.0
"""Seconds where a build holds only PTX for the GPU: the driver compiles it all when it is first loaded."""


class KnownFramework(NamedTuple):
    """A framework: envsolve's name, how its makers write it, and its packages on PyPI and in conda channels."""

    name: str
    title: str
    packages: re.Pattern[str]

    @property
    def probe(self) -> str:
        """The module of :mod:`envsolve.validate.inside` that proves it."""
        return f"on_{self.name}"


FRAMEWORKS = {
    it.name: it
    for it in (
        KnownFramework("pytorch", "PyTorch", re.compile(r"torch|pytorch(-cpu|-gpu)?")),
        KnownFramework(
            "tensorflow",
            "TensorFlow",
            re.compile(r"(intel-)?tensorflow(-base|-cpu|-gpu|-intel|-rocm|-macos)?|tf-nightly(-cpu|-gpu)?"),
        ),
        KnownFramework("jax", "JAX", re.compile(r"jax")),
        KnownFramework("cupy", "CuPy", re.compile(r"cupy(-core|-cuda\d+x?|-rocm.*)?")),
        KnownFramework(
            "onnxruntime", "ONNX Runtime", re.compile(r"onnxruntime(-gpu|-directml|-openvino)?|ort-nightly(-gpu)?")
        ),
        KnownFramework("paddlepaddle", "PaddlePaddle", re.compile(r"paddlepaddle(-gpu)?")),
    )
}
"""By envsolve's name, in the order in which they are proven and told."""


def frameworks_among(packages: Iterable[str]) -> tuple[KnownFramework, ...]:
    """The frameworks that the installed ``packages`` (names in any spelling) are or hold."""
    names = {normalized(name) for name in packages}
    return tuple(it for it in FRAMEWORKS.values() if any(it.packages.fullmatch(name) for name in names))
