"""Find builds that have to be read: those for CUDA that neither the matrix nor a rule covers."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from packaging.version import Version

from envsolve.frameworks import BUILT_WITH, FRAMEWORK_OF_WHEEL, FRAMEWORKS
from envsolve.model.build_facts import BuildFacts
from envsolve.resolve.closure.bounds import cuda_major_of

OF_CUDA = ("nvidia-", "cuda-")
"""The prefixes of the names of CUDA's own packages."""
_NAMES = ("cuda", "gpu")


def is_unknown(name: str, version: str, facts: Iterable[BuildFacts]) -> bool:
    """Whether nothing says what a wheel contains: neither ``facts`` of its package nor a rule for parts of a stack."""
    facts = tuple(facts)
    if name in FRAMEWORK_OF_WHEEL or name.startswith(OF_CUDA):
        return False
    if not facts and any(it.is_installed_as(name) or it.has_gpu_code(name) for it in FRAMEWORKS.values()):
        return False
    if name in BUILT_WITH and Version(version).local:
        return False  # from PyTorch's own index, for the CUDA of its folder
    return not any(it.covers(version) and it.are_about_cuda and not it.are_from_file_name for it in facts)


def is_about_cuda(name: str, requires: Collection[str]) -> bool:
    """Whether a package is for CUDA, judging by its name or the packages that it ``requires``."""
    is_named = cuda_major_of(name) is not None or any(it in name for it in _NAMES)
    return is_named or any(it in FRAMEWORK_OF_WHEEL or it.startswith(OF_CUDA) for it in requires)
