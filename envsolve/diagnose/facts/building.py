"""Facts on building extensions: the CUDA toolkit that a build finds, the host compiler, what is built."""

from __future__ import annotations

import re

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.diagnose.facts.pytorch import pytorch_cuda
from envsolve.diagnose.facts.shared.gpu_packages import is_of_gpus
from envsolve.model.release import Source
from envsolve.model.versions import CudaVersion

_GCC_SINCE = {8: "10.1", 9: "11.0", 10: "11.1", 11: "11.4", 12: "12.0", 13: "12.4", 14: "12.8", 15: "13.0"}
"""The first CUDA that takes a gcc as host compiler (host_config.h of the toolkits, as gathered in ax3l/9489132)."""
_NAMES = {"FlashAttention": "flash-attn", "flash_attn": "flash-attn"}
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def found_major(_case: Case, lines: Lines) -> str | None:
    """The major of the CUDA that nvcc is of."""
    return (merged(lines).get("found") or "").partition(".")[0] or None


def torch_builds(case: Case, lines: Lines) -> tuple[str, ...]:
    """The builds of PyTorch's index for the CUDA of nvcc: its minor, or for want of it those of its major."""
    found = merged(lines).get("found")
    if found is None:
        return ()
    major, _, minor = found.partition(".")
    builds = {it.build for it in case.knowledge.all_releases("pytorch") if it.source is Source.PYTORCH}
    same = tuple(it for it in builds if it == f"cu{major}{minor}")
    return same or tuple(sorted(it for it in builds if re.fullmatch(rf"cu{major}\d", it)))


def isolated_build(case: Case, _lines: Lines) -> bool:
    """Whether pip or uv builds in an environment that has no other package."""
    return any("pip-build-env" in step or "builds-v0" in step for step in case.every("build_step"))


def gpu_package(_case: Case, lines: Lines) -> str | None:
    """The package, built for CUDA, that the lines name, by pip's name."""
    fields = merged(lines)
    named = [it for key in ("package", "package_of_nvcc") if (it := fields.get(key))]
    return next((it for name in named if is_of_gpus(it := _NAMES.get(name, name.replace("_", "-")))), None)


def built_package(case: Case, _lines: Lines) -> str | None:
    """The package that pip or uv builds."""
    names = [it.replace("_", "-") for it in case.every("building") if it.lower() not in ("torch", "setup.py")]
    return names[-1] if names else None


def build_toolkit(case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA toolkit to build with: that of PyTorch, unless the package needs a newer one."""
    least = least_toolkit(case, lines)
    built = pytorch_cuda(case)
    return built if built is not None and (least is None or built >= CudaVersion.parse(least)) else None


def least_toolkit(_case: Case, lines: Lines) -> str | None:
    """The oldest CUDA toolkit that a package can be built with."""
    fields = merged(lines)
    return fields.get("least") or fields.get("least_of_nvcc") or ("12.8" if fields.get("since_12_8") else None)


# ---------------------------------------------------------------------------------------------- where nvcc is


def nvcc_path(_case: Case, lines: Lines) -> str | None:
    """Where a build looks for nvcc, if it is more than its name."""
    return _path(lines) or None


def _path(lines: Lines) -> str:
    fields = merged(lines)
    path = fields.get("path") or fields.get("path_run") or fields.get("path_shell") or ""
    return path if "/" in path or "\\" in path else ""


def _home(lines: Lines) -> str:
    return re.sub(r"[\\/]+bin[\\/]+nvcc(?:\.exe)?$", "", _path(lines))


def cuda_home_list(_case: Case, lines: Lines) -> str | None:
    """CUDA_HOME where it is a list of directories, as a search path is."""
    home = _home(lines)
    return home if ":" in home and not _DRIVE.match(home) else None


def cuda_home(_case: Case, lines: Lines) -> str | None:
    """The first directory of such a list."""
    return next((it for it in _home(lines).split(":") if it.startswith("/")), None)


def bare_image(case: Case, _lines: Lines) -> str | None:
    """A CUDA image without a compiler that the text names."""
    return next((it for it in case.every("cuda_image") if re.search(r"runtime|base", it)), None)


def in_image(case: Case, lines: Lines) -> bool:
    """Whether it happened in a container, by more than the advice of a package's own message."""
    advice = re.compile(r"installing within a container|hub\.docker\.com/r/pytorch", re.IGNORECASE)
    named = any(not advice.search(it.line) for it in case.clues.get("container", ()))
    return named or bare_image(case, lines) is not None


# ---------------------------------------------------------------------------------------------- host compilers


def gcc_major(_case: Case, lines: Lines) -> int | None:
    """The newest gcc that this nvcc takes."""
    fields = merged(lines)
    if "gcc" in fields:
        return int(fields["gcc"].partition(".")[0])
    if "cuda" not in fields:
        return None
    cuda = CudaVersion.parse(fields["cuda"])
    return max((gcc for gcc, since in _GCC_SINCE.items() if CudaVersion.parse(since) <= cuda), default=None)


def next_gcc(case: Case, lines: Lines) -> int | None:
    """The gcc after that."""
    major = gcc_major(case, lines)
    return None if major is None or major + 1 not in _GCC_SINCE else major + 1


def next_gcc_cuda(case: Case, lines: Lines) -> str | None:
    """The first CUDA that takes it."""
    return _GCC_SINCE.get(next_gcc(case, lines) or 0)


def late_studio(_case: Case, lines: Lines) -> bool:
    """Whether an nvcc that knows Visual Studio 2022 finds a release of it that came later."""
    studio = merged(lines).get("studio", "")
    return "2022" in studio and "2017" in studio


# ---------------------------------------------------------------------------------------------- headers


def header_name(_case: Case, lines: Lines) -> str | None:
    """The file name of a header."""
    return merged(lines).get("header", "").rpartition("/")[2] or None


def cupy_named(case: Case, _lines: Lines) -> bool:
    """Whether the text names CuPy."""
    return "cupy" in case.every("gpu_name")


def old_name(_case: Case, lines: Lines) -> str | None:
    """A name of PyTorch's C++ that newer releases do not have."""
    fields = merged(lines)
    return next((it for key in ("old", "old_gcc", "old_type") if (it := fields.get(key))), None)


def cxx_standard(_case: Case, lines: Lines) -> str | None:
    """The C++ standard that PyTorch's headers need."""
    fields = merged(lines)
    return fields.get("standard") or fields.get("standard_old")


def vllm_on_windows(case: Case, _lines: Lines) -> bool:
    """Whether it is vLLM that is installed or run on native Windows."""
    named = "vllm" in case.packages or any(it.casefold() == "vllm" for it in case.every("gpu_name"))
    return named and case.windows and not case.wsl
