"""Facts on packages that do not belong together: companions, extensions, doubles, parts of several releases."""

from __future__ import annotations

import re
from typing import NamedTuple

from packaging.version import Version

from envsolve.diagnose.case import Case, Lines, Sighting, merged
from envsolve.diagnose.facts.shared.gpu_packages import (
    about_gpus,
    of_module,
    package_of,
    torch_folder,
    version_of_package,
)
from envsolve.diagnose.facts.symbols import symbol_package
from envsolve.model.versions import CudaVersion, parsed_version

# ---------------------------------------------------------------------------------------------- companions of PyTorch


def _companion(case: Case, lines: Lines) -> str | None:
    fields = merged(lines)
    if "companion" in fields:
        return fields["companion"]
    if "module" in fields or "attribute" in fields:
        change = api(case, lines)
        return None if change is None else change.about
    return symbol_package(case, lines)


def companion_version(case: Case, lines: Lines) -> str | None:
    """The installed version of the companion, or of the package whose function is requested."""
    return version_of_package(case, _companion(case, lines))


def _torches(case: Case, lines: Lines) -> list[Version]:
    companion, version = _companion(case, lines), parsed_version(companion_version(case, lines))
    if version is None or companion is None:
        return []
    return case.knowledge.versions_beside("pytorch", companion, version, case.platform)


class _Torches(NamedTuple):
    """Releases of torch in order: 2.0.1, 2.0.0 to 2.0.1."""

    first: Version
    last: Version

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


def torches_of_companion(case: Case, lines: Lines) -> _Torches | None:
    """The torch that it belongs to."""
    found = _torches(case, lines)
    return _Torches(found[0], found[-1]) if found else None


def companion_fits(case: Case, lines: Lines) -> bool:
    """Whether torch and the companion belong together by their numbers."""
    torch = parsed_version(case.version_of("pytorch"))
    return torch is not None and Version(torch.public) in _torches(case, lines)


def companion_wanted(case: Case, lines: Lines) -> str | None:
    """The version of the companion that belongs to the installed torch."""
    torch = parsed_version(case.version_of("pytorch"))
    return case.knowledge.companions_of("pytorch", torch, case.platform).get(_companion(case, lines) or "")


def torchcodec_ffmpeg(case: Case, _lines: Lines) -> str | None:
    """The only FFmpeg that this build of TorchCodec has a library for: 7."""
    tried = case.every("torchcodec_core")
    return tried[0] if len(tried) == 1 and case.clue("torchcodec_no_core") is not None else None


# ---------------------------------------------------------------------------------------------- xFormers


def xformers_cuda(_case: Case, lines: Lines) -> str | None:
    """The CUDA that xFormers was built with."""
    number = merged(lines).get("built_number", "")
    return f"{int(number) // 100}.{int(number) % 100}" if number.isdecimal() else None


class _Torch(NamedTuple):
    """A PyTorch: its release, and the folder of PyTorch's index with the build, None for another."""

    release: Version
    build: str | None
    by_nvidia: bool


def _torch(version: str | None) -> _Torch | None:
    parsed = parsed_version(version)
    if version is None or parsed is None:
        return None
    return _Torch(Version(parsed.public), torch_folder(parsed), "a0+" in version)


def xformers_torch(_case: Case, lines: Lines) -> _Torch | None:
    """The torch that xFormers was built for."""
    return _torch(merged(lines).get("built_torch"))


def torch_beside(case: Case, lines: Lines) -> _Torch | None:
    """The torch that is installed beside xFormers."""
    return _torch(merged(lines).get("have_torch") or case.version_of("pytorch"))


# ---------------------------------------------------------------------------------------------- compiled extensions

_BY_LINE = (
    (r"ms_deform_attn|custom C\+\+ ops|groundingdino", "groundingdino"),
    (r"detectron2", "detectron2"),
    (r"_OpNamespace' '_(?:vllm|moe)?\w*C", "vllm"),
    (r"implementation for device|miss in module _ext", "mmcv"),
    (r"object has no attribute 'origin'|torch_scatter|torch_sparse|torch_cluster", "torch-scatter"),
)
_IN_SITE = re.compile(r"(?:site|dist)-packages")


def extension_meant(case: Case, lines: Lines) -> bool:
    """Whether a line is of an extension of PyTorch: what many programs say counts only beside one of ours."""
    modules = (it.get("module") for it in case.of("extension-not-built"))
    ambiguous = all("origin" in it.line or "name '_C'" in it.line for it in lines)
    return not ambiguous or about_gpus(case, *map(package_of, modules))


def package_not_built(_case: Case, lines: Lines) -> str | None:
    """The package whose compiled part is missing."""
    return next(filter(None, map(_package_not_built, lines)), None)


