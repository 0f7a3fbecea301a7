"""``--format environment``: a conda environment.yml that a person can read, each pin with its reason.

CUDA stays inside the environment: it comes from conda-forge beside conda builds, from the wheels' own dependencies or
their inside otherwise, and from conda-forge's cudatoolkit and cudnn beside wheels that bring none. The file is written
line by line because its comments are half of its worth, and no YAML library of the standard weight writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from envsolve.lock.answer import Answer
from envsolve.lock.header import made_by, made_for
from envsolve.lock.wheels import index_options, is_exact, requirements_of, toolkit_pins
from envsolve.model.release import CudaLibraries, Release, Source, Toolkit
from envsolve.model.solution import Choice, Owner, Solution

_FIRST_MODULAR_CUDA = 12
"""From CUDA 12 on conda-forge splits the toolkit into packages that cuda-version ties together; before, it is one."""
_MODULAR_LIBRARIES = (
    *("cuda-cudart-dev", "cuda-nvrtc", "libcublas", "libcufft"),
    *("libcurand", "libcusolver", "libcusparse"),
)
"""What conda-forge's own build of CuPy asks for (conda-forge/cupy-feedstock, recipe/meta.yaml): the runtime with the
headers that kernels are compiled with at run time, the compiler, and the libraries."""
_FIRST_WITH_PYTORCH_CUDA = Version("1.13")
"""From 1.13 on the builds of the channel pytorch ask for pytorch-cuda, which pins NVIDIA's packages; before, for
cudatoolkit (records of the channel)."""
_PRELOADS = {"onnxruntime": "import onnxruntime; onnxruntime.preload_dlls()"}
"""The call after which a framework finds CUDA libraries installed by pip (onnxruntime.ai/docs/execution-providers,
CUDA-ExecutionProvider, Preload DLLs)."""
_OWNED_BY = {
    Owner.CONDA: "conda packages of this file",
    Owner.PIP: "wheels that pip installs, or what lies inside them",
}
_ANY_BUILD = "*"
"""The toolkit beside it chooses the build."""
_COMMENT_COLUMN = 44
_PLAIN = re.compile(r"[A-Za-z_./][\w./:+~=-]*(?<!:)")
_YAML_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")


def environment_yml(answer: Answer) -> str:
    """The content of the file, the same bytes for the same answer."""
    return "".join(f"{line}\n" for line in _lines(answer))


def _lines(answer: Answer) -> Iterator[str]:
    solution = answer.solution
    yield from _header(answer)
    yield f"name: {_name(solution)}"
    yield "channels:"
    for channel in _channels(solution):
        yield f"  - {_scalar(channel)}"
    yield "dependencies:"
    for spec, reason in _conda_specs(solution):
        yield _commented(f"  - {spec}", reason)
    wheels = [choice for choice in solution.choices if choice.release.source.is_wheel]
    if wheels:
        yield "  - pip"
        yield "  - pip:"
        for line, reason in _pip_lines(solution, wheels):
            yield _commented(f"    - {line}", reason)


def _header(answer: Answer) -> Iterator[str]:
    solution = answer.solution
    yield from made_by(answer.envsolve_version, answer.command, answer.matrix_date, own_matrix=answer.own_matrix)
    yield from made_for(answer)
    if solution.problem.cpu:
        return
    if solution.owner is not None and len(solution.choices) > 1:
        yield f"# CUDA and cuDNN: {_OWNED_BY[solution.owner]}, for all of the frameworks"
    if any(_needs_library_path(choice.release) for choice in solution.choices):
        yield "# The wheel looks for this environment's CUDA libraries on the library path only. After activating it:"
        yield "#   export LD_LIBRARY_PATH=$CONDA_PREFIX/lib"
    for choice in solution.choices:
        call = _PRELOADS.get(choice.release.framework)
        if call is not None and choice.release.cuda_libraries is CudaLibraries.DEPENDENCIES:
            yield from _asks_for_a_call(choice.release, call)
    if solution.toolkit is not None and all(it.release.source is Source.CONDA_FORGE for it in solution.choices):
        yield "# To create it on a machine without the GPU, put"
        yield f"#   CONDA_OVERRIDE_CUDA={solution.toolkit.version}"
        yield "# before conda or mamba: the builds ask for the virtual package __cuda."


def _asks_for_a_call(release: Release, call: str) -> Iterator[str]:
    """Wheels whose CUDA libraries lie where the loader does not look; conda's lie where it does."""
    if release.source.is_wheel:
        yield f"# {release.framework} uses the CUDA libraries of its extras after this call only; without it, the CPU:"
        yield f"#   {call}"


