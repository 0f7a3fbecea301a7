"""What a stack requires from conda: match specs with the reason for each, and their channels.

CUDA is included if conda owns it: with conda builds, and with wheels that bring no CUDA.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.version import Version

from envsolve.lockfile.wheels import is_exact
from envsolve.model.cuda_packages import CUDATOOLKIT, FIRST_MODULAR_CUDA, PYTORCH_CUDA
from envsolve.model.release import CudaLibraries, Release, Source, Toolkit
from envsolve.model.solution import Choice, Solution

_MODULAR_LIBRARIES = (
    *("cuda-cudart-dev", "cuda-nvrtc", "libcublas", "libcufft"),
    *("libcurand", "libcusolver", "libcusparse"),
)
"""What conda-forge's own build of CuPy requires (conda-forge/cupy-feedstock, recipe/meta.yaml): the runtime with the
headers for compiling kernels at run time, the compiler, and the libraries."""
_FIRST_WITH_PYTORCH_CUDA = Version("1.13")
"""From 1.13 on, builds of the channel pytorch require pytorch-cuda, which pins NVIDIA's packages. Before, they require
cudatoolkit (records of the channel)."""
_PYTORCH = str(Source.PYTORCH_CHANNEL.channel)
_ANY_BUILD = "*"
"""The toolkit in the same environment selects the build."""


def environment_name(solution: Solution) -> str:
    """Return the name of the environment: ``pytorch-jax-cuda12``, ``tensorflow-cpu``."""
    frameworks = "-".join(choice.release.framework for choice in solution.choices)
    return f"{frameworks}-{'cpu' if solution.toolkit is None else f'cuda{solution.toolkit.version.major}'}"


def channels_of(solution: Solution) -> list[str]:
    """Return the user's channels with missing ones: conda-forge last, and PyTorch's before it.

    PyTorch's channel comes first because conda-forge has a package pytorch too. NVIDIA's comes after PyTorch's,
    wherever the user has that.
    """
    given = list(solution.request.channels)
    names = [*map(channel_name, given)]
    missing = [it for it in _own_channels(solution) if it not in names]
    at = names.index(_PYTORCH) + 1 if missing and _PYTORCH in names else 0
    return list(with_conda_forge([*given[:at], *missing, *given[at:]]))


def with_conda_forge(channels: Iterable[str]) -> tuple[str, ...]:
    """Return ``channels`` with conda-forge added at the end, unless it is already there under any address."""
    channels = tuple(dict.fromkeys(channels))
    return (*channels, *(() if "conda-forge" in map(channel_name, channels) else ("conda-forge",)))


def channel_name(channel: str) -> str:
    """Return the name of a channel, whatever address it is given by."""
    return channel.rstrip("/").rpartition("/")[2]


def _own_channels(solution: Solution) -> tuple[str, ...]:
    """PyTorch's channel, and NVIDIA's for the CUDA that its builds require."""
    if not _of_the_pytorch_channel(solution):
        return ()
    return (_PYTORCH,) if solution.toolkit is None else (_PYTORCH, "nvidia")


def _of_the_pytorch_channel(solution: Solution) -> list[Release]:
    return [choice.release for choice in solution.choices if choice.release.source is Source.PYTORCH_CHANNEL]


def conda_specs(solution: Solution) -> Iterator[tuple[str, str]]:
    """Yield each match spec as conda writes it, ``tensorflow=2.19.1=cuda128*``, with its reason; Python comes first."""
    yield _python(solution)
    for choice in solution.choices:
        release = choice.release
        if release.source.is_wheel:
            continue
        build = "" if release.build_string == _ANY_BUILD else f"={release.build_string}"
        yield f"{release.package}={release.version}{build}", framework_reason(choice)
        for package, versions in release.companions:
            yield f"{package}{_conda_versions(versions)}", f"matches {release.package} {release.version}"
        for constraint in release.constraints:
            yield constraint, f"{release.package} {release.version} breaks without it"
    conda_cuda = [choice.release for choice in solution.choices if _conda_owns_cuda(choice.release)]
    if solution.toolkit is not None and conda_cuda:
        yield _toolkit(solution)
        yield from _conda_libraries(solution.toolkit, conda_cuda)
        yield from _conda_cudnn(solution, conda_cuda)


def _python(solution: Solution) -> tuple[str, str]:
    requested = solution.problem.python
    patch = requested is not None and any(Version(clause.version.removesuffix(".*")).micro for clause in requested)
    if patch:
        return f"python={solution.python}.*,{requested}", f"Python {requested} was requested"
    fact = solution.because[-1]
    return f"python={solution.python}", fact.text


def framework_reason(choice: Choice) -> str:
    """Return why this build was chosen: which of its code runs on which GPU, and what a wheel brings along."""
    release = choice.release
    if release.cuda is None:
        return "CPU build"
    served = ", ".join(f"{runs_as} runs on {gpu}" for gpu, runs_as in choice.runs_as.items())
    if release.source.is_wheel and release.cudnn and (release.brings_cudnn or is_exact(release.cudnn_requires)):
        brought = f"includes CUDA {release.cuda} and cuDNN {release.cudnn}"
        return f"{served}; {brought}" if served else brought
    return served or f"built for CUDA {release.cuda}"


def _conda_owns_cuda(release: Release) -> bool:
    return release.cuda is not None and (not release.source.is_wheel or release.cuda_libraries is CudaLibraries.NONE)


def _toolkit(solution: Solution) -> tuple[str, str]:
    assert solution.toolkit is not None
    version = solution.toolkit.version
    package = "cuda-version" if version.major >= FIRST_MODULAR_CUDA else CUDATOOLKIT
    if any(release.version >= _FIRST_WITH_PYTORCH_CUDA for release in _of_the_pytorch_channel(solution)):
        package = PYTORCH_CUDA
    windows = all(machine.windows_driver for machine in solution.problem.machines)
    floor = solution.toolkit.floor(windows=windows)
    return f"{package}={version}", f"runs from NVIDIA driver {floor} on"


def _conda_libraries(toolkit: Toolkit, releases: list[Release]) -> Iterator[tuple[str, str]]:
    """The libraries for wheels that bring none. cuda-version alone installs nothing, while cudatoolkit contains all.

    conda-forge's own builds require their libraries themselves.
    """
    if toolkit.version.major < FIRST_MODULAR_CUDA or not any(release.source.is_wheel for release in releases):
        return
    for package in _MODULAR_LIBRARIES:
        yield package, "the wheel does not include CUDA"


def _conda_cudnn(solution: Solution, releases: list[Release]) -> Iterator[tuple[str, str]]:
    if solution.cudnn is None or solution.cudnn_bound is None:
        return
    requested = [release for release in releases if release.cudnn_requires is not None and not release.brings_cudnn]
    packages = dict.fromkeys(release.cudnn_package or "cudnn" for release in requested)
    wildcard = next((c.version for r in requested for c in r.cudnn_requires or () if c.operator == "=="), None)
    floors = [Version(c.version) for r in requested for c in r.cudnn_requires or () if c.operator == ">="]
    for package in packages:
        if wildcard is not None:
            yield f"{package}={wildcard.removesuffix('.*')}", "the cuDNN it was built with"
        else:
            below = f"<{solution.cudnn_bound.below}"
            yield f"{package}>={max(floors)},{below}" if floors else f"{package}{below}", cudnn_reason(solution)


def cudnn_reason(solution: Solution) -> str:
    """Return why this cuDNN was chosen and none newer."""
    assert solution.cudnn is not None
    bound = solution.cudnn_bound
    if bound is not None and bound.dropped is not None:
        return f"cuDNN {bound.below} has no code for compute capability {bound.dropped}"
    return f"{solution.cudnn.version} is the newest that fits"


def _conda_versions(versions: str) -> str:
    return versions.replace("==", "=") if versions.startswith("==") else versions