def _package_not_built(line: Sighting) -> str | None:
    module = line.get("module")
    if module is not None and not module.startswith("_"):
        return of_module(module + ("" if "." in module else ".so"))
    for pattern, package in _BY_LINE:
        if re.search(pattern, line.line, re.IGNORECASE):
            return package
    return package_of(line.line) if _IN_SITE.search(line.line) else None


def vllm_from_sources(case: Case, lines: Lines) -> bool:
    """Whether vLLM is imported from its directory of sources, by the frames of the traceback."""
    texts = (*case.every("frame"), *(it.line for it in lines))
    return any(re.search(r"[\\/]vllm[\\/]vllm[\\/]", it) and not _IN_SITE.search(it) for it in texts)


# ---------------------------------------------------------------------------------------------- JAX


def jax_parts_differ(_case: Case, lines: Lines) -> bool:
    """Whether a line is of parts of JAX, and not of a back end that was not requested or a jaxlib for the CPU alone."""
    other = re.compile(r"Unable to initialize backend '(?:tpu|rocm|metal)|GpuAllocatorConfig")
    return any(not other.search(it.line) for it in lines)


# ---------------------------------------------------------------------------------------------- names of releases


class _Change(NamedTuple):
    """Names that came with a release of a package, ``since``, or were last in one, ``until``.

    ``users`` are packages that need them, ``goes_with`` what to install where these stay as they are.
    """

    about: str
    names: str
    since: str = ""
    until: str = ""
    users: tuple[str, ...] = ()
    goes_with: str = ""


_CHANGES = (
    _Change("torch", r"torch\._six", until="1.13", users=("deepspeed", "apex", "timm"), goes_with="'torch<2.0'"),
    _Change("torch", r"torch\.library\.(register_fake|custom_op)", since="2.4", users=("torchvision", "torchao")),
    _Change("torch", r"torch\.library\.impl_abstract", since="2.2", users=("torchvision",)),
    _Change("torch", r"torch\.(float8_e4m3fn|float8_e5m2|compiler)", since="2.1", users=("transformers", "diffusers")),
    _Change("torch", r"torch\.(uint16|uint32|uint64|xpu)", since="2.3", users=("diffusers", "transformers")),
    _Change("torch", r"torch\.int1", since="2.6", users=("torchao",)),
    _Change("torch", r"torch\.nn\.attention", since="2.3", users=("transformers", "diffusers")),
    _Change("torch", r"torch\.nn\.attention\.(sdpa_kernel|SDPBackend)", since="2.3", users=("diffusers",)),
    _Change("torch", r"torch\.nn\.attention\.flex_attention(\.\w+)?", since="2.5", users=("transformers", "vllm")),
    _Change("torch", r"torch\.nn(\.functional)?\.(RMSNorm|rms_norm)", since="2.4", users=("ComfyUI", "diffusers")),
    _Change("torch", r"torch\.amp\.GradScaler", since="2.3", users=("Ultralytics",)),
    _Change("torch", r"torch\.amp\.(custom_fwd|custom_bwd)", since="2.4", users=("mamba-ssm", "fla", "unsloth")),
    _Change("torch", r"torch\.serialization\.add_safe_globals", since="2.4", users=("transformers",)),
    _Change("torch", r"torch\.serialization\.safe_globals", since="2.5", users=("transformers", "lightning")),
    _Change("torch", r"torch\.(get_default_device|get_device_module)", since="2.3", users=("transformers",)),
    _Change("torch", r"torch\.accelerator", since="2.6", users=("transformers", "accelerate")),
    _Change("torch", r"torch\.library\.(triton_op|wrap_triton)", since="2.6", users=("torchao", "fla")),
    _Change("torch", r"torch\.float8_e8m0fnu", since="2.7", users=("torchao", "transformers", "vllm")),
    _Change("torch", r"torch\.float4_e2m1fn_x2", since="2.8", users=("torchao", "vllm")),
    _Change("torch", r"torch\.distributed\.device_mesh(\.\w+)?", since="2.2", users=("accelerate", "transformers")),
    _Change("torch", r"torch\.distributed\.tensor\.(DTensor|Shard|Replicate|distribute_tensor)", since="2.5"),
    _Change("torch", r"torch\.distributed\.fsdp\.(fully_shard|FSDPModule)", since="2.6", users=("accelerate",)),
    _Change("torch", r"torch\.(compile|_dynamo)", since="2.0", users=("transformers", "diffusers")),
    _Change("torch", r"torch\.utils\._pytree\.register_pytree_node", since="2.2", users=("transformers",)),
    _Change(
        "torchvision",
        r"torchvision\.transforms\.functional_tensor\S*",
        until="0.16",
        users=("basicsr", "GFPGAN", "Real-ESRGAN"),
        goes_with="'torchvision<0.17' 'torch<2.2'",
    ),
    _Change(
        "torchaudio",
        r"torchaudio\.(set_audio_backend|get_audio_backend|list_audio_backends|info|AudioMetaData|sox_effects|io)",
        until="2.8",
        users=("pyannote.audio", "speechbrain", "whisperx"),
        goes_with="torch==2.8.* torchaudio==2.8.*",
    ),
    _Change(
        "triton",
        r"triton\.(compiler|backends)\.compiler\.AttrsDescriptor",
        until="3.2",
        users=("PyTorch 2.6 and older",),
        goes_with="triton==3.2.* torch==2.6.*",
    ),
    _Change("triton", r"triton\.compiler\.compiler\.triton_key"),
    _Change("triton", r"triton\.ops\S*", until="3.1", users=("bitsandbytes before 0.45",)),
)
"""Names by whose absence a release is known to be older or newer than a package thinks (projects' release notes)."""
_TENSORFLOW_1 = re.compile(
    r"tensorflow\.(contrib\S*|Session|InteractiveSession|placeholder|ConfigProto|GPUOptions|get_default_graph|"
    r"reset_default_graph|global_variables_initializer|variable_scope|get_variable|app|flags|logging|set_random_seed|"
    r"to_float|random_normal|truncated_normal|layers|train\.(AdamOptimizer|GradientDescentOptimizer|Saver))"
)
"""Names of TensorFlow 1 that TensorFlow 2 has under tf.compat.v1 only."""


