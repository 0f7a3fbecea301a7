"""Rules on ptxas, the assembler that Triton and XLA call at run time, and on what is inside these themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.facts.gpu_code import capability_from, first_told
from envsolve.diagnose.rules.code_compilers import dropped, nvcc
from envsolve.diagnose.rules.code_coverage import Gpu
from envsolve.diagnose.rules.code_reach import capability_fields
from envsolve.diagnose.rules.named import known
from envsolve.model.capability import ComputeCapability
from envsolve.model.versions import CudaVersion


class _Assembler(NamedTuple):
    """A program that calls ptxas: how it is called, and what gives it another one."""

    whose: str
    fix: str
    command: str
    tell: str


_TRITON = _Assembler(
    "Triton (torch.compile, vLLM, SageAttention, ...)",
    "Take a newer Triton with the PyTorch that it belongs to{versions}, or set TRITON_PTXAS_PATH to the ptxas of "
    "{span}.",
    "export TRITON_PTXAS_PATH=/usr/local/cuda{suffix}/bin/ptxas",
    'python -c "import triton; print(triton.__version__, triton.__path__)"; ptxas --version; echo $TRITON_PTXAS_PATH',
)
_XLA = _Assembler(
    "XLA (JAX, TensorFlow)",
    "Give XLA the ptxas of {span}: the package nvidia-cuda-nvcc-cu12 (or nvidia-cuda-nvcc for CUDA 13) "
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
    gone = tuple(it for it in sightings if it not in in_xla and _dropped_by_ptxas(case, it))
    others = tuple(it for it in sightings if it not in in_xla and it not in before and it not in gone)
    if gone:
        yield from nvcc(case, gone)
    if before:
        yield Diagnosis((_before_blackwell(case, before[0]),), before)
    if in_xla:
        yield Diagnosis((_xla(case, in_xla[0]),), in_xla)
    if others and not (case.framework == "tensorflow" and case.saw("tensorflow-without-code")):
        yield Diagnosis((_ptxas(case, others),), others)


_AT_RUN_TIME = re.compile(r"triton|xla|jax|tensorflow", re.IGNORECASE)


def _dropped_by_ptxas(case: Case, sighting: Sighting) -> bool:
    """Whether a build asks ptxas for an architecture that newer toolkits no longer have."""
    capability = capability_from(sighting.get("arch"))
    span = None if capability is None else case.knowledge.cuda_for(capability)
    return span is not None and dropped(case, span) and not _AT_RUN_TIME.search(sighting.line)


def _ptxas(case: Case, sightings: Sequence[Sighting]) -> Cause:
    arch = first_told(sightings, "arch", "value")
    capability = capability_from(arch) or capability_from(first_told(sightings, "capability")) or case.capability
    gpu = Gpu(case.gpus[0] if case.gpus else None, capability)
    fields = {**gpu.named, **_ptx_words(sightings), **_ptxas_seen(case)}
    if capability is not None:
        fields |= capability_fields(case, capability)
        fields["capability_words"] = "" if gpu.name is None else f" ({capability})"
    if arch is not None:
        fields["unknown_to_ptxas"] = f"does not know sm_{arch}"
    needed = _newest(fields.get("first_cuda"), cuda_of_ptx(first_told(sightings, "wanted_ptx")), _cuda_of(case))
    span = None if capability is None else case.knowledge.cuda_for(capability)
    fields |= _assembler_fields(_assembler(case, sightings), capability, needed, None if span is None else span[1])
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
    in_triton = case.framework is None and "triton" in " ".join(it.line for it in case.sightings).casefold()
    return Cause("ptxas-too-old", fields, Remedy(("pytorch",)) if in_triton else None)


def _cuda_of(case: Case) -> str | None:
    """The CUDA that the build at hand is for, or the oldest of those that it may be: no older ptxas reads its PTX."""
    may_be = [it.cuda for it in case.releases() if it.cuda is not None]
    found = case.built_cuda or min(may_be, default=None)
    return None if found is None else str(found)


def _newest(*versions: str | None) -> str | None:
    """The newest of versions of CUDA, as far as they are known."""
    return max((it for it in versions if it is not None), key=CudaVersion.parse, default=None)


_OF_TOOLKIT = re.compile(r"cuda-(\d{1,2}\.\d)/bin/ptxas")
_LINES_OF_A_VERSION = 4
"""The lines that ptxas --version prints, of which the first names it and the last its release."""


def _ptxas_seen(case: Case) -> dict[str, str]:
    """The release of the ptxas that the text shows: as XLA names it, as it prints it, or by the toolkit it lies in."""
    named = first_told(case.of("ptxas-faulty"), "ptxas")
    if named is not None:
        return {"ptxas_seen": ".".join(named.split(".")[:2])}
    starts = [it.number for it in case.clues.get("ptxas", ())]
    for clue in case.clues.get("toolkit", ()):
        if any(0 <= clue.number - start < _LINES_OF_A_VERSION for start in starts):
            return {"ptxas_seen": clue.value}
    paths = (_OF_TOOLKIT.search(it) for it in case.every("ptxas_path"))
    return next(({"ptxas_seen": match[1]} for match in paths if match), {})


def faulty_ptxas(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """An assembler that XLA warns of; where it fails on the GPU, that is told instead."""
    if case.saw("ptxas-too-old"):
        return
    least, required = first_told(sightings, "ptxas_least"), first_told(sightings, "required")
    fields = known(
        ptxas=first_told(sightings, "ptxas"),
        ptxas_least=least,
        least_words=least and f" ({least} or newer)",
        required=required,
        ptxas_used=case.told("ptxas_used"),
        below_bin=case.told("ptxas_below_bin"),
    )
    if required is not None:
        before = None if case.framework is not None else Remedy(("tensorflow",))
        yield Diagnosis((Cause("ptxas-before-cuda-9", fields, before),), sightings)
        return
    remedy = None if case.framework in {"jax", "tensorflow"} else Remedy(("jax",))
    yield Diagnosis((Cause("ptxas-faulty", fields, remedy),), sightings)


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
    assembler: _Assembler, capability: ComputeCapability | None, cuda: str | None, last: CudaVersion | None
) -> Mapping[str, str]:
    """``cuda`` is what the ptxas has to be of at least, ``last`` the last that knows the GPU, None where all do."""
    versions = "" if capability is None else _TRITONS.get((capability.major, capability.minor), "")
    toolkit = f"CUDA {cuda}" if cuda else "CUDA of the GPU's time"
    span = f"{toolkit} or newer"
    if last is not None:
        first = "" if cuda is None or CudaVersion.parse(cuda) >= last else f"{cuda} to "
        span = f"CUDA {first}{last}, the last that knows this GPU"
    words = {"span": span, "suffix": f"-{cuda}" if cuda else "", "versions": versions}
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


RULES: Mapping[str, Rule] = {
    "ptxas-too-old": ptxas,
    "ptxas-faulty": faulty_ptxas,
    "triton-without-cuda": triton_unknown_cuda,
}
