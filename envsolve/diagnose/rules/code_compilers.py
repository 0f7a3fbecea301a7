"""Rules on compilers that do not know the GPU: nvcc, NVRTC and ptxas of a toolkit that is too old or too new for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.version import Version

from envsolve.diagnose.case import Case, Sighting, parsed_version
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.rules.code_coverage import Gpu, capability_from, first_told, gpu_of, unknown_fields
from envsolve.diagnose.rules.code_reach import (
    TOO_NEW,
    TOO_OLD,
    build_words,
    builds_with_code,
    built_with,
    capability_fields,
    edge,
    reach_fields,
    taking,
    telling,
)
from envsolve.model.capability import ComputeCapability
from envsolve.model.versions import CudaVersion

# nvcc


def nvcc(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """An architecture that nvcc is asked for and does not have: it came later, or was dropped before."""
    arch = first_told(sightings, "arch", "value") or ""
    capability = capability_from(arch)
    span = None if capability is None else case.knowledge.cuda_for(capability)
    fermi = capability is not None and capability < (3, 0)
    if capability is None or (span is None and not fermi):
        yield Diagnosis((Cause("nvcc-unknown-architecture", {"arch": arch}),), sightings)
        return
    fields = {"arch": arch, **capability_fields(case, capability)}
    if _dropped(case, span):
        fields["gpu_arch_words"] = f"{case.capability or 'nvidia-smi --query-gpu=compute_cap --format=csv shows it'}"
        yield Diagnosis((Cause("nvcc-too-new-for-architecture", fields),), sightings)
        return
    own, older = case.capability, _older(case, capability)
    if own is not None and own != capability:
        fields["own_code"] = f"TORCH_CUDA_ARCH_LIST={own}, CMAKE_CUDA_ARCHITECTURES={_number(own)}"
    elif older is not None:
        fields["older_code"] = f"TORCH_CUDA_ARCH_LIST={older}, CMAKE_CUDA_ARCHITECTURES={_number(older)}"
        if older.major != capability.major:
            fields["older_code"] += " with PTX (9.0+PTX), which the driver compiles at the first start".replace(
                "9.0", str(older)
            )
    if own is not None and own.is_tegra:
        fields["jetson_capability"] = str(own)
    yield Diagnosis((Cause("nvcc-too-old-for-architecture", fields),), sightings)


def _dropped(case: Case, span: tuple[CudaVersion, CudaVersion | None] | None) -> bool:
    """Whether nvcc has dropped a capability that toolkits of ``span`` compile for, and not yet to learn it."""
    if span is None:
        return True
    if case.toolkit is not None and case.toolkit < span[0]:
        return False
    return span[1] is not None


def _older(case: Case, capability: ComputeCapability) -> ComputeCapability | None:
    """The newest capability that toolkits before the first for ``capability`` compile for."""
    span = case.knowledge.cuda_for(capability)
    before = [it for it in case.knowledge.matrix.cuda.toolkits if span is not None and it.version < span[0]]
    if case.toolkit is not None:
        before = [it for it in before if it.version <= case.toolkit]
    known = [it for toolkit in before[:1] for it in toolkit.compiles_for if it < capability and not it.is_tegra]
    return max(known, default=None)


def _number(capability: ComputeCapability) -> str:
    return f"{capability.major}{capability.minor}"


# PyTorch's own list


def torch_list(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A PyTorch that compiles extensions and came before the GPU."""
    capability = capability_from(first_told(sightings, "capability", "name"))
    if capability is None:
        return
    fields = capability_fields(case, capability) | built_with(case)
    fields |= first_for_compiler(case, capability, "pytorch")
    older = _older(case, capability)
    if older is not None:
        fields["older_list"] = f"{older}+PTX"
    yield Diagnosis((Cause("torch-list-without-architecture", fields, Remedy(("pytorch",))),), sightings)