def api_name(_case: Case, lines: Lines) -> str:
    """The name that a package does not have, torch.library.register_fake."""
    fields = merged(lines)
    return ".".join(filter(None, (fields.get("module"), fields.get("attribute")))).replace("._api.v2", "")


def api_of_tensorflow_1(case: Case, lines: Lines) -> bool:
    """Whether TensorFlow 1 had it and TensorFlow 2 has not."""
    return _TENSORFLOW_1.fullmatch(api_name(case, lines)) is not None


def api(case: Case, lines: Lines) -> _Change | None:
    """The name as one that its package has in some releases only."""
    name = api_name(case, lines)
    return next((it for it in _CHANGES if re.fullmatch(it.names, name)), None)


def api_version(case: Case, lines: Lines) -> str | None:
    """The installed version of it."""
    change = api(case, lines)
    about = None if change is None else change.about
    return case.version_of("pytorch") if about == "torch" else version_of_package(case, about)


def api_asker(case: Case, lines: Lines) -> str | None:
    """The package that needs it, by the last frame above it that is not of the package itself."""
    change = api(case, lines)
    if change is not None and any(it.startswith("PyTorch") for it in change.users):
        return f"PyTorch {case.version_of('pytorch') or ''}".strip()
    about = None if change is None else change.about
    frames = [
        it.value for it in case.clues.get("frame", ()) if it.number < lines[0].number and _IN_SITE.search(it.value)
    ]
    packages = (package_of(it.partition('"')[2].partition('"')[0]) for it in reversed(frames))
    return next((it for it in packages if it is not None and it != about), None)


# ---------------------------------------------------------------------------------------------- CUDA majors, compilers


def _component(line: Sighting) -> str:
    return (line.get("component") or "").replace("_", "-")


def cuda_twice(case: Case, _lines: Lines) -> tuple[str, ...]:
    """The libraries of which there are two."""
    named = {(it.get("package") or "").replace("_", "-"): _component(it) for it in case.of("cuda-majors")}
    components = list(named.values())
    return tuple(sorted({name for name in components if components.count(name) > 1}))


def cuda_mixed(case: Case, lines: Lines) -> bool:
    """Whether a line names a package that is of another major than a second one."""
    twice = cuda_twice(case, lines)
    majors = {it.get("major") for it in case.of("cuda-majors")}
    return len(majors) > 1 and (not twice or _component(lines[0]) in twice)


def cuda_mixed_packages(_case: Case, lines: Lines) -> tuple[str, ...]:
    """The packages that the judged lines name."""
    return tuple(dict.fromkeys((it.get("package") or "").replace("_", "-") for it in lines))[:8]


def jit_toolkit(_case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA whose compiler makes code at run time."""
    return _cuda(lines, "major", "minor")


def jit_driver(_case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA of the driver that has to run it."""
    return _cuda(lines, "driver_major", "driver_minor")


def _cuda(lines: Lines, major: str, minor: str) -> CudaVersion | None:
    fields = merged(lines)
    known = major in fields and minor in fields
    return CudaVersion(int(fields[major]), int(fields[minor])) if known else None
