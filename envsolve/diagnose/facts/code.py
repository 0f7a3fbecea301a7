"""Facts on code for GPUs: what a build has code for, how the GPU stands to it, and which builds have code for the GPU.

Machine code runs on one major compute capability only, so a build serves the GPUs it was compiled for and their later
minors. "The GPU" is the one that the judged lines name, else the first that is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from envsolve.diagnose.case import TITLES, Case, Lines
from envsolve.diagnose.facts import parts
from envsolve.diagnose.facts.shared.gpu_code import (
    Build,
    builds_with_code,
    built_code,
    built_codes,
    capability_from,
    capability_in,
    edge,
    first_field,
    for_old_drivers,
    platform_for,
    runs_code_of,
    targets_in,
)
from envsolve.diagnose.facts.shared.pip_commands import torch_command
from envsolve.frameworks import DEPENDENT_FRAMEWORKS
from envsolve.model.capability import CodeTarget, ComputeCapability
from envsolve.model.release import Release
from envsolve.model.versions import CudaVersion, parsed_version

_COVERED, _TOO_NEW, _TOO_OLD, _BETWEEN = "covered", "too new", "too old", "between"
_BLACKWELL = ComputeCapability(10, 0)
_LEAST = ("least", "least_of", "minimum")
"""Groups that hold the least capability that a build or program runs on."""


# ---------------------------------------------------------------------------------------------- the GPU


def gpu_capability(case: Case, lines: Lines) -> ComputeCapability | None:
    """The compute capability of the GPU."""
    return capability_in(case, lines)


def gpu_target(case: Case, lines: Lines) -> ComputeCapability | None:
    """What to compile for: it, or of a GPU that is known by its generation the newest that separate ones of it have."""
    capability = capability_in(case, lines)
    generation = (first_field(lines, "generation") or "").casefold()
    lives = case.knowledge.matrix.cuda.architectures
    of_it = [it.capability for it in lives if it.name.casefold() == generation and not it.capability.is_tegra]
    return capability or max(of_it, default=None)


def family_cuda(case: Case, lines: Lines) -> CudaVersion | None:
    """An earlier CUDA whose code for older minors of the same major runs on the GPU."""
    capability = gpu_target(case, lines)
    first = None if capability is None else parts.first_cuda(case, capability)
    if first is None or capability is None:
        return None
    earlier = sorted(it.version for it in case.knowledge.matrix.cuda.toolkits if it.version < first)
    return next((it for it in earlier if runs_code_of(case, capability, it)), None)


# ---------------------------------------------------------------------------------------------- build and GPU


class _Verdict(NamedTuple):
    """How a build stands to a GPU: ``covered``, ``too new``, ``too old`` or ``between``.

    ``sure`` if text or matrix show it.
    """

    way: str
    sure: bool


def gpu_verdict(case: Case, lines: Lines) -> _Verdict | None:
    """How the build stands to the GPU: by the list in the text, its limits, the matrix. None without a GPU."""
    capability = gpu_target(case, lines)
    if capability is None:
        return None
    if first_field(lines, "too_old"):
        return _Verdict(_TOO_OLD, sure=True)
    if first_field(lines, "needs", "newer"):
        return _Verdict(_TOO_NEW, sure=True)
    targets = targets_in(case, lines)
    if targets:
        return _Verdict(_compared(capability, targets), sure=True)
    judged = _by_limits(capability, lines) or _by_list(capability, lines) or _by_matrix(case, capability)
    refused = first_field(lines, "refused") is not None and judged.way != _COVERED
    return judged._replace(sure=judged.sure or refused)


def _by_limits(capability: ComputeCapability, lines: Lines) -> _Verdict | None:
    least, most = capability_from(first_field(lines, *_LEAST)), capability_from(first_field(lines, "most"))
    if least is not None and capability < least:
        return _Verdict(_TOO_OLD, sure=True)
    if most is not None and capability > most:
        return _Verdict(_COVERED if CodeTarget(most).runs_as_machine_code(capability) else _TOO_NEW, sure=True)
    return None


def _by_list(capability: ComputeCapability, lines: Lines) -> _Verdict | None:
    """By the first lines of PyTorch's list, which need not be all of it: it is printed for GPUs that are not in it."""
    targets = [it for line in lines if (it := capability_from(line.get("listed"))) is not None]
    return _Verdict(_outside(capability, targets), sure=True) if targets else None


