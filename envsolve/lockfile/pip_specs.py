"""What a stack requires from pip: requirements with the reason for each."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.lockfile.conda_specs import cudnn_reason, framework_reason
from envsolve.lockfile.wheels import is_exact, requirements_of, toolkit_pins
from envsolve.model.release import CudaLibraries
from envsolve.model.solution import Choice, Solution


def wheels_of(solution: Solution) -> list[Choice]:
    """Return the frameworks of a stack that pip installs."""
    return [choice for choice in solution.choices if choice.release.source.is_wheel]


def pip_specs(solution: Solution) -> Iterator[tuple[str, str]]:
    """Yield each requirement as pip reads it, ``torch==2.14.0+cu126``, with its reason."""
    wheels = wheels_of(solution)
    for choice in wheels:
        release = choice.release
        for requirement in requirements_of(release, solution.python):
            yield requirement, framework_reason(choice)
        for constraint in release.constraints:
            yield constraint, f"{release.package} {release.version} breaks without it"
    for pin in toolkit_pins(solution):
        yield pin, "keeps the CUDA libraries together: without it, the wheel installs the newest"
    yield from _cudnn(solution, wheels)


def _cudnn(solution: Solution, wheels: list[Choice]) -> Iterator[tuple[str, str]]:
    """Pin the cuDNN that metadata leaves open: pip chooses the newest, which may have no code for an older GPU."""
    for choice in wheels:
        release = choice.release
        open_range = release.cudnn_requires is not None and not is_exact(release.cudnn_requires)
        if open_range and release.cuda_libraries is CudaLibraries.DEPENDENCIES and solution.cudnn is not None:
            package = release.cudnn_package or f"nvidia-cudnn-cu{solution.cudnn.cuda_major}"
            yield f"{package}=={solution.cudnn.version}", cudnn_reason(solution)
            return
