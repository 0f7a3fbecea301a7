"""How a build and a GPU stand to each other, by what a text tells and by the matrix, in the fields of explanations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.rules.code_reach import (
    SMI_TELLS,
    TOO_NEW,
    TOO_OLD,
    built_code,
    built_with,
    capability_fields,
    listed,
    names_of,
    reach_fields,
    runs_code_of,
    telling,
)
from envsolve.model.capability import CodeTarget, ComputeCapability
from envsolve.model.versions import CudaVersion

NEITHER = "no-code-for-gpu"
COVERED = "covered"
"""Further ways in which a build and a GPU stand to each other; the first is an explanation."""

LEAST = ("least", "least_of", "minimum")
"""Groups that hold the least capability that a build or program asks for."""

_NUMBER = re.compile(r"(?:sm|compute)_(\d{2,3})[af]?|(?<!\d)(\d{2,4})(?!\d)")
_KNOWN = ((5, 0), (6, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))


class Gpu(NamedTuple):
    """The GPU that a failure is about, as far as it is known: its name, its capability, its generation."""

    name: str | None = None
    capability: ComputeCapability | None = None
    generation: str | None = None

    @property
    def named(self) -> dict[str, str]:
        """Its name as a field."""
        return {} if self.name is None else {"gpu": self.name}


class Verdict(NamedTuple):
    """How a build stands to a GPU; ``sure`` where text or matrix show it."""

    way: str
    sure: bool


# what a text tells


def first_told(sightings: Iterable[Sighting], *fields: str) -> str | None:
    """The first of ``fields`` that one of ``sightings`` has."""
    return next((value for it in sightings for field in fields if (value := it.get(field))), None)


def gpu_of(case: Case, sightings: Sequence[Sighting]) -> Gpu:
    """The GPU that the failing lines name, else the first that the case tells."""
    capability = capability_from(first_told(sightings, "capability", "capability_of", "detected"))
    capability = capability or next(iter(targets_from(first_told(sightings, "cc"))), None) or case.capability
    capability = capability or capability_from(first_told(case.of("paddle-device"), "capability"))
    name = first_told(sightings, "gpu") or (case.gpus[0] if case.gpus else None)
    if capability is None and name is not None:
        capability = case.knowledge.capability_of(name)
    return Gpu(name, capability, first_told(sightings, "generation"))


def capability_from(text: str | None) -> ComputeCapability | None:
    """``12.0``, ``sm_120``, ``120``, ``120a`` or ``(12, 0)`` as a capability; None for anything else."""
    plain = re.sub(r"\s", "", text or "").strip("()").replace(",", ".").removesuffix("a").removesuffix("f")
    try:
        return ComputeCapability.parse(re.sub(r"(?<=\d\.\d)\.\d\Z", "", plain))
    except ValueError:
        return None


def targets_from(text: str | None) -> tuple[ComputeCapability, ...]:
    """Machine code in a list of architectures: ``sm_70 sm_75``, ``75 80``, or ``520,610`` as ggml writes it."""
    found = [(match[1], match[2]) for match in _NUMBER.finditer(text or "") if not match[0].startswith("compute")]
    of_ggml = all(number and len(number) > 2 and number.endswith("0") for _, number in found)  # noqa: PLR2004
    numbers = (named or (number[:-1] if of_ggml else number) for named, number in found)
    return tuple(sorted({it for it in map(capability_from, numbers) if it is not None}))


def build_targets(case: Case, sightings: Sequence[Sighting]) -> tuple[ComputeCapability, ...]:
    """What the build was compiled for, where the text lists it."""
    printed = first_told(case.of("architecture-list"), "has")
    lists = (first_told(sightings, "has", "ggml"), case.told("architectures"), printed)
    return next((targets for text in lists if (targets := targets_from(text))), ())


def capability_named(case: Case, generation: str | None) -> ComputeCapability | None:
    """A capability that stands for a generation told by name: the newest that separate GPUs of it have."""
    lives = case.knowledge.matrix.cuda.architectures
    of_it = [it.capability for it in lives if generation and it.name.casefold() == generation.casefold()]
    return max((it for it in of_it if not it.is_tegra), default=None)


# which way


def verdict(case: Case, gpu: Gpu, sightings: Sequence[Sighting]) -> Verdict | None:
    """How build and GPU stand to each other; asked are, in order, the text's list, its limits, the matrix."""
    capability = gpu.capability or capability_named(case, gpu.generation)
    if capability is None:
        return None
    if first_told(sightings, "too_old"):
        return Verdict(TOO_OLD, sure=True)
    if first_told(sightings, "needs", "newer"):
        return Verdict(TOO_NEW, sure=True)
    targets = build_targets(case, sightings)
    if targets:
        runs = any(CodeTarget(it).runs_as_machine_code(capability) for it in targets)
        return Verdict(COVERED if runs else _compared(capability, targets), sure=True)
    judged = _by_limits(capability, sightings) or _by_list(capability, sightings) or _by_matrix(case, capability)
    refused = first_told(sightings, "refused") is not None and judged.way != COVERED
    return judged._replace(sure=judged.sure or refused)


