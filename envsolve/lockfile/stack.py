"""The stack of an answer, as a lock records it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from envsolve.lockfile.answer import Answer
from envsolve.lockfile.header import machines_of
from envsolve.lockfile.lock import LockedFramework, Stack
from envsolve.model.release import Release

_RUNTIME = re.compile(r"nvidia-cuda-runtime(?:-cu\d\d)?|cuda-version|cudatoolkit|pytorch-cuda")
"""The CUDA runtime, whose version begins with that of the toolkit it is of, as no other part's does throughout; of
conda packages those that say the version for all parts."""
_CUDNN = re.compile(r"nvidia-cudnn-cu\d\d|cudnn|libcudnn")


def stack_of(answer: Answer, versions: Mapping[str, str]) -> Stack:
    """The stack as it is locked; ``versions`` are those of the packages that are installed, by name.

    Of the cuDNNs that go with a stack it tells the one among them, where it is a package.
    """
    solution = answer.solution
    pinned = next((version for name, version in versions.items() if _CUDNN.fullmatch(name)), None)
    runtime = next((version for name, version in versions.items() if _RUNTIME.fullmatch(name)), None)
    cuda = None if solution.toolkit is None else str(solution.toolkit.version)
    cudnn = None if solution.cudnn is None else str(solution.cudnn.version)
    return Stack(
        tuple(_framework(choice.release) for choice in solution.choices),
        tuple(str(gpu) for gpu in solution.problem.gpus),
        None if solution.minimum_driver is None else str(solution.minimum_driver),
        cuda if runtime is None else ".".join(runtime.split(".")[:2]),
        pinned or cudnn,
        machines_of(answer),
    )


def _framework(release: Release) -> LockedFramework:
    return LockedFramework(
        release.framework, str(release.version), release.package, release.source.value, release.build
    )