def _by_matrix(case: Case, capability: ComputeCapability) -> _Verdict:
    codes = built_codes(case, capability)
    if codes and all(code.machine_code_for(capability) is not None for code in codes):
        return _Verdict(_COVERED, sure=True)
    listed = [target.capability for code in codes for target in code.sass]
    by_ptx = any(code.runs_as(capability) for code in codes)  # it may serve, or fail in a library that has none
    if listed and (len(codes) == 1 or not by_ptx):
        return _Verdict(_outside(capability, listed), sure=not by_ptx)
    span = case.knowledge.cuda_for(capability)
    cuda = case.built_cuda or (case.toolkit if case.framework is None else None)
    if span is not None and cuda is not None:
        if cuda < span[0] and not runs_code_of(case, capability, cuda):
            return _Verdict(_TOO_NEW, sure=True)
        if span[1] is not None and cuda > span[1]:
            return _Verdict(_TOO_OLD, sure=True)
    if span is None or span[1] is not None:
        return _Verdict(_TOO_OLD, sure=False)
    return _Verdict(_TOO_NEW if capability >= _BLACKWELL else _BETWEEN, sure=False)  # others are in builds of years


def _compared(capability: ComputeCapability, targets: Sequence[ComputeCapability]) -> str:
    runs = any(CodeTarget(it).runs_as_machine_code(capability) for it in targets)
    return _COVERED if runs else _outside(capability, targets)


def _outside(capability: ComputeCapability, targets: Sequence[ComputeCapability]) -> str:
    if capability > max(targets):
        return _TOO_NEW
    return _TOO_OLD if capability < min(targets) else _BETWEEN


def only_warned(case: Case, lines: Lines) -> bool:
    """Whether PyTorch warned of a build, and nothing failed."""
    warned = all(any(it.get(field) for field in ("most", "capability", "refused")) for it in lines)
    refused = any(it.get("refused") and not it.get("version") for it in lines)
    return warned and (not refused or bool(targets_in(case, lines)))


def build_targets(case: Case, lines: Lines) -> tuple[ComputeCapability, ...]:
    """What the build has machine code for, by the text, or by the matrix if the text does not contradict it."""
    targets = targets_in(case, lines)
    limited = first_field(lines, *_LEAST, "too_old") is not None
    code = None if targets or limited else built_code(case, gpu_capability(case, lines))
    return targets if code is None else tuple(it.capability for it in code.sass)


def newest_target(case: Case, lines: Lines) -> ComputeCapability | None:
    """The newest capability that the build has code for, or the one whose code runs on the GPU."""
    most = capability_from(first_field(lines, "most")) or max(targets_in(case, lines), default=None)
    capability = gpu_capability(case, lines)
    code = built_code(case, capability)
    runs = None if most or code is None or capability is None else code.machine_code_for(capability)
    return most or (None if runs is None else runs.capability)


_FEW = 3


def list_cudas(case: Case, lines: Lines) -> tuple[CudaVersion, ...]:
    """The CUDA versions of the builds of PyTorch that have just the listed targets, if the text names no other."""
    targets = targets_in(case, lines)
    if not targets or case.framework != "pytorch" or case.built_cuda is not None:
        return ()
    releases = case.releases("pytorch") or case.knowledge.all_releases("pytorch", case.platform)
    alike = [it for it in releases if {target.capability for target in it.code.sass} == set(targets)]
    cudas = sorted({it.cuda for it in alike if it.cuda is not None})
    return tuple(cudas) if len(cudas) <= _FEW else ()


