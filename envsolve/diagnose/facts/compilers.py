"""Facts on compilers for GPU code: nvcc, NVRTC, ptxas, what is inside Triton and XLA, and what bitsandbytes brings.

``arch_...`` are facts on the compute capability that the compiler was to compile for.
"""

from __future__ import annotations

import re

from packaging.version import Version

from envsolve.diagnose.case import Case, Lines
from envsolve.diagnose.facts import parts
from envsolve.diagnose.facts.shared.gpu_code import (
    Build,
    builds_with_code,
    capability_from,
    capability_in,
    cuda_of_ptx,
    edge,
    first_field,
)
from envsolve.model.capability import ComputeCapability
from envsolve.model.release import Release
from envsolve.model.versions import CudaVersion, parsed_version

_KEPLER = ComputeCapability(3, 0)
_MAXWELL = ComputeCapability(5, 0)
_PASCAL = ComputeCapability(6, 0)
_BLACKWELL = ComputeCapability(10, 0)
_FERMI_ENDS = CudaVersion(8, 0)
"""The last toolkit for compute capability 2.x. CUDA 9.0, where the matrix begins, dropped it (release notes)."""
_DROPS_VOLTA = CudaVersion(13, 0)
_CUPY_FOR_13 = Version("13.6")
"""The first CuPy for CUDA 13: its release notes."""
_CUPY_IN_PATH = re.compile(r"[\\/]cupy-(\d+\.\d+[\w.]*?)-py\d")
_AT_RUN_TIME = re.compile(r"triton|xla|jax|tensorflow", re.IGNORECASE)
_BEHIND_A_REMARK = 20
"""The lines of the traceback that xFormers writes behind its remark that Triton is optional."""
_XLA_WORDS = (
    *("xla", "tensorflow", "jax", "ptxas does not support cc", "ptxas too old", "ptx version"),
    "software stack is old",
)


# ---------------------------------------------------------------------------------------------- what to compile for


def arch_capability(case: Case, lines: Lines) -> ComputeCapability | None:
    """The compute capability that the compiler was to compile for, for some that of the GPU."""
    symptom = lines[0].symptom if lines else ""
    if first_field(lines, "target"):  # code for an older one was to run on the GPU
        return case.capability if case.capability is not None and case.capability >= _BLACKWELL else None
    target = capability_from(first_field(lines, "arch", "value", "capability", "name"))
    if symptom == "nvrtc-without-architecture":
        return capability_in(case, lines) or target
    return target or (case.capability if symptom == "ptxas-too-old" else None)


def _of_arch(case: Case, lines: Lines) -> tuple[CudaVersion | None, CudaVersion | None]:
    """The first and the last toolkit that compile for it."""
    capability = arch_capability(case, lines)
    if capability is None:
        return None, None
    return parts.first_cuda(case, capability), parts.last_cuda(case, capability)


def arch_is_unknown(case: Case, lines: Lines) -> bool:
    """Whether no toolkit is known to compile for it."""
    return _of_arch(case, lines) == (None, None)


def arch_is_dropped(case: Case, lines: Lines) -> bool:
    """Whether the compiler no longer has it, and is not one that came before it."""
    first, last = _of_arch(case, lines)
    return last is not None and (first is None or case.toolkit is None or case.toolkit >= first)


def older_arch(case: Case, lines: Lines) -> ComputeCapability | None:
    """The newest capability that toolkits before the first for it, and this one, compile for."""
    capability, (first, _) = arch_capability(case, lines), _of_arch(case, lines)
    before = [it for it in case.knowledge.matrix.cuda.toolkits if first is not None and it.version < first]
    if case.toolkit is not None:
        before = [it for it in before if it.version <= case.toolkit]
    known = [it for toolkit in before[:1] for it in toolkit.compiles_for if capability and it < capability]
    return max((it for it in known if not it.is_tegra), default=None)


# ---------------------------------------------------------------------------------------------- builds


def _first_build(case: Case, lines: Lines) -> Release | None:
    """The first build whose CUDA itself compiles for the capability, not only for an older minor."""
    capability, (first, _) = arch_capability(case, lines), _of_arch(case, lines)
    if capability is None or first is None:
        return None
    framework = "pytorch" if lines[0].symptom == "torch-list-without-architecture" else None
    builds = builds_with_code(case, capability, framework)
    having = [it for it in builds if it.cuda is not None and it.cuda >= first]
    wheels = [it for it in having if it.source.is_wheel]
    return edge(wheels or having, last=False) if having else None


def first_build_for_arch(case: Case, lines: Lines) -> Build | None:
    """That build: PyTorch 2.7.0 (cu128)."""
    first = _first_build(case, lines)
    return None if first is None else Build(first)


def first_build_command(case: Case, lines: Lines) -> str | None:
    """The command that installs it, or the newest build for the same CUDA major, which old drivers run as well."""
    first, capability = _first_build(case, lines), arch_capability(case, lines)
    if first is None or first.cuda is None or capability is None:
        return None
    same = [it for it in builds_with_code(case, capability, first.framework) if it.source is first.source]
    newer = [it for it in same if it.cuda is not None and it.cuda.major == first.cuda.major]
    return Build(edge(newer or [first], last=True)).command


