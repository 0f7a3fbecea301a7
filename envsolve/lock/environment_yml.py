"""``--format environment``: a conda environment.yml that a person can read, each pin with its reason.

CUDA stays inside the environment: it comes from conda packages (:mod:`envsolve.lock.conda_specs`), or from the wheels'
own dependencies or their inside. The file is written line by line because its comments are half of its worth, and no
YAML library of the standard weight writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsolve.lock.answer import Answer
from envsolve.lock.conda_specs import channels_of, conda_specs, cudnn_reason, environment_name, framework_reason
from envsolve.lock.header import made_by, made_for
from envsolve.lock.wheels import index_options, is_exact, requirements_of, toolkit_pins
from envsolve.model.release import CudaLibraries, Release, Source
from envsolve.model.solution import Choice, Owner, Solution

_PRELOADS = {"onnxruntime": "import onnxruntime; onnxruntime.preload_dlls()"}
"""The call after which a framework finds CUDA libraries installed by pip (onnxruntime.ai/docs/execution-providers,
CUDA-ExecutionProvider, Preload DLLs)."""
_OWNED_BY = {
    Owner.CONDA: "conda packages of this file",
    Owner.PIP: "wheels that pip installs, or what lies inside them",
}
_COMMENT_COLUMN = 44
_PLAIN = re.compile(r"[A-Za-z_./][\w./:+~=-]*(?<!:)")
_YAML_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")


def environment_yml(answer: Answer) -> str:
    """The content of the file, the same bytes for the same answer."""
    return "".join(f"{line}\n" for line in _lines(answer))


def _lines(answer: Answer) -> Iterator[str]:
    solution = answer.solution
    yield from _header(answer)
    yield f"name: {environment_name(solution)}"
    yield "channels:"
    for channel in channels_of(solution):
        yield f"  - {_scalar(channel)}"
    yield "dependencies:"
    for spec, reason in conda_specs(solution):
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
            yield requirement, framework_reason(choice)
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
            yield f"{package}=={solution.cudnn.version}", cudnn_reason(solution)
            return


def _scalar(text: str) -> str:
    """``text`` as YAML: plain where it reads as a string, else quoted."""
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _commented(line: str, reason: str) -> str:
    return f"{line.ljust(_COMMENT_COLUMN)}  # {reason}" if reason else line