def _by_limits(capability: ComputeCapability, sightings: Sequence[Sighting]) -> Verdict | None:
    least = capability_from(first_told(sightings, *LEAST))
    most = capability_from(first_told(sightings, "most"))
    if least is not None and capability < least:
        return Verdict(TOO_OLD, sure=True)
    if most is not None and capability > most:
        return Verdict(COVERED if CodeTarget(most).runs_as_machine_code(capability) else TOO_NEW, sure=True)
    return None


def _by_list(capability: ComputeCapability, sightings: Sequence[Sighting]) -> Verdict | None:
    """By the first lines of PyTorch's list, which need not be all of it: it is printed for GPUs that are not in it."""
    targets = [it for sighting in sightings if (it := capability_from(sighting.get("listed"))) is not None]
    return Verdict(_compared(capability, targets), sure=True) if targets else None


def _by_matrix(case: Case, capability: ComputeCapability) -> Verdict:
    code = built_code(case, capability)
    if code is not None and code.sass:
        if code.machine_code_for(capability) is not None:
            return Verdict(COVERED, sure=True)
        by_ptx = code.runs_as(capability) is not None  # it may serve, or fail in a library that has none
        return Verdict(_compared(capability, [it.capability for it in code.sass]), sure=not by_ptx)
    span = case.knowledge.cuda_for(capability)
    cuda = case.built_cuda or (case.toolkit if case.framework is None else None)
    if span is not None and cuda is not None:
        if cuda < span[0] and not runs_code_of(case, capability, cuda):
            return Verdict(TOO_NEW, sure=True)
        if span[1] is not None and cuda > span[1]:
            return Verdict(TOO_OLD, sure=True)
    dropped = span is None or span[1] is not None
    return Verdict(TOO_OLD if dropped else TOO_NEW, sure=False)


def _compared(capability: ComputeCapability, targets: Sequence[ComputeCapability]) -> str:
    if capability > max(targets):
        return TOO_NEW
    return TOO_OLD if capability < min(targets) else NEITHER


# a GPU that is not known


def unknown_fields(case: Case, way: str) -> dict[str, str]:
    """For want of a GPU, which ones it would be, and what these need."""
    spans = [(it, case.knowledge.cuda_for(it)) for it in map(ComputeCapability._make, _KNOWN)]
    torch = case.framework in {None, "pytorch"}
    if way == TOO_NEW:
        firsts = [f"{it} ({names_of(case, it)}) CUDA {span[0]}" for it, span in spans if span and it >= (7, 5)]
        found = {
            "unknown_gpu": "The text does not name the GPU. It is this where the GPU came after the build: RTX 30 "
            "(8.6), RTX 40 (8.9), H100 (9.0), B200 (10.0) or RTX 50 (12.0). The first CUDA that compiles for each: "
            "{firsts}. A Jetson up to Orin (Nano sm_53, Xavier sm_72, Orin sm_87) is in no ordinary build for aarch64: "
            "it needs NVIDIA's wheels for its JetPack; Thor (sm_110) is in builds for CUDA 13 (cu130) only.".replace(
                "{firsts}", "; ".join(firsts)
            )
        }
        take = "For Blackwell (RTX 50, B200) that is PyTorch 2.7 or newer for CUDA 12.8 (cu128): upgrade torch."
        return found | ({"take": take} if torch else {"take": "Upgrade it to a build that came after the GPU."})
    lasts = [f"{it} ({names_of(case, it)}) CUDA {span[1]}" for it, span in spans if span and span[1]]
    found = {
        "unknown_gpu": "The text does not name the GPU. It is this where the GPU is an old one that the build has "
        "dropped: Kepler (3.x: K80), Maxwell (5.x: GTX 9xx, M60), Pascal (6.x: GTX 10xx, P100) or Volta (7.0: V100). "
        f"The last CUDA that compiles for each: 3.7 (sm_37, Kepler) CUDA 11.8; {'; '.join(lasts)}."
    }
    take = (
        "PyTorch's cu126 builds keep sm_50 to sm_70 (Maxwell to Volta) up to 2.14; the newer ones for CUDA 12.8 and "
        "13 have dropped them."
    )
    return found | ({"take": take} if torch else {})


