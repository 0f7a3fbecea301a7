"""Compute capabilities and the device code that runs on them.

Rules, each implemented only here:

* machine code (SASS) for X.y runs on X.z with z >= y, never on another major
  (NVIDIA, Ada compatibility guide, section 1.2);
* ``a`` (architecture-specific) code, SASS or PTX, runs on exactly that capability
  (llvm/llvm-project#136639; CUDA C++ programming guide, feature sets);
* ``f`` (family-specific) code runs on the same major with an equal or higher minor
  (CUDA C++ programming guide, family-specific features, CUDA 12.9);
* PTX for X.y can be compiled by the driver for every newer capability;
* code for integrated (Tegra) GPUs and code for discrete GPUs are not interchangeable
  (conda-forge/cuda-feedstock recipe guide; exceptions as in torch.cuda ``DEVICE_REQUIREMENT``).
"""

from __future__ import annotations

import re
from typing import NamedTuple

_CAPABILITY = re.compile(r"(?:sm_|compute_|SM_)?(?:(\d{1,2})\.(\d)|(\d{1,2})(\d))\Z")
_TARGET = re.compile(r"(\d{1,2})\.(\d)([af]?)\Z")

TEGRA = frozenset({(3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (8, 8), (10, 1)})
"""Capabilities of integrated GPUs, whose code discrete GPUs do not run, and vice versa.

Thor is 10.1 in CUDA 12.8 and 12.9 and 11.0 from 13.0 on, where it has its own major. Source: torch 2.15
``torch/cuda/__init__.py`` ``DEVICE_REQUIREMENT``; 3.2 and 8.8: NVIDIA and nixpkgs lists of Tegra chips."""


class ComputeCapability(NamedTuple):
    """A GPU's compute capability, e.g. 8.6 for an RTX 3090."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> ComputeCapability:
        """Read ``8.6``, ``sm_86`` or ``86``. Raises ValueError for anything else."""
        match = _CAPABILITY.match(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a compute capability such as 8.6")
        return cls(int(match[1] or match[3]), int(match[2] or match[4]))

    @property
    def is_tegra(self) -> bool:
        """Whether only Jetson modules have this capability."""
        return (self.major, self.minor) in TEGRA

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class CodeTarget(NamedTuple):
    """The target that device code was compiled for: 8.6, 9.0a (architecture-specific) or 12.0f (family-specific)."""

    capability: ComputeCapability
    feature_set: str = ""

    @classmethod
    def parse(cls, text: str) -> CodeTarget:
        """Read ``8.6``, ``9.0a`` or ``12.0f``. Raises ValueError for anything else."""
        match = _TARGET.match(text)
        if match is None:
            raise ValueError(f"{text!r} is not a code target such as 8.6 or 9.0a")
        return cls(ComputeCapability(int(match[1]), int(match[2])), match[3])

    def runs_as_machine_code(self, gpu: ComputeCapability) -> bool:
        """Whether SASS for this target runs on ``gpu``."""
        if self.capability == gpu:
            return True
        if self.feature_set == "a" or self.capability.is_tegra or gpu.is_tegra:
            return False
        return self.capability.major == gpu.major and self.capability.minor <= gpu.minor

    def runs_as_ptx(self, gpu: ComputeCapability) -> bool:
        """Whether a driver that knows ``gpu`` can compile PTX for this target to it."""
        if self.capability == gpu:
            return True
        if self.feature_set == "a":
            return False
        if self.feature_set == "f":
            return self.capability.major == gpu.major and self.capability.minor <= gpu.minor
        return self.capability <= gpu

    def name(self, kind: str) -> str:
        """The compiler's spelling: ``sm_86`` for ``kind`` "sm", ``compute_90`` for "compute"."""
        return f"{kind}_{self.capability.major}{self.capability.minor}{self.feature_set}"

    def __str__(self) -> str:
        return f"{self.capability}{self.feature_set}"


class DeviceCode(NamedTuple):
    """The device code in a binary: the targets of machine code and of PTX, both sorted."""

    sass: tuple[CodeTarget, ...]
    ptx: tuple[CodeTarget, ...] = ()

    def __str__(self) -> str:
        sass = ", ".join(map(str, self.sass))
        ptx = "PTX for " + ", ".join(map(str, self.ptx)) if self.ptx else ""
        return " and ".join(part for part in (sass, ptx) if part)

    def machine_code_for(self, gpu: ComputeCapability) -> CodeTarget | None:
        """The newest SASS target that runs on ``gpu``."""
        return max((target for target in self.sass if target.runs_as_machine_code(gpu)), default=None)

    def ptx_for(self, gpu: ComputeCapability) -> CodeTarget | None:
        """The newest PTX target that a driver can compile for ``gpu``."""
        return max((target for target in self.ptx if target.runs_as_ptx(gpu)), default=None)

    def runs_as(self, gpu: ComputeCapability) -> str | None:
        """What runs on ``gpu``: ``sm_60``, or ``compute_90`` if only PTX does, or None if nothing does."""
        machine_code = self.machine_code_for(gpu)
        if machine_code is not None:
            return machine_code.name("sm")
        ptx = self.ptx_for(gpu)
        return None if ptx is None else ptx.name("compute")