def _needs_library_path(release: Release) -> bool:
    """Wheels that bring no CUDA find it through the loader; on Windows an activated environment is on its path."""
    return release.cuda_libraries is CudaLibraries.NONE and not release.platform.is_windows


def _name(solution: Solution) -> str:
    frameworks = "-".join(choice.release.framework for choice in solution.choices)
    return f"{frameworks}-{'cpu' if solution.toolkit is None else f'cuda{solution.toolkit.version.major}'}"


def _channels(solution: Solution) -> list[str]:
    """The user's channels with what is missing: conda-forge last, PyTorch's first as conda-forge has a pytorch too."""
    given = solution.request.channels
    names = {channel.rstrip("/").rpartition("/")[2] for channel in given}
    before = [channel for channel in _own_channels(solution) if channel not in names]
    after = [] if "conda-forge" in names else ["conda-forge"]
    return [*before, *given, *after]


def _own_channels(solution: Solution) -> tuple[str, ...]:
    """PyTorch's channel, and NVIDIA's for the CUDA that its builds ask for."""
    if not _of_the_pytorch_channel(solution):
        return ()
    return ("pytorch",) if solution.toolkit is None else ("pytorch", "nvidia")


def _of_the_pytorch_channel(solution: Solution) -> list[Release]:
    return [choice.release for choice in solution.choices if choice.release.source is Source.PYTORCH_CHANNEL]


def _conda_specs(solution: Solution) -> Iterator[tuple[str, str]]:
    yield _python(solution)
    for choice in solution.choices:
        release = choice.release
        if release.source.is_wheel:
            continue
        build = "" if release.build_string == _ANY_BUILD else f"={release.build_string}"
        yield f"{release.package}={release.version}{build}", _framework_reason(choice)
        for package, versions in release.companions:
            yield f"{package}{_conda_versions(versions)}", f"goes with {release.package} {release.version}"
        for constraint in release.constraints:
            yield constraint, f"{release.package} {release.version} breaks without it"
    conda_cuda = [choice.release for choice in solution.choices if _conda_owns_cuda(choice.release)]
    if solution.toolkit is not None and conda_cuda:
        yield _toolkit(solution)
        yield from _conda_libraries(solution.toolkit, conda_cuda)
        yield from _conda_cudnn(solution, conda_cuda)


def _python(solution: Solution) -> tuple[str, str]:
    asked = solution.problem.python
    patch = asked is not None and any(Version(clause.version.removesuffix(".*")).micro for clause in asked)
    if patch:
        return f"python={solution.python}.*,{asked}", f"Python {asked} was asked for"
    fact = solution.because[-1]
    return f"python={solution.python}", fact.text


def _framework_reason(choice: Choice) -> str:
    release = choice.release
    if release.cuda is None:
        return "CPU build"
    served = ", ".join(f"{runs_as} runs on {gpu}" for gpu, runs_as in choice.runs_as.items())
    if release.source.is_wheel and release.cudnn and (release.brings_cudnn or is_exact(release.cudnn_requires)):
        brought = f"brings CUDA {release.cuda} and cuDNN {release.cudnn}"
        return f"{served}; {brought}" if served else brought
    return served or f"built for CUDA {release.cuda}"


def _conda_owns_cuda(release: Release) -> bool:
    return release.cuda is not None and (not release.source.is_wheel or release.cuda_libraries is CudaLibraries.NONE)