# ---------------------------------------------------------------------------------------------- builds for the GPU


def _capability_of_builds(case: Case, lines: Lines) -> ComputeCapability | None:
    """The capability for which a build is looked for, on a Jetson that of its board for want of another."""
    return gpu_target(case, lines) or (_of_board(case) if case.jetson else None)


def _having(case: Case, lines: Lines) -> tuple[Release, ...]:
    """Builds of the framework, or of PyTorch if nothing says whose the error is: most often it is PyTorch's."""
    capability = _capability_of_builds(case, lines)
    return () if capability is None else builds_with_code(case, capability, case.framework or "pytorch")


def first_build(case: Case, lines: Lines) -> Build | None:
    """The first build with code for the GPU: PyTorch 2.7.0 (cu128)."""
    having = _having(case, lines)
    return Build(edge(having, last=False)) if having else None


def last_build(case: Case, lines: Lines) -> Build | None:
    """The newest build with code for the GPU."""
    having = _having(case, lines)
    return Build(edge(having, last=True)) if having else None


def no_build_known(case: Case, lines: Lines) -> bool:
    """Whether the matrix has the framework, and no build of it with code for the GPU."""
    return case.framework in TITLES and gpu_target(case, lines) is not None and not _having(case, lines)


def public_version(case: Case, _lines: Lines) -> str | None:
    """The version of the framework without its local part; of a nightly, the release that it precedes."""
    version = case.version_of(case.framework)
    parsed = parsed_version(version)
    if version is None or parsed is None:
        return version
    return parsed.base_version if parsed.is_prerelease else version.partition("+")[0]


class _Builds(NamedTuple):
    """The builds of one version with code for a GPU, and those without: cu126."""

    good: tuple[str, ...]
    bad: tuple[str, ...]


def version_builds(case: Case, lines: Lines) -> _Builds | None:
    """The wheels of PyTorch's version with code for the GPU, and those without; None if there are not both."""
    version, capability = public_version(case, lines), _capability_of_builds(case, lines)
    if version is None or case.framework != "pytorch" or capability is None:
        return None
    releases = case.knowledge.releases(case.framework, version, platform_for(case, capability))
    wheels = [it for it in releases if it.cuda is not None and it.source.is_wheel]
    having = tuple(dict.fromkeys(it.build for it in wheels if it.code.machine_code_for(capability)))
    lacking = tuple(dict.fromkeys(it.build for it in wheels if it.code.runs_as(capability) is None))
    lacking = tuple(it for it in lacking if it not in having)
    return _Builds(having, lacking) if having and lacking else None


def conda_build(case: Case, lines: Lines) -> Build | None:
    """The newest build with code for the GPU, if it is conda's."""
    last = last_build(case, lines)
    return None if last is None or last.release.source.is_wheel else last


def build_command(case: Case, lines: Lines) -> str | None:
    """The command that installs a build for the GPU: of the same version, else one of an old CUDA, or the last."""
    builds = version_builds(case, lines)
    if builds is not None:
        releases = case.knowledge.releases("pytorch", public_version(case, lines) or "", case.platform)
        return torch_command(next(it for it in releases if it.build == builds.good[0]), again=True)
    having, capability = _having(case, lines), _capability_of_builds(case, lines)
    if not having or capability is None:
        return None
    verdict = gpu_verdict(case, lines)
    older = verdict is not None and verdict.way in (_TOO_OLD, _BETWEEN)
    return Build(edge(having, last=True) if older else for_old_drivers(case, capability, having)).command


_OTHER_PROGRAMS = re.compile(
    r"ggml|gpu\.go|llama_server\.go|OpenCV|Numba|thrust|parallel_for|whisper\.cpp|caffe|ffmpeg", re.IGNORECASE
)


def other_program(case: Case, lines: Lines) -> bool:
    """Whether a program says it that is not PyTorch's and that the matrix does not know."""
    texts = (*(it.line for it in lines), _extension(case) or "")
    return case.framework is None and any(map(_OTHER_PROGRAMS.search, texts))


