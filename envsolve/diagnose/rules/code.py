"""Rules on GPUs for which there is no code: whether the build is older or newer than the GPU decides what mends it.

Machine code runs on one major compute capability only, so a build serves the GPUs it was compiled for and their later
minors. Where the text names no GPU, both directions are told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.rules import code_features, code_images
from envsolve.diagnose.rules.code_coverage import (
    COVERED,
    Gpu,
    Verdict,
    build_targets,
    capability_from,
    first_told,
    gpu_of,
    missing_fields,
    targets_from,
    verdict,
)
from envsolve.diagnose.rules.code_jetson import jetson, on_jetson
from envsolve.diagnose.rules.code_reach import (
    BLACKWELL,
    TOO_NEW,
    TOO_OLD,
    build_words,
    builds_with_code,
    built_code,
    built_with,
    capability_fields,
    edge,
    listed,
    names_of,
    reach_fields,
    runs_code_of,
    taking,
)
from envsolve.model.capability import CodeTarget, ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.versions import CudaVersion

_WITHOUT_OLD = CudaVersion(12, 8)
"""From here on wheels leave old GPUs out: PyTorch's for CUDA 12.8 do, and CUDA 13 compiles for none below 7.5."""

# no code


def no_code(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Kernels that the build has not got for the GPU."""
    if case.saw("amd-gpu") or (case.framework == "tensorflow" and case.saw("tensorflow-without-code")):
        return
    if case.saw("ptxas-too-old"):
        sightings = tuple(it for it in sightings if "named symbol" not in it.line)
    gpu = gpu_of(case, sightings)
    mismatch = tuple(it for it in sightings if it.get("arch_mismatch"))
    others = tuple(it for it in sightings if it not in mismatch)
    if mismatch:
        yield Diagnosis((_arch_mismatch(case, gpu, mismatch),), mismatch)
    if others:
        yield Diagnosis(tuple(_causes(case, gpu, others)), others)


def _causes(case: Case, gpu: Gpu, sightings: tuple[Sighting, ...]) -> Iterator[Cause]:
    """The likeliest first: what is sure stands alone, unless the kernel that failed was another library's."""
    if on_jetson(case, gpu):
        yield jetson(case, gpu, sightings)
        return
    judged, extension = verdict(case, gpu, sightings), extension_of(case)
    if judged is None:
        yield from _without_gpu(case, gpu, sightings, extension)
    elif any(_OWN_KERNEL.search(it.line) for it in sightings):
        yield _own_kernel(case, gpu, judged, sightings)
    elif judged.way == COVERED:
        if _only_warns(case, sightings):
            yield _harmless(case, gpu, sightings)
        else:
            yield _extension(case, gpu, extension, covered=True)
    else:
        yield from _with_gpu(case, gpu, judged, sightings, extension)


def _without_gpu(case: Case, gpu: Gpu, sightings: tuple[Sighting, ...], extension: str | None) -> Iterator[Cause]:
    drops = case.built_cuda is not None and case.built_cuda >= _WITHOUT_OLD
    if extension is not None:
        yield _extension(case, gpu, extension)
    newer = first_told(sightings, "newer") is not None
    for way in (TOO_NEW,) if newer else (TOO_OLD, TOO_NEW) if drops else (TOO_NEW, TOO_OLD):
        yield Cause(way, missing_fields(case, gpu, way, sightings))
    if extension is None:
        yield _extension(case, gpu, None)


def _with_gpu(
    case: Case, gpu: Gpu, judged: Verdict, sightings: tuple[Sighting, ...], extension: str | None
) -> Iterator[Cause]:
    missing = Cause(judged.way, missing_fields(case, gpu, judged.way, sightings))
    said_by_build = first_told(sightings, "least", "least_of", "most", "too_old", "refused") is not None
    if judged.sure and (case.framework is not None or said_by_build):
        yield missing
        if extension is not None:
            yield _extension(case, gpu, extension)
        return
    causes = (missing, _extension(case, gpu, extension))
    own_program = extension is not None and not judged.sure
    yield from reversed(causes) if own_program else causes


_OWN_KERNEL = re.compile(r"ONNXRuntimeError|ExecutionProvider|onnxruntime[\\/]core", re.IGNORECASE)
"""What ONNX Runtime alone says: it has no extensions, so the kernel that failed is its own."""


def _own_kernel(case: Case, gpu: Gpu, judged: Verdict, sightings: Sequence[Sighting]) -> Cause:
    """A kernel of the build itself, whatever the matrix says of it."""
    way = TOO_NEW if judged.way == COVERED else judged.way
    fields = missing_fields(case, gpu, way, sightings)
    remedy = None
    if gpu.capability is not None:
        fields["elsewhere"] = (
            f"Or build it for {gpu.capability}: CMAKE_CUDA_ARCHITECTURES={fields['number']}. The TensorRT provider "
            "compiles for the GPU itself and does not need these kernels."
        )
        having = builds_with_code(case, gpu.capability)
        if having:
            remedy = Remedy(frameworks=(f"onnxruntime>={edge(having, last=False).version}",))
    return Cause(way, fields, remedy)


# extensions and programs

_LEAST = {
    "vllm": ("vLLM", ComputeCapability(7, 0)),
    "flash_attn": ("FlashAttention 2", ComputeCapability(8, 0)),
    "sgl_kernel": ("SGLang (sgl-kernel)", ComputeCapability(7, 5)),
}
"""Packages whose own kernels begin at a capability: the installation notes of each."""

_FILES = {
    "csrc/ops.cu": "bitsandbytes",
    "torchvision/csrc": "torchvision",
    "ggml-cuda": "llama.cpp (ggml)",
    "ggml_cuda": "llama.cpp (ggml)",
}
"""Source files that an error names, and the packages they are of."""


def extension_of(case: Case) -> str | None:
    """The library with kernels of its own that a traceback or a message names last."""
    found = [it.get("extension") or it.get("extension_file") or "the program" for it in case.of("extension-frame")]
    return _FILES.get(found[-1].replace("\\", "/"), found[-1]) if found else None


def _extension(case: Case, gpu: Gpu, extension: str | None, *, covered: bool = False) -> Cause:
    fields = dict(gpu.named)
    if extension is not None:
        fields["extension"] = _LEAST[extension.casefold()][0] if extension.casefold() in _LEAST else extension
    if gpu.capability is None:
        return Cause("extension-without-code", fields)
    known = capability_fields(case, gpu.capability)
    fields |= {key: known[key] for key in ("capability", "number", "names")} | _beginning(case, gpu, extension)
    first = case.knowledge.cuda_for(gpu.capability)
    if first is not None and case.toolkit is not None and case.toolkit < first[0]:
        fields |= {"first_cuda": str(first[0]), "nvcc_words": f"nvcc of CUDA {first[0]} or newer"}
    if "last_cuda" in known:
        fields["old_gpu_of_program"] = (
            f"CUDA {known['last_cuda']} is the last toolkit that compiles for {gpu.capability}: take an older release "
            "of the program, one built with it, or another back end (Vulkan, CPU)."
        )
    if covered and case.version_of(case.framework) is not None:
        fields["covered"] = str(gpu.capability)
    return Cause("extension-without-code", fields)


def _beginning(case: Case, gpu: Gpu, extension: str | None) -> dict[str, str]:
    """Where the kernels of the package that failed, or of those that it may be, begin above the GPU."""
    named = None if extension is None else _LEAST.get(extension.casefold())
    candidates = tuple(_LEAST.values()) if extension is None else () if named is None else (named,)
    above = [(title, least) for title, least in candidates if gpu.capability is not None and gpu.capability < least]
    if not above:
        return {}
    words = "; ".join(f"{title}'s own kernels begin at {least} ({names_of(case, least)})" for title, least in above)
    end = " Its releases leave this GPU out: take a newer GPU, or a build of one's own for it." if named else ""
    return {"begins": f"{words}, whatever PyTorch covers.{end}"}


# warnings that do no harm


def _only_warns(case: Case, sightings: Sequence[Sighting]) -> bool:
    """Whether PyTorch warned of a build that covers the GPU, and nothing failed."""
    warned = all(any(it.get(field) for field in ("most", "capability", "refused")) for it in sightings)
    refused = any(it.get("refused") and not it.get("version") for it in sightings)
    return warned and (not refused or bool(build_targets(case, sightings)))


def _harmless(case: Case, gpu: Gpu, sightings: Sequence[Sighting]) -> Cause:
    most = capability_from(first_told(sightings, "most")) or max(build_targets(case, sightings), default=None)
    fields = dict(gpu.named)
    code = built_code(case, gpu.capability)
    if gpu.capability is not None:
        fields |= capability_fields(case, gpu.capability)
        runs = None if most is not None or code is None else code.machine_code_for(gpu.capability)
        most = most or (None if runs is None else runs.capability)
    if "first_driver" in fields:
        fields["compilers"] = (
            "Programs that compile kernels at run time (Triton, torch.compile, vLLM) need a ptxas that knows "
            f"{gpu.capability}, of CUDA {fields['first_cuda']}: set TRITON_PTXAS_PATH to it if one of them fails."
        )
    if most is not None:
        fields |= {"most": str(most), "most_number": f"{most.major}{most.minor}"}
    return Cause("capability-warning-harmless", fields)


# TensorFlow


def tensorflow_without_code(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """TensorFlow that has PTX alone for the GPU: on Blackwell it does not load, elsewhere it takes a while."""
    gpu = gpu_of(case, sightings)
    if gpu.capability is not None and gpu.capability.major < BLACKWELL:
        if any(it.get("capability") for it in sightings):
            fields = capability_fields(case, gpu.capability) | reach_fields(case, gpu.capability, TOO_NEW) | gpu.named
            yield Diagnosis((Cause("first-start-compiles", fields),), sightings)
        return
    fields = dict(gpu.named)
    if gpu.capability is None:
        fields["blackwell_unknown"] = (
            "The text does not name the GPU: these errors come from Blackwell, an RTX 50 or B200 (compute capability "
            "12.0 or 10.0)."
        )
    else:
        fields |= capability_fields(case, gpu.capability)
        having = builds_with_code(case, gpu.capability)
        if having:
            last = edge(having, last=True)
            fields["conda_build"] = f"{build_words(last)}, {taking(last)}"
    yield Diagnosis((Cause("tensorflow-without-blackwell", fields),), sightings)


# libraries of CUDA

_FIRST_WITHOUT_VOLTA = (9, 11)
"""The first cuDNN without code for compute capabilities below 7.5: see cudnn.toml of the matrix."""
_TURING = ComputeCapability(7, 5)
_MAXWELL = ComputeCapability(5, 0)
_STATUS = re.compile(r"CU\w+_STATUS_\w+|CUFFT_\w+")


def _arch_mismatch(case: Case, gpu: Gpu, sightings: Sequence[Sighting]) -> Cause:
    status = first_told(sightings, "arch_mismatch") or ""
    fields = {"status": status, "status_library": "cuDNN" if "CUDNN" in status.upper() else "the CUDA library"}
    fields |= gpu.named | _cudnn_found(case)
    if gpu.capability is None:
        return Cause("gpu-below-cudnn", fields)
    if _cudnn_has_dropped(case, gpu.capability):
        return Cause("cudnn-dropped-gpu", cudnn_fields(case, gpu))
    return Cause(
        "gpu-below-cudnn",
        fields | capability_fields(case, gpu.capability) | reach_fields(case, gpu.capability, TOO_OLD),
    )


def _cudnn_found(case: Case) -> dict[str, str]:
    return {"cudnn_found": f"cuDNN {case.cudnn} is what is installed."} if case.cudnn else {}


def _cudnn_has_dropped(case: Case, capability: ComputeCapability) -> bool:
    """Whether the cuDNN that is told is one of those that dropped ``capability``."""
    version = tuple(int(part) for part in re.findall(r"\d+", case.cudnn or "")[:2])
    return version >= _FIRST_WITHOUT_VOLTA and _MAXWELL <= capability < _TURING


def cudnn_fields(case: Case, gpu: Gpu) -> dict[str, str]:
    """Fields on a cuDNN that dropped a GPU: the last release that has it."""
    found = {"generation_words": "Maxwell, Pascal and Volta (5.0 to 7.0)", **gpu.named, **_cudnn_found(case)}
    capability = gpu.capability or _MAXWELL
    platform = case.platform or Platform.LINUX_64
    serving = [it.version for it in case.knowledge.matrix.cudnn if it.serves(capability, platform)]
    if serving:
        found["cudnn_last"] = ".".join(map(str, max(serving).release[:3]))
    if gpu.capability is None:
        return found
    reach = reach_fields(case, gpu.capability, TOO_OLD)
    return found | capability_fields(case, gpu.capability) | {key: it for key, it in reach.items() if key == "take"}


def library_without_code(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Errors of cuBLAS and others, where the GPU is newer than the build's CUDA."""
    gpu, cuda = gpu_of(case, sightings), _cuda_of_libraries(case)
    if case.saw("no-code-for-gpu", "cudnn-broken") or gpu.capability is None or cuda is None:
        return
    if _is_newer(case, gpu.capability, cuda):
        yield Diagnosis((Cause("library-too-old-for-gpu", _too_old_fields(case, gpu, cuda, sightings)),), sightings)


def _cuda_of_libraries(case: Case) -> CudaVersion | None:
    """The CUDA of the build, or that of the machine where nothing tells of a build with its own."""
    if case.built_cuda is not None or case.version_of(case.framework) is not None:
        return case.built_cuda
    return case.toolkit


def _is_newer(case: Case, capability: ComputeCapability, cuda: CudaVersion) -> bool:
    span = case.knowledge.cuda_for(capability)
    runs = capability != _TURING and runs_code_of(case, capability, cuda)  # cuBLAS 9 fails on Turing all the same
    return span is not None and cuda < span[0] and not runs


def _too_old_fields(case: Case, gpu: Gpu, cuda: CudaVersion, sightings: Sequence[Sighting]) -> dict[str, str]:
    assert gpu.capability is not None
    found = capability_fields(case, gpu.capability) | reach_fields(case, gpu.capability, TOO_NEW) | gpu.named
    match = _STATUS.search(sightings[0].line)
    if match is not None:
        found["status"] = match[0]
    found["built_cuda"] = str(cuda)
    return {"built_with": f"What runs here was built with CUDA {cuda}.", **found, **built_with(case)}


# what a build has


def architecture_list(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """The list that a build prints: compared with the GPU where one is known."""
    sighting = sightings[0]
    targets = targets_from(sighting.get("has"))
    if case.saw("no-code-for-gpu") or not targets:
        return
    pair = capability_from(f"{sighting.get('major')}.{sighting.get('minor')}")
    gpu = Gpu(case.gpus[0] if case.gpus else None, pair or case.capability)
    judged = verdict(case, gpu, sightings)
    if judged is None:
        yield Diagnosis((Cause("architectures-of-build", _list_fields(case, targets)),), sightings)
    elif judged.way != COVERED:
        yield Diagnosis((Cause(judged.way, missing_fields(case, gpu, judged.way, sightings)),), sightings)


_COMMON = ((3, 7), (5, 2), (6, 1), (7, 0), (7, 5), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))


def _list_fields(case: Case, targets: Sequence[ComputeCapability]) -> dict[str, str]:
    """Fields on a list: which GPUs it leaves out, and what serves the nearest of them."""
    gpus = map(ComputeCapability._make, _COMMON)
    left = [it for it in gpus if not any(CodeTarget(target).runs_as_machine_code(it) for target in targets)]
    found = {"build_has": f"This build has machine code for compute capability {listed(targets)}."}
    if left:
        words = listed(f"{it} ({names_of(case, it)})" for it in left)
        found["not_covered"] = f"It has none for {words}: such a GPU cannot use it."
    for field, way, nearest in (
        ("for_old", TOO_OLD, max((it for it in left if it < min(targets)), default=None)),
        ("for_new", TOO_NEW, max((it for it in left if it > max(targets)), default=None)),
    ):
        if nearest is None:
            continue
        reach = reach_fields(case, nearest, way)
        take = reach.get("take") or reach.get("elsewhere") or "take another build."
        found[field] = f"For {nearest} ({names_of(case, nearest)}): {take}"
        found |= {key: it for key, it in reach.items() if key == "good_builds"}
    return found


RULES: Mapping[str, Rule] = {
    "no-code-for-gpu": no_code,
    "tensorflow-without-code": tensorflow_without_code,
    "library-without-code": library_without_code,
    "architecture-list": architecture_list,
    **code_images.RULES,
    **code_features.RULES,
}