def first_for_compiler(case: Case, capability: ComputeCapability, framework: str | None = None) -> dict[str, str]:
    """The first build of the framework whose CUDA itself compiles for ``capability``, not only for an older minor."""
    span = case.knowledge.cuda_for(capability)
    builds = builds_with_code(case, capability, framework)
    having = [it for it in builds if span and it.cuda is not None and it.cuda >= span[0]]
    if not having:
        return {}
    first = edge(having, last=False)
    return {"take": f"Take {build_words(first)} or newer: {taking(first)}."}


# NVRTC


def nvrtc(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A compiler at run time that does not know the GPU; without a GPU, both ways."""
    failing = tuple(it for it in sightings if not it.get("arch"))
    if not failing:
        return  # options alone are no error
    gpu, cuda = gpu_of(case, sightings), _cuda_of_nvrtc(case)
    arch = capability_from(first_told(sightings, "arch"))
    gpu = gpu._replace(capability=gpu.capability or arch)
    ways: tuple[str, ...] = (TOO_NEW, TOO_OLD)
    if gpu.capability is not None:
        ways = (_way(case, gpu.capability, cuda, sightings),)
    elif cuda is not None and cuda >= _DROPS_VOLTA:
        ways = (TOO_OLD,)
    causes = [_nvrtc_cause(case, gpu, way) for way in ways]
    if all(it.get("option") for it in failing):
        causes = [it._replace(fields={**it.fields, **_INVALID_OPTION}) for it in causes]
    yield Diagnosis(tuple(causes), sightings)


_DROPS_VOLTA = CudaVersion(13, 0)
_LAST_LIMITED = CudaVersion(8, 0)
"""Up to here NVRTC accepts compute_53 at most, though nvcc knows Pascal (its documentation; cupy/cupy#1048)."""
_PASCAL = ComputeCapability(6, 0)
_CUPY_WITH_13 = Version("13.6")
"""The first CuPy for CUDA 13: its release notes."""
_CUPY_IN_PATH = re.compile(r"[\\/]cupy-(\d+\.\d+[\w.]*?)-py\d")
_INVALID_OPTION = {
    "invalid_option": "NVRTC_ERROR_INVALID_OPTION says that NVRTC refused an option; most often it is the GPU's "
    "architecture (--gpu-architecture), else one that came with a newer NVRTC."
}


def _cuda_of_nvrtc(case: Case) -> CudaVersion | None:
    """The CUDA of the NVRTC that runs: as CuPy tells it, else that of the build or of the machine."""
    told = next(iter(case.of("nvrtc-version")), None)
    if told is not None:
        return CudaVersion(int(told.fields["major"]), int(told.fields["minor"]))
    return case.built_cuda or case.toolkit


def _way(case: Case, capability: ComputeCapability, cuda: CudaVersion | None, sightings: Sequence[Sighting]) -> str:
    span = case.knowledge.cuda_for(capability)
    if span is None:
        return TOO_OLD if capability < (3, 0) else TOO_NEW
    if cuda is not None and (cuda < span[0] or (cuda <= _LAST_LIMITED and capability >= _PASCAL)):
        return TOO_NEW
    if span[1] is not None and capability >= (5, 0) and _is_cupy_before_13(case, sightings):
        return TOO_NEW
    return TOO_OLD if span[1] is not None else TOO_NEW


def _is_cupy_before_13(case: Case, sightings: Sequence[Sighting]) -> bool:
    """Whether it is a CuPy that came before CUDA 13, whose NVRTC therefore has dropped nothing from 5.0 on."""
    paths = [match[1] for it in sightings if (match := _CUPY_IN_PATH.search(it.line))]
    version = parsed_version(case.version_of("cupy") or next(iter(paths), None))
    return version is not None and version < _CUPY_WITH_13


def _nvrtc_here(case: Case, capability: ComputeCapability) -> dict[str, str]:
    """What is known of an NVRTC that is too old for a capability."""
    span = case.knowledge.cuda_for(capability)
    if span is None:
        return {}
    if capability.major != _PASCAL.major:
        return _plainly_first(span[0], capability)
    return {
        "nvrtc_first": f"NVRTC of CUDA 8.0 accepts compute_53 at most, although nvcc of CUDA 8.0 knows {capability}: "
        "CUDA 9.0 is the first whose NVRTC compiles for it. Newer versions of the programs that use NVRTC (CuPy) lower "
        "what they ask for."
    }


def _plainly_first(cuda: CudaVersion, capability: ComputeCapability) -> dict[str, str]:
    return {
        "nvrtc_first": f"CUDA {cuda} is the first whose NVRTC compiles for {capability}; the NVRTC that was loaded "
        "here is older."
    }


_DROPPED_BY_13 = {
    "last_cuda": "12.9",
    "unknown_gpu": "CUDA 13.0 dropped Maxwell, Pascal and Volta (compute capability 5.0 to 7.0: GTX 9xx, GTX 10xx, "
    "P100, V100): its NVRTC compiles for 7.5 (Turing) and newer only. It is this where the GPU is one of those.",
}


def _nvrtc_cause(case: Case, gpu: Gpu, way: str) -> Cause:
    name = "nvrtc-too-old-for-gpu" if way == TOO_NEW else "nvrtc-too-new-for-gpu"
    fields = {"tell": telling(case), **gpu.named, **built_with(case)}
    cuda = _cuda_of_nvrtc(case)
    if cuda is not None:
        fields["nvrtc_here"] = f"The CUDA here is {cuda}."
    if gpu.capability is None:
        fields |= unknown_fields(case, way)
        if way == TOO_OLD and cuda is not None and cuda >= _DROPS_VOLTA:
            fields |= _DROPPED_BY_13 | reach_fields(case, ComputeCapability(7, 0), way)
        return Cause(name, fields)
    fields |= capability_fields(case, gpu.capability)
    if way == TOO_OLD:
        return Cause(name, fields | reach_fields(case, gpu.capability, way))
    fields |= _nvrtc_here(case, gpu.capability)
    remedy = Remedy(cuda=f">={fields['first_cuda']}") if "first_cuda" in fields else None
    fields |= first_for_compiler(case, gpu.capability)
    if "take" not in fields and "first_cuda" in fields:
        fields["nvrtc_take"] = f"Give the program NVRTC of CUDA {fields['first_cuda']} or newer."
    if case.framework == "pytorch":
        fields["elsewhere"] = (
            "PyTorch 1.13 and newer ask NVRTC for the newest architecture that it knows where the GPU is a newer "
            "minor of the same major (RTX 40 with CUDA 11.6 or 11.7)."
        )
    return Cause(name, fields, remedy)


# ptxas


class _Assembler(NamedTuple):
    """A program that calls ptxas: how it is called, and what gives it another one."""

    whose: str
    fix: str
    command: str
    tell: str


_TRITON = _Assembler(
    "Triton (torch.compile, vLLM, SageAttention, ...)",
    "Take a newer Triton with the PyTorch that it belongs to{versions}, or set TRITON_PTXAS_PATH to the ptxas of CUDA "
    "{cuda} or newer.",
    "export TRITON_PTXAS_PATH=/usr/local/cuda{suffix}/bin/ptxas",
    'python -c "import triton; print(triton.__version__, triton.__path__)"; ptxas --version; echo $TRITON_PTXAS_PATH',
)
_XLA = _Assembler(
    "XLA (JAX, TensorFlow)",
    "Give XLA the ptxas of CUDA {cuda} or newer: the package nvidia-cuda-nvcc-cu12 (or nvidia-cuda-nvcc for CUDA 13) "
    "in the environment, or a toolkit whose bin comes first on PATH, or "
    "XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda{suffix}.",
    "export PATH=/usr/local/cuda{suffix}/bin:$PATH",
    "which -a ptxas; ptxas --version; pip list | grep -i nvcc",
)
_TRITONS = {
    (8, 9): ": Triton 2.1.0 (PyTorch 2.1) knows RTX 40",
    (10, 0): ": Triton 3.3 (PyTorch 2.7) knows Blackwell",
    (12, 0): ": Triton 3.3 (PyTorch 2.7) knows Blackwell",
}
"""The first Triton for a capability: ModelTC/LightLLM#176 and the notes of triton-windows on releases."""
_PTX = {8: {5: "12.5", 6: "12.7", 7: "12.8", 8: "12.9"}}
"""PTX versions whose minor is not that of the toolkit (PTX ISA, release history; a table in cuda.bindings.utils)."""
_PTX_MAJORS = {6: 9, 7: 11, 8: 12, 9: 13}
_PTX_SIX = {3: "10.0", 4: "10.1", 5: "10.2"}


def cuda_of_ptx(version: str | None) -> str | None:
    """The first CUDA with a version of PTX: 12.8 of 8.7."""
    major, _, minor = (version or "").partition(".")
    if not major.isdecimal() or not minor.isdecimal() or int(major) not in _PTX_MAJORS:
        return None
    special = (_PTX_SIX if major == "6" else _PTX.get(int(major), {})).get(int(minor))
    return special or f"{_PTX_MAJORS[int(major)]}.{minor}"


def ptxas(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """An assembler older than the GPU, or than the PTX that it is given; XLA's own compiler comes first."""
    in_xla = tuple(it for it in sightings if "does not support target" in it.line)
    before = tuple(it for it in sightings if it.get("target"))
    others = tuple(it for it in sightings if it not in in_xla and it not in before)
    if before:
        yield Diagnosis((_before_blackwell(case, before[0]),), before)
    if in_xla:
        yield Diagnosis((_xla(case, in_xla[0]),), in_xla)
    if others and not (case.framework == "tensorflow" and case.saw("tensorflow-without-code")):
        yield Diagnosis((_ptxas(case, others),), others)


def _ptxas(case: Case, sightings: Sequence[Sighting]) -> Cause:
    arch = first_told(sightings, "arch", "value")
    capability = capability_from(arch) or capability_from(first_told(sightings, "capability")) or case.capability
    gpu = Gpu(case.gpus[0] if case.gpus else None, capability)
    fields = {**gpu.named, **_ptx_words(sightings)}
    if capability is not None:
        fields |= capability_fields(case, capability)
        fields["capability_words"] = "" if gpu.name is None else f" ({capability})"
    if arch is not None:
        fields["unknown_to_ptxas"] = f"does not know sm_{arch}"
    needed = fields.get("first_cuda") or cuda_of_ptx(first_told(sightings, "wanted_ptx"))
    fields |= _assembler_fields(_assembler(case, sightings), capability, needed)
    if capability in {(10, 1), (11, 0)}:
        fields["thor_words"] = (
            "Jetson Thor is sm_101 in CUDA 12.8 and 12.9 and sm_110 (11.0) from CUDA 13.0 on: only ptxas of CUDA 13.0 "
            "or newer knows sm_110."
        )
    if any("recognized processor" in it.line for it in sightings):
        fields["llvm_words"] = (
            "The compiler (LLVM) inside it does not know the GPU either: then no ptxas from outside helps, only a "
            "newer version of it."
        )
    return Cause("ptxas-too-old", fields)


def _assembler(case: Case, sightings: Sequence[Sighting]) -> _Assembler:
    lines = " ".join(it.line for it in sightings).casefold()
    if "triton" in lines:
        return _TRITON
    xla = (
        "xla",
        "tensorflow",
        "jax",
        "ptxas does not support cc",
        "ptxas too old",
        "ptx version",
        "software stack is old",
    )
    return _XLA if case.framework in {"jax", "tensorflow"} or any(word in lines for word in xla) else _TRITON


def _assembler_fields(
    assembler: _Assembler, capability: ComputeCapability | None, cuda: str | None
) -> Mapping[str, str]:
    versions = "" if capability is None else _TRITONS.get((capability.major, capability.minor), "")
    words = {"cuda": cuda or "of the GPU's time", "suffix": f"-{cuda}" if cuda else "", "versions": versions}
    return {
        "whose": assembler.whose,
        "ptxas_fix": assembler.fix.format_map(words),
        "ptxas_command": assembler.command.format_map(words),
        "ptxas_tell": assembler.tell,
    }


def _ptx_words(sightings: Sequence[Sighting]) -> dict[str, str]:
    """What the versions of PTX in an error say of toolkits."""
    wanted, ptx = first_told(sightings, "wanted_ptx"), first_told(sightings, "ptx")
    known = cuda_of_ptx(ptx)
    if known is None or wanted is None:
        return {}
    return {
        "unknown_to_ptxas": "is older than the PTX that it is given",
        "ptx_words": f"It was given PTX {wanted}, of CUDA {cuda_of_ptx(wanted)}, and reads PTX up to {ptx}, of CUDA "
        f"{known}.",
    }


_FIXES_OF_XLA = {
    "tensorflow": "Take a TensorFlow with code for the GPU: NVIDIA's NGC container, a conda-forge or nightly build "
    "for CUDA {cuda} or newer, or one from source.",
    "jax": "Take a JAX for CUDA {cuda} or newer: pip install -U 'jax[cuda{major}]', of the newest version.",
}


def _xla(case: Case, sighting: Sighting) -> Cause:
    """The compiler inside XLA, which writes the PTX of the CUDA that it was built for."""
    capability = capability_from(sighting.get("arch"))
    known = cuda_of_ptx(sighting.get("ptx"))
    gpu = Gpu(case.gpus[0] if case.gpus else None, capability)
    fields = {**gpu.named, "ptx": sighting.get("ptx") or "", "ptx_of": known or "an older release"}
    fields["sm"] = f"sm_{sighting.get('arch')}"
    if capability is not None:
        fields |= capability_fields(case, capability) | {"capability_words": f" ({capability})"}
    cuda = fields.get("first_cuda", "that knows the GPU")
    if case.framework != "tensorflow" and known is not None:
        fields["build_of"] = f"For JAX that is jax[cuda{known.partition('.')[0]}]."
    frameworks = (case.framework,) if case.framework in _FIXES_OF_XLA else tuple(_FIXES_OF_XLA)
    fixes = (_FIXES_OF_XLA[it or "jax"].format(cuda=cuda, major=cuda.partition(".")[0]) for it in frameworks)
    fields["xla_fix"] = " ".join(fixes)
    return Cause("xla-older-than-gpu", fields)


def _before_blackwell(case: Case, sighting: Sighting) -> Cause:
    """XLA that compiles for the newest GPU it knows, and meets a newer one."""
    newer = case.capability if case.capability is not None and case.capability >= (10, 0) else None
    fields = {"target": f"sm_{sighting.get('target')}"}
    if newer is not None:
        fields |= Gpu(case.gpus[0] if case.gpus else None).named | capability_fields(case, newer)
    return Cause("xla-before-blackwell", fields, Remedy(frameworks=("jax>=0.6",)))


def triton_unknown_cuda(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A Triton that is older than the CUDA it finds."""
    told = first_told(sightings, "toolkit_told")
    fields = {} if told is None else {"toolkit_told": told}
    yield Diagnosis((Cause("triton-older-than-cuda", fields),), sightings)


def nothing(_case: Case, _sightings: tuple[Sighting, ...]) -> Iterable[Diagnosis]:
    """Tells nothing by itself: other rules ask for the symptom."""
    return ()


RULES: Mapping[str, Rule] = {
    "nvrtc-version": nothing,
    "nvcc-without-architecture": nvcc,
    "torch-list-without-architecture": torch_list,
    "nvrtc-without-architecture": nvrtc,
    "ptxas-too-old": ptxas,
    "triton-without-cuda": triton_unknown_cuda,
}
