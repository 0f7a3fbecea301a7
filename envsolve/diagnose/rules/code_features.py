"""Rules on what needs a GPU of some capability although the build has code for it: data types, kernels, TensorRT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.facts.gpu_code import capability_from, first_told
from envsolve.diagnose.rules.code_coverage import Gpu, gpu_of
from envsolve.diagnose.rules.code_reach import capability_fields, names_of
from envsolve.model.capability import ComputeCapability


class Feature(NamedTuple):
    """Something that needs a GPU of a capability: what it is, what it needs by itself, what does without it."""

    words: str
    needs: str
    instead: str


_FLASH = Feature(
    "FlashAttention 2",
    "8.0",
    "Turn FlashAttention off: attn_implementation='sdpa' or 'eager' in transformers, another attention backend in "
    "vLLM, no flash-attn package. flash-attn 1.x runs on Turing (7.5).",
)
_FLASH_3 = Feature(
    "FlashAttention 3", "9.0", "Use FlashAttention 2 (8.0 and newer) or PyTorch's scaled_dot_product_attention."
)
_FEATURES = {
    "bfloat16-needs-ampere": Feature(
        "bfloat16",
        "8.0",
        "Use float16 (half) or float32: --dtype=half or float16 in vLLM and SGLang, fp16=True and bf16=False in the "
        "Trainer, torch_dtype=torch.float16.",
    ),
    "fp8-needs-ada": Feature(
        "FP8",
        "8.9",
        "Load the model in another type: no fp8 'fast' mode, float16, bfloat16, GGUF, AWQ or GPTQ weights.",
    ),
    "triton-needs-volta": Feature(
        "The Triton compiler (torch.compile, inductor)",
        "7.0",
        "Do without torch.compile: TORCHDYNAMO_DISABLE=1 or torch._dynamo.config.suppress_errors = True, "
        "backend='eager', compile=False in the program's settings.",
    ),
    "quantization-needs-gpu": Feature(
        "This quantization",
        "7.5",
        "Take the model in another form: float16 weights, GPTQ without Marlin, or GGUF with llama.cpp, which serve "
        "older GPUs.",
    ),
    "int8-needs-turing": Feature(
        "Fast int8 matrix multiplication (bitsandbytes, LLM.int8)",
        "7.5",
        "It works, slowly. 4-bit weights (load_in_4bit with a float16 compute type) or float16 are faster there.",
    ),
    "program-needs-capability": Feature(
        "This program", "7.0", "Take a version or fork of the program that supports older GPUs, or another program."
    ),
}


_OF_PROGRAM = "Neither another driver nor another CUDA toolkit changes it: the program was made for newer GPUs."


def lacking(case: Case, sightings: tuple[Sighting, ...], *, symptom: str) -> Iterator[Diagnosis]:
    """A feature that the GPU has not got."""
    feature = _FEATURES[symptom]
    if symptom == "int8-needs-turing" and first_told(sightings, "needs") is None:
        return  # the GPU alone
    if symptom == "program-needs-capability":
        said = {it.number for it in case.of(*(name for name in _FEATURES if name != symptom))}
        sightings = tuple(it for it in sightings if it.number not in said)
        if not sightings:
            return
    causes = [Cause("gpu-lacks-feature", _fields(case, sightings, feature))]
    if symptom == "bfloat16-needs-ampere" and any("Your setup" in it.line for it in sightings):
        able = case.capability is not None and case.capability >= (8, 0)
        causes.append(Cause("bfloat16-by-old-pytorch", {}))
        causes = list(reversed(causes)) if able else causes
    yield Diagnosis(tuple(causes), sightings)


def flash_attention(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """FlashAttention 2 wants Ampere, 3 wants Hopper."""
    hopper = any("hopper" in it.line.casefold() or "attention-3" in it.line.casefold() for it in sightings)
    yield Diagnosis((Cause("gpu-lacks-feature", _fields(case, sightings, _FLASH_3 if hopper else _FLASH)),), sightings)


def _fields(case: Case, sightings: Sequence[Sighting], feature: Feature) -> dict[str, str]:
    told = first_told(sightings, "needs", "least", "minimum", "required")
    needs = capability_from(told) or capability_from(first_told(sightings, "needs_arch"))
    needs = needs or ComputeCapability.parse(feature.needs)
    gpu = gpu_of(case, sightings)
    capability = capability_from(first_told(sightings, "capability", "arch")) or gpu.capability
    method = first_told(sightings, "method")
    fields = {} if feature is not _FEATURES["program-needs-capability"] else {"limit": _OF_PROGRAM}
    fields |= {
        "feature": f"The quantization {method}" if method else feature.words,
        "needs": str(needs),
        "needs_words": names_of(case, needs),
        "instead": feature.instead,
        **gpu.named,
    }
    if capability is None:
        older = "Turing (7.5: T4, RTX 20), Volta (7.0: V100) and Pascal (6.x: P100, GTX 10xx)"
        fields["lacks"] = (
            f"The GPU has less; {older} have less than 8.0." if needs >= (8, 0) else "The GPU has less than that."
        )
        return fields
    if capability >= needs:
        named = f"{fields.pop('gpu', 'The GPU that is told')} has {capability}, which is enough"
        fields["lacks"] = f"{named}: the program ran on another GPU, or this release of it does not know the newer one."
        fields["limit"] = "A newer release of the package may serve it."
        return fields
    return fields | {"capability": str(capability), "names": names_of(case, capability)}


def kernel_target(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Code with instructions that the architecture it is compiled for has not got: GPU or list of architectures."""
    said = {it.number for it in case.of(*_FEATURES)}
    sightings = tuple(it for it in sightings if it.number not in said)
    needs = max(filter(None, (capability_from(it.get("needs_arch")) for it in sightings)), default=None)
    if needs is None:
        return
    capability = case.capability
    feature = Feature(
        f"The code that is compiled here (instruction {first_told(sightings, 'instruction')})",
        str(needs),
        "Leave this kernel or package out, or take a version or another one that has kernels for older GPUs.",
    )
    fields = _fields(case, sightings, feature)
    lacks = Cause("gpu-lacks-feature", fields)
    listed = {
        "instruction": f"the instruction {first_told(sightings, 'instruction')}",
        "sm_needs": f"sm_{needs.major}{needs.minor}",
    }
    if capability is not None:
        listed["number"] = f"{capability.major}{capability.minor}"
    older = Cause("compiled-for-older-architecture", fields | listed)
    causes = (lacks, older) if capability is None else (lacks,) if capability < needs else (older,)
    yield Diagnosis(causes, sightings)