def last_build_for_arch(case: Case, lines: Lines) -> Build | None:
    """The newest build of the framework with code for it, of the installed version if there is one."""
    capability = arch_capability(case, lines)
    having = () if capability is None else builds_with_code(case, capability)
    version = parsed_version(case.version_of(case.framework))
    same = [it for it in having if version is not None and str(it.version) == version.public]
    return Build(edge(same or having, last=True)) if having else None


# ---------------------------------------------------------------------------------------------- NVRTC


def _nvrtc_cuda(case: Case) -> CudaVersion | None:
    """The CUDA of the NVRTC that runs: as CuPy prints it, else that of the build or of the machine."""
    printed = next(iter(case.of("nvrtc-version")), None)
    if printed is not None:
        return CudaVersion(int(printed.fields["major"]), int(printed.fields["minor"]))
    return case.built_cuda or case.toolkit


def nvrtc_lacks(case: Case, lines: Lines) -> str | None:
    """Whether NVRTC lacks a ``new`` GPU or an ``old`` one; None if the GPU decides, which is unknown.

    PyTorch has no code at all for the GPUs that CUDA 12 and older had dropped.
    """
    capability, cuda = arch_capability(case, lines), _nvrtc_cuda(case)
    if capability is None and cuda is not None:
        return "old" if cuda >= _DROPS_VOLTA else "new" if case.framework == "pytorch" else None
    if capability is None:
        return None
    span = case.knowledge.cuda_for(capability)
    if span is None:
        return "old" if capability < _KEPLER else "new"
    limited = cuda is not None and cuda <= _FERMI_ENDS and capability >= _PASCAL
    if span[1] is None or limited or (cuda is not None and cuda < span[0]):
        return "new"
    return "new" if capability >= _MAXWELL and _is_cupy_before_13(case, lines) else "old"


def _is_cupy_before_13(case: Case, lines: Lines) -> bool:
    """Whether it is a CuPy that came before CUDA 13, whose NVRTC therefore has dropped nothing from 5.0 on."""
    paths = [match[1] for it in lines if (match := _CUPY_IN_PATH.search(it.line))]
    version = parsed_version(case.version_of("cupy") or next(iter(paths), None))
    return version is not None and version < _CUPY_FOR_13


# ---------------------------------------------------------------------------------------------- ptxas


def ptxas_failure(case: Case, lines: Lines) -> str:
    """What ptxas fails on: ``dropped``, ``newer-gpu``, ``xla`` where XLA's own compiler does, or ``old``."""
    it = lines[0]
    if "does not support target" in it.line:
        return "xla"
    if it.get("target"):
        return "newer-gpu"
    built = capability_from(it.get("arch")) is not None and not _AT_RUN_TIME.search(it.line)
    return "dropped" if built and not arch_is_unknown(case, lines) and arch_is_dropped(case, lines) else "old"


def assembler_of(case: Case, lines: Lines) -> str:
    """The program that calls ptxas: Triton or XLA."""
    text = " ".join(it.line for it in lines).casefold()
    xla = case.framework in {"jax", "tensorflow"} or any(word in text for word in _XLA_WORDS)
    return "XLA" if xla and "triton" not in text else "Triton"


def ptxas_cuda(case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA that the ptxas must at least be of: for the GPU, for the PTX that it reads, and for the build."""
    builds = [it.cuda for it in case.releases() if it.cuda is not None]
    built = case.built_cuda or min(builds, default=None)
    known = (_of_arch(case, lines)[0], built, cuda_of_ptx(first_field(lines, "wanted_ptx")))
    needed = max((it for it in known if it is not None), default=None)
    toolkits = sorted(it.version for it in case.knowledge.matrix.cuda.toolkits)
    return next((it for it in toolkits if needed is not None and it >= needed), needed)  # no toolkit was 12.7


def triton_is_needed(case: Case, lines: Lines) -> bool:
    """Whether Triton is missed by more than a package that says itself that it goes on without."""
    remarks = [it.number for it in case.of("harmless-optional") if "triton" in it.line.lower()]
    return not any(0 <= it.number - at <= _BEHIND_A_REMARK for it in lines for at in remarks)


# ---------------------------------------------------------------------------------------------- bitsandbytes, RAPIDS


def _bnb_number(lines: Lines) -> re.Match[str] | None:
    return re.search(r"cuda(\d{2})(\d)", first_field(lines, "library", "missing") or "")


def bnb_cuda(_case: Case, lines: Lines) -> str | None:
    """The CUDA of that library: CUDA 12.8."""
    number = _bnb_number(lines)
    return None if number is None else f"CUDA {number[1]}.{number[2]}"


def bnb_other_cuda(_case: Case, lines: Lines) -> str | None:
    """Another CUDA of the same major that current releases have a library for."""
    number = _bnb_number(lines)
    other = {"13": "130", "12": "126", "11": "118"}.get("" if number is None else number[1])
    return None if number is None or other == number[1] + number[2] else other
