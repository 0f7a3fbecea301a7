"""A framework's wheel for pip: the requirement, the index, and the pins that its own metadata leaves open."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.model.release import PYTORCH_INDEX, CudaLibraries, Release, Source
from envsolve.model.solution import Solution

JAX_RELEASES = "https://storage.googleapis.com/jax-releases/jax_cuda_releases.html"
_LAST_ON_A_PAGE = Version("1.10.2")
"""Up to this version PyTorch documents one page of links, from 1.11 on a directory for each build
(https://pytorch.org/get-started/previous-versions)."""
_PAGE = "torch_stable.html"
_LONG_TERM = {Version("1.8.2"): "lts/1.8/torch_lts.html"}
"""The page of the release with long-term support."""
_ABI_FLAGS = {(2, 7): "mu", (3, 5): "m", (3, 6): "m", (3, 7): "m"}


def index_of(release: Release) -> str | None:
    """Return the package index of ``release``, or None for the default one."""
    if release.source is not Source.PYTORCH or release.version <= _LAST_ON_A_PAGE:
        return None
    return f"{PYTORCH_INDEX}{release.build}"


def find_links_of(release: Release) -> str | None:
    """Return the page of links with ``release`` or a part of it, or None if an index has it."""
    if release.source is Source.JAX_RELEASES:
        return JAX_RELEASES
    if release.source is Source.PYTORCH and release.version <= _LAST_ON_A_PAGE:
        return f"{PYTORCH_INDEX}{_LONG_TERM.get(release.version, _PAGE)}"
    return None


def requirements_of(release: Release, python: Version) -> tuple[str, ...]:
    """Return the exact requirements, ``torch==2.14.0+cu126`` or ``tensorflow[and-cuda]==2.21.0``.

    JAX's own page only has jaxlib, with the CUDA build as its local version; jax is on the index.
    """
    if needs_direct_url(release):
        return (f"{release.package} @ {PYTORCH_INDEX}{release.build}/{_file_name(release, python)}",)
    extras = f"[{','.join(release.extras)}]" if release.extras else ""
    requested = f"{release.package}{extras}=={release.full_version}"
    if release.source is Source.JAX_RELEASES:
        return requested, f"jaxlib=={release.version}+{release.build}"
    return (requested,)


def needs_direct_url(release: Release) -> bool:
    """Whether a GPU build has the same version as other builds, in another directory, so that pip could choose any."""
    return release.source is Source.PYTORCH and release.cuda is not None and release.full_version.local is None


def _file_name(release: Release, python: Version) -> str:
    """The file name, such as ``torch-1.1.0-cp37-cp37m-linux_x86_64.whl``, with Python and ABI as in PEP 425."""
    tag = f"cp{python.major}{python.minor}"
    return release.wheel.format(python=f"{tag}-{tag}{_ABI_FLAGS.get((python.major, python.minor), '')}")


_TOOLKIT_PARTS = "cublas,cudart,cufft,cupti,curand,cusolver,cusparse,nvrtc"
"""The libraries that a framework loads at run time."""
_FIRST_WITHOUT_SUFFIX = 13
"""From CUDA 13 on, the names of NVIDIA's packages have no -cuNN."""
_COMPILERS = ("nvidia-nvjitlink", "nvidia-nvvm", "nvidia-cuda-nvcc")
"""Packages that compile and link kernels at run time. Before CUDA 13 the frameworks require an nvcc newer than the
rest."""


def toolkit_pins(solution: Solution) -> list[str]:
    """Return requirements that tie all CUDA libraries to the stack's toolkit, if the wheels' metadata leaves it open.

    NVIDIA's metapackage cuda-toolkit pins each library to one CUDA release, but admits any newer nvJitLink.
    """
    wheels = [choice.release for choice in solution.choices if choice.release.source.is_wheel]
    depends = [release for release in wheels if release.cuda_libraries is CudaLibraries.DEPENDENCIES]
    if solution.toolkit is None or not depends or any(is_exact(release.cuda_requires) for release in depends):
        return []
    version = solution.toolkit.version
    single = _COMPILERS if version.major >= _FIRST_WITHOUT_SUFFIX else (f"nvidia-nvjitlink-cu{version.major}",)
    return [f"cuda-toolkit[{_TOOLKIT_PARTS}]=={version}.*", *(f"{package}=={version}.*" for package in single)]


def is_exact(versions: SpecifierSet | None) -> bool:
    """Whether ``versions`` admits only one version."""
    return any(clause.operator == "==" and not clause.version.endswith(".*") for clause in versions or ())
