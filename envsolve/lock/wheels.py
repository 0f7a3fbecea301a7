"""How pip is asked for a framework's wheel: requirement, index, and the pins its own metadata leaves open."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet

from envsolve.model.release import CudaLibraries, Release, Source
from envsolve.model.solution import Solution

PYTORCH_INDEX = "https://download.pytorch.org/whl/"
JAX_RELEASES = "https://storage.googleapis.com/jax-releases/jax_cuda_releases.html"


def index_of(release: Release) -> str | None:
    """The index that holds ``release`` where it is not the default one."""
    return f"{PYTORCH_INDEX}{release.build}" if release.source is Source.PYTORCH else None


def find_links_of(release: Release) -> str | None:
    """The page of links that holds ``release`` beside the index."""
    return JAX_RELEASES if release.source is Source.JAX_RELEASES else None


def requirements_of(release: Release) -> tuple[str, ...]:
    """The exact requirement, ``torch==2.14.0+cu126`` or ``tensorflow[and-cuda]==2.21.0``.

    JAX's own page holds jaxlib alone, with the CUDA build as its local version; jax is on the index.
    """
    extras = f"[{','.join(release.extras)}]" if release.extras else ""
    local = f"+{release.build}" if release.source is Source.PYTORCH else ""
    asked = f"{release.package}{extras}=={release.version}{local}"
    if release.source is Source.JAX_RELEASES:
        return asked, f"jaxlib=={release.version}+{release.build}"
    return (asked,)


_TOOLKIT_PARTS = "cublas,cudart,cufft,cupti,curand,cusolver,cusparse,nvrtc"
"""The libraries a framework loads at run time."""
_FIRST_WITHOUT_SUFFIX = 13
"""From CUDA 13 on NVIDIA's packages carry no -cuNN."""
_COMPILERS = ("nvidia-nvjitlink", "nvidia-nvvm", "nvidia-cuda-nvcc")
"""What compiles and links kernels at run time. Before CUDA 13 the frameworks ask for an nvcc newer than the rest."""


def toolkit_pins(solution: Solution) -> list[str]:
    """Requirements that tie all CUDA libraries to the stack's toolkit, where the wheels' own metadata leaves it open.

    NVIDIA's metapackage cuda-toolkit pins each library as one CUDA release has it, but takes any newer nvJitLink.
    """
    wheels = [choice.release for choice in solution.choices if choice.release.source.is_wheel]
    depends = [release for release in wheels if release.cuda_libraries is CudaLibraries.DEPENDENCIES]
    if solution.toolkit is None or not depends or any(is_exact(release.cuda_requires) for release in depends):
        return []
    version = solution.toolkit.version
    single = _COMPILERS if version.major >= _FIRST_WITHOUT_SUFFIX else (f"nvidia-nvjitlink-cu{version.major}",)
    return [f"cuda-toolkit[{_TOOLKIT_PARTS}]=={version}.*", *(f"{package}=={version}.*" for package in single)]


def is_exact(versions: SpecifierSet | None) -> bool:
    """Whether ``versions`` admits one version only."""
    return any(clause.operator == "==" and not clause.version.endswith(".*") for clause in versions or ())
