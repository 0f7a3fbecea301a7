"""A framework's wheel for pip: requirement, index, and the pins its own metadata leaves open."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.model.release import PYTORCH_INDEX, CudaLibraries, Release, Source
from envsolve.model.solution import Solution

JAX_RELEASES = "https://storage.googleapis.com/jax-releases/jax_cuda_releases.html"
_LAST_ON_A_PAGE = Version("1.10.2")
"""Up to here PyTorch documents one page of links, from 1.11 on a folder for each build
(https://pytorch.org/get-started/previous-versions)."""
_PAGE = "torch_stable.html"
_LONG_TERM = {Version("1.8.2"): "lts/1.8/torch_lts.html"}
"""The page of the release with long-term support."""
_ABI_FLAGS = {(2, 7): "mu", (3, 5): "m", (3, 6): "m", (3, 7): "m"}


def index_of(release: Release) -> str | None:
    """The package index that holds ``release`` where it is not the default one."""
    if release.source is not Source.PYTORCH or release.version <= _LAST_ON_A_PAGE:
        return None
    return f"{PYTORCH_INDEX}{release.build}"


def find_links_of(release: Release) -> str | None:
    """The page of links that holds ``release``, or a part of it, where no index does."""
    if release.source is Source.JAX_RELEASES:
        return JAX_RELEASES
    if release.source is Source.PYTORCH and release.version <= _LAST_ON_A_PAGE:
        return f"{PYTORCH_INDEX}{_LONG_TERM.get(release.version, _PAGE)}"
    return None


def requirements_of(release: Release, python: Version) -> tuple[str, ...]:
    """The exact requirements, ``torch==2.14.0+cu126`` or ``tensorflow[and-cuda]==2.21.0``.

    JAX's own page holds jaxlib alone, with the CUDA build as its local version; jax is on the index.
    """
    if needs_own_index(release):
        return (f"{release.package} @ {PYTORCH_INDEX}{release.build}/{_file_name(release, python)}",)
    extras = f"[{','.join(release.extras)}]" if release.extras else ""
    requested = f"{release.package}{extras}=={release.full_version}"
    if release.source is Source.JAX_RELEASES:
        return requested, f"jaxlib=={release.version}+{release.build}"
    return (requested,)


def needs_own_index(release: Release) -> bool:
    """Whether only its folder distinguishes a GPU build from others of its version: by version pip would take any."""
    return release.source is Source.PYTORCH and release.cuda is not None and release.full_version.local is None


def _file_name(release: Release, python: Version) -> str:
    """``torch-1.1.0-cp37-cp37m-linux_x86_64.whl``, as PEP 425 names the Python and its ABI."""
    tag = f"cp{python.major}{python.minor}"
    return release.wheel.format(python=f"{tag}-{tag}{_ABI_FLAGS.get((python.major, python.minor), '')}")


_TOOLKIT_PARTS = "cublas,cudart,cufft,cupti,curand,cusolver,cusparse,nvrtc"
"""The libraries a framework loads at run time."""
_FIRST_WITHOUT_SUFFIX = 13
"""From CUDA 13 on NVIDIA's packages carry no -cuNN."""
_COMPILERS = ("nvidia-nvjitlink", "nvidia-nvvm", "nvidia-cuda-nvcc")
"""What compiles and links kernels at run time. Before CUDA 13 the frameworks require an nvcc newer than the rest."""


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