def has_fields(case: Case, gpu: Gpu, sightings: Sequence[Sighting]) -> dict[str, str]:
    """What the build has code for, by the text or by the matrix."""
    targets: Sequence[object] = build_targets(case, sightings)
    if not targets:
        code = built_code(case, gpu.capability)
        targets = () if code is None else code.sass
    if not targets:
        return {}
    generation = f" The GPU is a {gpu.generation}." if gpu.generation else ""
    found = {"build_has": f"This build has code for compute capability {listed(targets)} only.{generation}"}
    return found | list_fields(case, build_targets(case, sightings))


_FEW = 3


def list_fields(case: Case, targets: Sequence[ComputeCapability]) -> dict[str, str]:
    """The CUDA of the builds of PyTorch that have just these targets, where the text tells of no other."""
    if not targets or case.framework != "pytorch" or case.built_cuda is not None:
        return {}
    releases = case.releases("pytorch") or case.knowledge.all_releases("pytorch", case.platform)
    alike = [it for it in releases if {target.capability for target in it.code.sass} == set(targets)]
    cudas = sorted({it.cuda for it in alike if it.cuda is not None})
    if not 0 < len(cudas) <= _FEW:
        return {}
    return {"list_of": f"That is the list of PyTorch's builds for CUDA {' or '.join(map(str, cudas))}."}


_OTHER_PROGRAMS = re.compile(
    r"ggml|gpu\.go|llama_server\.go|OpenCV|Numba|thrust|parallel_for|whisper\.cpp|caffe|ffmpeg", re.IGNORECASE
)
"""Names in lines of programs that are not PyTorch's and that the matrix does not know."""
_TAKE_ANOTHER = {
    True: "Take a release of the program that came after the GPU, or build it for the GPU.",
    False: "Take an older release of the program that still has the GPU, or build it for the GPU.",
}


def missing_fields(case: Case, gpu: Gpu, way: str, sightings: Sequence[Sighting]) -> dict[str, str]:
    """Every field of the three explanations on builds without code for a GPU."""
    found = _missing_fields(case, gpu, way, sightings)
    if case.framework is None and any(_OTHER_PROGRAMS.search(it.line) for it in sightings):
        found = {key: it for key, it in found.items() if key not in {"elsewhere", "extensions"}}
        found |= {"tell": SMI_TELLS, "take": _TAKE_ANOTHER[way == TOO_NEW]}
    return found


def _missing_fields(case: Case, gpu: Gpu, way: str, sightings: Sequence[Sighting]) -> dict[str, str]:
    found = {"tell": telling(case), **has_fields(case, gpu, sightings), **built_with(case), **gpu.named}
    capability = gpu.capability or capability_named(case, gpu.generation)
    if capability is None:
        return found | unknown_fields(case, way)
    found |= _limit_fields(sightings) | capability_fields(case, capability) | reach_fields(case, capability, way)
    if gpu.capability is None:
        found |= {"gpu": f"The {gpu.generation} GPU", "capability": f"{capability.major}.x"}
    if case.framework in {None, "pytorch"}:
        found["extensions"] = (
            "Install the packages that have kernels of their own (torchvision, xformers, flash-attn, bitsandbytes, "
            "mmcv) anew for that PyTorch, too."
        )
    return found | (_program_fields(found) if case.framework is None else {})


def _limit_fields(sightings: Sequence[Sighting]) -> dict[str, str]:
    """The least capability that the text names, and the CUDA that it asks for."""
    least, needs = first_told(sightings, *LEAST), first_told(sightings, "needs")
    found = {} if least is None else {"least": least}
    cuda = None if needs is None else CudaVersion.from_driver_api(int(needs))
    return found if cuda is None else found | {"requires": f"PyTorch says that this GPU needs a build for CUDA {cuda}."}


def _program_fields(fields: dict[str, str]) -> dict[str, str]:
    """How to compile a program of one's own for a GPU."""
    last = fields.get("last_cuda")
    cuda = f"CUDA {last} or older" if last else f"CUDA {fields.get('first_cuda', 'that knows it')} or newer"
    return {
        "compile": "For any other program (C++, a Docker image, llama.cpp): take a release whose list of "
        f"architectures has it, or build it with {cuda} and -DCMAKE_CUDA_ARCHITECTURES={fields['number']}."
    }