# xFormers


def xformers(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """The reasons why no kernel of xFormers serves, as it lists them."""
    capability = capability_from(first_told(sightings, "has"))
    if capability is None:
        return
    gpu = Gpu(case.gpus[0] if case.gpus else None, capability)
    fields = capability_fields(case, capability) | gpu.named
    newer = [it for it in sightings if it.get("age") == "new"]
    bound = capability_from(first_told(newer or sightings, "bound"))
    if bound is not None:
        fields["bound"] = str(bound)
    name = "xformers-too-old-for-gpu" if newer else "xformers-too-new-for-gpu"
    yield Diagnosis((Cause(name, fields),), sightings)


# TensorRT

_FIRST_TENSORRT = {8: {0: "7.1", 6: "8.0", 9: "8.5"}, 9: {0: "8.5"}, 10: {0: "10.8"}, 12: {0: "10.8"}}
"""The first TensorRT for a capability: its release notes (10.8: Blackwell) and NVIDIA/TensorRT#2727 (8.5: RTX 40)."""


def tensorrt(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """TensorRT and a GPU that it does not know yet or any more."""
    digits = first_told(sightings, "hex")  # 0x601 is 6.1, 0xc00 would be 12.0
    told = f"{int(digits[0], 16)}.{int(digits[2], 16)}" if digits else first_told(sightings, "arch")
    gpu = gpu_of(case, sightings)
    capability = capability_from(told) or gpu.capability
    fields = dict(gpu.named) | _version_of_tensorrt(case)
    if capability is None:
        fields["unknown_sm"] = (
            "The text does not name the GPU: RTX 30 (8.6) needs TensorRT 8.0, RTX 40 and H100 (8.9, 9.0) TensorRT "
            "8.5, RTX 50 and B200 (12.0, 10.0) TensorRT 10.8 with CUDA 12.8."
        )
        causes = (Cause("tensorrt-too-old-for-gpu", fields), Cause("tensorrt-too-new-for-gpu", fields))
        yield Diagnosis(causes, sightings)
        return
    fields |= capability_fields(case, capability)
    if capability < (7, 5):
        yield Diagnosis((Cause("tensorrt-too-new-for-gpu", fields),), sightings)
        return
    first = _FIRST_TENSORRT.get(capability.major, {}).get(capability.minor)
    if first is not None:
        fields["tensorrt_first"] = f"TensorRT {first} is the first for {capability}."
        fields["tensorrt_take"] = f"TensorRT {first} or newer"
    yield Diagnosis((Cause("tensorrt-too-old-for-gpu", fields),), sightings)


def _version_of_tensorrt(case: Case) -> dict[str, str]:
    sightings = case.of("tensorrt-version")
    version, code = first_told(sightings, "version"), first_told(sightings, "code")
    if code is not None:  # v100700 is 10.7.0, v8503 is 8.5.3
        digits = code.zfill(6)
        version = f"{int(digits[:2])}.{int(digits[2:4])}" if len(code) > len("8503") else f"{code[0]}.{code[1]}"
    return {} if version is None else {"tensorrt_version": version}


def engine_of_other_gpu(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """An engine that another kind of GPU built."""
    fields = {key: value for key in ("made_for",) if (value := first_told(sightings, key))}
    here = first_told(sightings, "has")
    fields |= {} if here is None else {"has_capability": here}
    yield Diagnosis((Cause("tensorrt-engine-of-other-gpu", fields),), sightings)


RULES: Mapping[str, Rule] = {
    **{symptom: partial(lacking, symptom=symptom) for symptom in _FEATURES},
    "flash-attention-needs-ampere": flash_attention,
    "kernel-needs-target": kernel_target,
    "xformers-needs-capability": xformers,
    "tensorrt-without-gpu": tensorrt,
    "tensorrt-engine-of-other-gpu": engine_of_other_gpu,
    "tensorrt-version": lambda case, sightings: (),  # noqa: ARG005 - told of nothing by itself
}
