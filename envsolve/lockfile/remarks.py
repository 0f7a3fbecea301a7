"""The comments at the top of an environment's file that say how to use what it installs."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.boundary.display import one_line
from envsolve.model.release import CudaLibraries, Release
from envsolve.model.solution import Owner, Solution

_OWNED_BY = {
    Owner.CONDA: "conda packages of this file",
    Owner.PIP: "wheels that pip installs, or what lies inside them",
}


def usage_remarks(solution: Solution, *, sets_library_path: bool = False) -> Iterator[str]:
    """Yield who brings CUDA to several frameworks, and what a framework needs to find its CUDA libraries.

    ``sets_library_path`` is true if the file itself sets the library path.
    """
    if solution.problem.cpu:
        return
    if solution.owner is not None and len(solution.choices) > 1:
        yield f"# CUDA and cuDNN: {_OWNED_BY[solution.owner]}, for all of the frameworks"
    if needs_library_path(solution) and not sets_library_path:
        yield "# The wheel looks for this environment's CUDA libraries on the library path only. After activating it:"
        yield "#   export LD_LIBRARY_PATH=$CONDA_PREFIX/lib"
    for choice in solution.choices:
        release = choice.release
        if release.source.is_wheel and release.cuda_libraries is CudaLibraries.DEPENDENCIES:
            yield from _preload_call(release)


def needs_library_path(solution: Solution) -> bool:
    """Whether a wheel finds CUDA only through the loader. On Windows, an activated environment is on its path."""
    releases = [choice.release for choice in solution.choices]
    return any(it.cuda_libraries is CudaLibraries.NONE and not it.platform.is_windows for it in releases)


def override_remark(cuda: str | None) -> Iterator[str]:
    """Yield how to solve a file on a machine without a GPU with conda or mamba; nothing without CUDA."""
    if cuda is not None:
        yield "# To create it on a machine without the GPU, put"
        yield f"#   {one_line(f'CONDA_OVERRIDE_CUDA={cuda}')}"
        yield "# before conda or mamba: the builds require the virtual package __cuda."


def _preload_call(release: Release) -> Iterator[str]:
    """The call for a wheel whose CUDA libraries the loader does not find. It finds those of conda."""
    from envsolve.frameworks import FRAMEWORKS  # slow, and not needed for conda packages

    known = FRAMEWORKS.get(release.framework)
    if known is not None and known.preload_call is not None:
        yield f"# {release.framework} uses the CUDA libraries of its extras after this call only; without it, the CPU:"
        yield f"#   {known.preload_call}"