def maybe_pytorch(case: Case, lines: Lines) -> bool:
    """Whether it is PyTorch, or nothing says whose the error is."""
    return case.framework in (None, "pytorch") and not other_program(case, lines)


# ---------------------------------------------------------------------------------------------- extensions

_OWN_LEAST = {
    "vllm": ("vLLM", ComputeCapability.parse(DEPENDENT_FRAMEWORKS["vllm"].least)),
    "sgl_kernel": ("SGLang (sgl-kernel)", ComputeCapability.parse(DEPENDENT_FRAMEWORKS["sglang"].least)),
    "flash_attn": ("FlashAttention 2", ComputeCapability(8, 0)),
}
"""Packages whose own kernels begin at a capability: the installation notes of each."""
_FILES = {
    "csrc/ops.cu": "bitsandbytes",
    "torchvision/csrc": "torchvision",
    "third_party/flash-attention": "xFormers",
    "flash-attention": "FlashAttention 3",
    "No compiled": "vllm",
    "ggml-cuda": "llama.cpp (ggml)",
    "ggml_cuda": "llama.cpp (ggml)",
}
"""Source files that an error names, or its words, and the packages they are of."""


def _extension(case: Case) -> str | None:
    """The library with kernels of its own that is named last; a name counts before a source file."""
    frames = case.of("extension-frame")
    named = [it["extension"] for frame in frames if (it := frame.fields).get("extension")]
    files = [it["extension_file"] for frame in frames if (it := frame.fields).get("extension_file")]
    found = [*(_FILES.get(it.replace("\\", "/"), it) for it in files), *named]
    return found[-1] if found else None


def extension_name(case: Case, _lines: Lines) -> str | None:
    """That library, as its makers write it."""
    name = _extension(case)
    if name is None:
        return None
    if "sage" in name.casefold():
        return "SageAttention"
    return _OWN_LEAST[name.casefold()][0] if name.casefold() in _OWN_LEAST else name


def extension_least(case: Case, lines: Lines) -> ComputeCapability | None:
    """The capability at which its kernels begin, if the GPU is older."""
    capability = gpu_capability(case, lines)
    least = _OWN_LEAST.get((_extension(case) or "").casefold())
    return least[1] if least is not None and capability is not None and capability < least[1] else None


def later_extensions(case: Case, lines: Lines) -> tuple[str, ...]:
    """Packages whose kernels begin above the GPU, if no library is named: vLLM from 7.0."""
    capability = gpu_capability(case, lines)
    if case.saw("extension-frame") or capability is None:
        return ()
    return tuple(f"{title} from {least}" for title, least in _OWN_LEAST.values() if capability < least)


# ---------------------------------------------------------------------------------------------- Jetson

_BOARDS = {"orin": (8, 7), "xavier": (7, 2), "tx2": (6, 2), "nano": (5, 3), "tx1": (5, 3), "thor": (11, 0)}
_ORIN, _THOR = ComputeCapability(8, 7), ComputeCapability(11, 0)


def gpu_of_jetson(case: Case, lines: Lines) -> bool:
    """Whether it is the GPU of a Jetson module; 11.0 is Thor's, which other boards have, too."""
    capability = gpu_capability(case, lines)
    tegra = capability is not None and capability.is_tegra
    return tegra or (case.jetson and capability in {None, _THOR})


def jetson_board(case: Case, _lines: Lines) -> str | None:
    """The board: Xavier."""
    boards = " ".join(case.every("jetson")).casefold()
    return next((name.capitalize() for name in _BOARDS if name in boards), None)


def _of_board(case: Case) -> ComputeCapability | None:
    board = jetson_board(case, ())
    return None if board is None else ComputeCapability(*_BOARDS[board.casefold()])


def jetson_capability(case: Case, lines: Lines) -> ComputeCapability | None:
    """The capability of its GPU, by the board for want of a GPU."""
    return gpu_capability(case, lines) or _of_board(case)