def _toolkit(solution: Solution) -> tuple[str, str]:
    assert solution.toolkit is not None
    version = solution.toolkit.version
    package = "cuda-version" if version.major >= _FIRST_MODULAR_CUDA else "cudatoolkit"
    if any(release.version >= _FIRST_WITH_PYTORCH_CUDA for release in _of_the_pytorch_channel(solution)):
        package = "pytorch-cuda"
    windows = all(machine.windows_driver for machine in solution.problem.machines)
    floor = solution.toolkit.floor(windows=windows)
    return f"{package}={version}", f"runs from NVIDIA driver {floor} on"


def _conda_libraries(toolkit: Toolkit, releases: list[Release]) -> Iterator[tuple[str, str]]:
    """The libraries for wheels that bring none: cuda-version alone installs nothing, where cudatoolkit holds them all.

    conda-forge's own builds ask for theirs.
    """
    if toolkit.version.major < _FIRST_MODULAR_CUDA or not any(release.source.is_wheel for release in releases):
        return
    for package in _MODULAR_LIBRARIES:
        yield package, "which the wheel loads and does not bring"


def _conda_cudnn(solution: Solution, releases: list[Release]) -> Iterator[tuple[str, str]]:
    if solution.cudnn is None or solution.cudnn_bound is None:
        return
    asked = [release for release in releases if release.cudnn_requires is not None and not release.brings_cudnn]
    packages = dict.fromkeys(release.cudnn_package or "cudnn" for release in asked)
    wildcard = next((c.version for r in asked for c in r.cudnn_requires or () if c.operator == "=="), None)
    floors = [Version(c.version) for r in asked for c in r.cudnn_requires or () if c.operator == ">="]
    for package in packages:
        if wildcard is not None:
            yield f"{package}={wildcard.removesuffix('.*')}", "the cuDNN it was built with"
        else:
            below = f"<{solution.cudnn_bound.below}"
            yield f"{package}>={max(floors)},{below}" if floors else f"{package}{below}", _cudnn_reason(solution)


def _cudnn_reason(solution: Solution) -> str:
    assert solution.cudnn is not None
    bound = solution.cudnn_bound
    if bound is not None and bound.dropped is not None:
        return f"cuDNN {bound.below} has no code for compute capability {bound.dropped}"
    return f"{solution.cudnn.version} is the newest that fits"


def _pip_lines(solution: Solution, wheels: list[Choice]) -> Iterator[tuple[str, str]]:
    request = solution.request
    if request.index_url is not None:
        yield f"--index-url {request.index_url}", ""
    given = [f"--extra-index-url {index}" for index in request.extra_index_urls]
    needed = [option for choice in wheels for option in index_options(choice.release)]
    for option in dict.fromkeys([*given, *needed]):
        yield option, ""
    for choice in wheels:
        release = choice.release
        for requirement in requirements_of(release, solution.python):
            yield requirement, _framework_reason(choice)
        for constraint in release.constraints:
            yield constraint, f"{release.package} {release.version} breaks without it"
    for pin in toolkit_pins(solution):
        yield pin, "keeps the CUDA libraries together, where the wheel alone would take the newest"
    yield from _pip_cudnn(solution, [choice.release for choice in wheels])


def _pip_cudnn(solution: Solution, releases: list[Release]) -> Iterator[tuple[str, str]]:
    """Pin the cuDNN that metadata leaves open: pip takes the newest, which may hold no code for an older GPU."""
    for release in releases:
        open_range = release.cudnn_requires is not None and not is_exact(release.cudnn_requires)
        if open_range and release.cuda_libraries is CudaLibraries.DEPENDENCIES and solution.cudnn is not None:
            package = release.cudnn_package or f"nvidia-cudnn-cu{solution.cudnn.cuda_major}"
            yield f"{package}=={solution.cudnn.version}", _cudnn_reason(solution)
            return


def _conda_versions(versions: str) -> str:
    return versions.replace("==", "=") if versions.startswith("==") else versions


def _scalar(text: str) -> str:
    """``text`` as YAML: plain where it reads as a string, else quoted."""
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _commented(line: str, reason: str) -> str:
    return f"{line.ljust(_COMMENT_COLUMN)}  # {reason}" if reason else line
