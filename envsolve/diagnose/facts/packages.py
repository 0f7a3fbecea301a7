"""Facts on packages that do not belong together: companions, extensions, doubles, parts of several releases."""

from __future__ import annotations

import re
from typing import NamedTuple

from packaging.version import Version

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.facts.companions import COMPANIONS, companions_of, folder_of, reinstall_command, torches_of
from envsolve.diagnose.facts.named import about_gpus, of_module, package_of, version_of_package
from envsolve.diagnose.facts.symbols import symbol_package
from envsolve.model.versions import CudaVersion, DriverVersion, parsed_version

Lines = tuple[Sighting, ...]


# ---------------------------------------------------------------------------------------------- companions of PyTorch


def _companion(case: Case, lines: Lines) -> str | None:
    fields = merged(lines)
    if "companion" in fields:
        return fields["companion"]
    return api_about(case, lines) if "module" in fields or "attribute" in fields else symbol_package(case, lines)


def companion_version(case: Case, lines: Lines) -> str | None:
    """The installed version of the companion, or of the package whose function is asked for."""
    return version_of_package(case, _companion(case, lines))


def _torches(case: Case, lines: Lines) -> list[Version]:
    companion, version = _companion(case, lines), parsed_version(companion_version(case, lines))
    return [] if version is None or companion not in COMPANIONS else torches_of(case, companion, version)


def torches_of_companion(case: Case, lines: Lines) -> str | None:
    """The torch that it belongs to: 2.0.1, 2.0.0 to 2.0.1."""
    found = _torches(case, lines)
    if not found:
        return None
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def companion_fits(case: Case, lines: Lines) -> bool:
    """Whether torch and the companion belong together by their numbers."""
    torch = parsed_version(case.version_of("pytorch"))
    return torch is not None and Version(torch.public) in _torches(case, lines)


def companion_is_older(case: Case, lines: Lines) -> bool:
    """Whether the companion belongs to an older torch than the installed one."""
    torch, found = parsed_version(case.version_of("pytorch")), _torches(case, lines)
    return torch is not None and bool(found) and found[-1] < Version(torch.public)


def companion_is_newer(case: Case, lines: Lines) -> bool:
    """Whether it belongs to a newer torch than the installed one."""
    torch, found = parsed_version(case.version_of("pytorch")), _torches(case, lines)
    return torch is not None and bool(found) and found[0] > Version(torch.public)


def companion_wanted(case: Case, lines: Lines) -> str | None:
    """The version of the companion that belongs to the installed torch."""
    companion, torch = _companion(case, lines), parsed_version(case.version_of("pytorch"))
    return companions_of(case, torch).get(companion) if companion in COMPANIONS else None


def reinstall_torch(case: Case, _lines: Lines) -> str | None:
    """Pip's command for torch and what belongs to it, from the folder of the build that is there."""
    return reinstall_command(case)


# ---------------------------------------------------------------------------------------------- xFormers


def _torch_named(lines: Lines, field: str) -> Version | None:
    return parsed_version(merged(lines).get(field))


def xformers_cuda(_case: Case, lines: Lines) -> str | None:
    """The CUDA that xFormers was built with."""
    number = merged(lines).get("built_number", "")
    return f"{int(number) // 100}.{int(number) % 100}" if number.isdecimal() else None


def xformers_for(_case: Case, lines: Lines) -> str | None:
    """The release of torch that xFormers was built for."""
    version = _torch_named(lines, "built_torch")
    return None if version is None else version.public


def xformers_build(_case: Case, lines: Lines) -> str | None:
    """The build of torch that xFormers was built for, cu121."""
    version = _torch_named(lines, "built_torch")
    return None if version is None else version.local


def xformers_beside(case: Case, lines: Lines) -> str | None:
    """The release of torch that is installed beside xFormers."""
    version = _torch_named(lines, "have_torch") or parsed_version(case.version_of("pytorch"))
    return None if version is None else version.public


def xformers_beside_build(case: Case, lines: Lines) -> str | None:
    """The build of torch that is installed beside xFormers: cu118, cpu."""
    return folder_of(_torch_named(lines, "have_torch") or parsed_version(case.version_of("pytorch")))


def xformers_beside_nvidia(case: Case, lines: Lines) -> bool:
    """Whether the PyTorch beside xFormers is NVIDIA's own build, of its containers."""
    return "a0+" in (merged(lines).get("have_torch") or case.version_of("pytorch") or "")


def xformers_on_index(case: Case, lines: Lines) -> bool:
    """Whether PyTorch's index has xFormers for the installed torch: from 2.1 on (download.pytorch.org/whl/xformers)."""
    version = parsed_version(xformers_beside(case, lines))
    return version is not None and version >= Version("2.1")


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
    """Whether a line is of parts of JAX, and not of a back end that nobody asked for or a jaxlib for the CPU alone."""
    other = re.compile(r"Unable to initialize backend '(?:tpu|rocm|metal)|GpuAllocatorConfig")
    return any(not other.search(it.line) for it in lines)


def jax_wanted(case: Case, lines: Lines) -> str | None:
    """The release of jax that its other parts have to match."""
    told = merged(lines).get("jax") or version_of_package(case, "jax") or version_of_package(case, "jaxlib")
    version = parsed_version(told)
    return None if version is None else version.public


def jax_before_extra(case: Case, lines: Lines) -> bool:
    """Whether that release is from before jax had an extra for its CUDA plugin."""
    version = parsed_version(jax_wanted(case, lines))
    return version is not None and version < Version("0.4.23")


# ---------------------------------------------------------------------------------------------- names of releases


class _Change(NamedTuple):
    """Names that came with a release of a package, ``since``, or were last in one, ``until``.

    ``users`` are packages that ask for them, ``goes_with`` what to install where these stay as they are.
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


def _change(case: Case, lines: Lines) -> _Change | None:
    name = api_name(case, lines)
    return next((it for it in _CHANGES if re.fullmatch(it.names, name)), None)


def api_about(case: Case, lines: Lines) -> str | None:
    """The package that has the name in some releases only."""
    change = _change(case, lines)
    return None if change is None else change.about


def api_version(case: Case, lines: Lines) -> str | None:
    """The installed version of it."""
    about = api_about(case, lines)
    return case.version_of("pytorch") if about == "torch" else version_of_package(case, about)


def api_since(case: Case, lines: Lines) -> str | None:
    """The release that brought the name."""
    change = _change(case, lines)
    return (change.since or None) if change is not None else None


def api_until(case: Case, lines: Lines) -> str | None:
    """The last release with the name."""
    change = _change(case, lines)
    return (change.until or None) if change is not None else None


def api_users(case: Case, lines: Lines) -> tuple[str, ...]:
    """Packages that ask for it."""
    change = _change(case, lines)
    return () if change is None else change.users


def api_goes_with(case: Case, lines: Lines) -> str | None:
    """What to install where the package that asks stays as it is, as requirements of pip."""
    change = _change(case, lines)
    return (change.goes_with or None) if change is not None else None


def api_asker(case: Case, lines: Lines) -> str | None:
    """The package that asks for it, by the last frame above it that is not of the package itself."""
    about, change = api_about(case, lines), _change(case, lines)
    if change is not None and any(it.startswith("PyTorch") for it in change.users):
        return f"PyTorch {case.version_of('pytorch') or ''}".strip()
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


def jit_driver_wanted(case: Case, lines: Lines) -> DriverVersion | None:
    """The oldest driver that supports the compiler's CUDA in full."""
    toolkit = jit_toolkit(case, lines)
    return None if toolkit is None else case.knowledge.full_driver(toolkit, windows=case.windows)
