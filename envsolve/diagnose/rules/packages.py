"""Rules on packages that do not belong together: companions, extensions, doubles, parts of several releases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.rules import symbols
from envsolve.diagnose.rules.belonging import belongs, reinstall_command
from envsolve.diagnose.rules.named import about_gpus, known, listed, of_module, package_of, version_of_package
from envsolve.model.versions import CudaVersion, parsed_version


def torch_companion(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Torchvision and the like that do not fit the torch beside them; a build for the CPU is told as such."""
    fields = merged(sightings)
    companion = fields.get("companion", "torchvision")
    more = known(
        companion_version=version_of_package(case, companion),
        torch_version=case.version_of("pytorch"),
        belongs=belongs(case, companion),
        command=reinstall_command(case),
    )
    if "backend" in fields:
        yield Diagnosis((Cause("torch-companion-for-cpu", {**fields, **more}),), sightings)
        return
    yield Diagnosis((Cause("torch-companion-mismatch", {**fields, **more}),), sightings)


def xformers_build(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """The torch that xFormers was built for beside the one that is there."""
    fields = merged(sightings)
    if "on_cpu" in fields and not any("xformers" in it.line.lower() for it in sightings):
        yield Diagnosis((Cause("xformers-on-cpu"),), sightings)
        return
    if not any("built for" in it.line.lower() for it in sightings):
        yield Diagnosis((Cause("xformers-without-cuda"),), sightings)
        return
    have = parsed_version(fields.get("have_torch"))
    number = fields.get("built_number", "")
    cuda = f"{int(number) // 100}.{int(number) % 100}" if number.isdecimal() else "none"
    more = known(
        built_words=f" (CUDA {cuda})" if number else None,
        have_public=None if have is None else have.public,
        have_index=None if have is None else have.local,
    )
    yield Diagnosis((Cause("xformers-built-for-other-torch", {**fields, **more}),), sightings)


def extension_not_built(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Extensions without their compiled part; told once, by the sighting that names a package."""
    if not about_gpus(case, *(package_of(it.get("module")) for it in sightings)):
        sightings = tuple(it for it in sightings if "origin" not in it.line and "name '_C'" not in it.line)
    if not sightings:
        return
    package = next(filter(None, map(_package_not_built, sightings)), None)
    if package == "vllm" and _vllm_on_windows(case):
        yield Diagnosis((Cause("vllm-on-linux-only"),), sightings)
        return
    module = next((it.get("module") for it in sightings if it.get("module")), None)
    fields = known(package=package, missing_part=module, torch_version=case.version_of("pytorch"))
    yield Diagnosis((Cause(_OF_PACKAGE.get(package or "", "extension-not-built"), fields),), sightings)


_OF_PACKAGE = {
    "mmcv": "mmcv-without-operators",
    "torch-scatter": "pyg-without-cuda",
    "torch-sparse": "pyg-without-cuda",
    "torch-cluster": "pyg-without-cuda",
    "groundingdino": "groundingdino-without-cuda",
    "vllm": "vllm-library-not-loaded",
    "apex": "apex-without-extensions",
}
"""Explanations of packages for which there is a better remedy than to build them again."""


def _package_not_built(sighting: Sighting) -> str | None:
    module = sighting.get("module")
    if module is not None and not module.startswith("_"):
        return of_module(module + ("" if "." in module else ".so"))
    for pattern, package in _BY_LINE:
        if re.search(pattern, sighting.line, re.IGNORECASE):
            return package
    return package_of(sighting.line) if _IN_SITE.search(sighting.line) else None


_IN_SITE = re.compile(r"(?:site|dist)-packages")
_BY_LINE = (
    (r"ms_deform_attn|custom C\+\+ ops|groundingdino", "groundingdino"),
    (r"detectron2", "detectron2"),
    (r"_OpNamespace' '_(?:vllm|moe)?\w*C", "vllm"),
    (r"implementation for device|miss in module _ext", "mmcv"),
    (r"object has no attribute 'origin'|torch_scatter|torch_sparse|torch_cluster", "torch-scatter"),
)


_OTHER_BACKEND = re.compile(r"Unable to initialize backend '(?:tpu|rocm|metal)|GpuAllocatorConfig")
"""Backends that nobody asked for, and what a jaxlib for the CPU alone lacks, which another rule tells."""


def jax_versions(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Parts of JAX of several releases."""
    sightings = tuple(it for it in sightings if not _OTHER_BACKEND.search(it.line))
    if not sightings:
        return
    fields = merged(sightings)
    if fields.get("missing"):
        yield Diagnosis((Cause("jaxlib-missing", fields),), sightings)
        return
    jax = fields.get("jax") or version_of_package(case, "jax") or version_of_package(case, "jaxlib")
    of_plugin = (fields.get("plugin") or "", *(it.line for it in case.of("jax-plugin-failed")))
    extra = "cuda13" if any("cuda13" in it for it in of_plugin) else "cuda12"
    public = parsed_version(jax)
    command = None if public is None else f"pip install -U 'jax[{extra}]=={public.public}'"
    more = known(command=command, jax=jax)
    yield Diagnosis((Cause("jax-versions-differ", {**fields, **more}, Remedy(frameworks=("jax",))),), sightings)


class _Change(NamedTuple):
    """Names that came with a release of a package, ``since``, or were last in one, ``until``; who asks for them."""

    about: str
    names: str
    since: str = ""
    until: str = ""
    users: str = ""
    goes_with: str = ""


_CHANGES = (
    _Change("torch", r"torch\._six", until="1.13", users="deepspeed, apex, timm", goes_with="torch<2.0"),
    _Change("torch", r"torch\.library\.(register_fake|custom_op)", since="2.4", users="torchvision, torchao"),
    _Change("torch", r"torch\.library\.impl_abstract", since="2.2", users="torchvision"),
    _Change("torch", r"torch\.(float8_e4m3fn|float8_e5m2|compiler)", since="2.1", users="transformers, diffusers"),
    _Change("torch", r"torch\.(uint16|uint32|uint64|xpu)", since="2.3", users="diffusers, safetensors, transformers"),
    _Change("torch", r"torch\.int1", since="2.6", users="torchao"),
    _Change("torch", r"torch\.(compile|_dynamo)", since="2.0", users="transformers, diffusers"),
    _Change("torch", r"torch\.utils\._pytree\.register_pytree_node", since="2.2", users="transformers"),
    _Change(
        "torchvision",
        r"torchvision\.transforms\.functional_tensor\S*",
        until="0.16",
        users="basicsr, GFPGAN, Real-ESRGAN",
        goes_with="torchvision<0.17 with torch<2.2; the new name is torchvision.transforms.functional",
    ),
    _Change(
        "torchaudio",
        r"torchaudio\.(set_audio_backend|get_audio_backend|list_audio_backends|info|AudioMetaData|sox_effects|io)",
        until="2.8",
        users="pyannote.audio, speechbrain, whisperx",
        goes_with="torch 2.8 with torchaudio 2.8",
    ),
    _Change(
        "triton",
        r"triton\.(compiler|backends)\.compiler\.AttrsDescriptor",
        until="3.2",
        users="PyTorch 2.6 and older",
        goes_with="triton 3.2 with torch 2.6 (on Windows triton-windows<3.3), 3.3 with torch 2.7",
    ),
    _Change("triton", r"triton\.compiler\.compiler\.triton_key", goes_with="the triton that torch pins"),
    _Change(
        "triton",
        r"triton\.ops\S*",
        until="3.1",
        users="bitsandbytes before 0.45",
        goes_with="the triton that torch pins",
    ),
)
"""Names by whose absence a release is known to be older or newer than a package thinks (projects' release notes)."""

_TENSORFLOW_1 = re.compile(
    r"tensorflow\.(contrib\S*|Session|InteractiveSession|placeholder|ConfigProto|GPUOptions|get_default_graph|"
    r"reset_default_graph|global_variables_initializer|variable_scope|get_variable|app|flags|logging|set_random_seed|"
    r"to_float|random_normal|truncated_normal|layers|train\.(AdamOptimizer|GradientDescentOptimizer|Saver))"
)
"""Names of TensorFlow 1 that TensorFlow 2 has under tf.compat.v1 only."""


def framework_api(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Names that a release does not have. Only those whose coming or going is known mean anything."""
    for sighting in sightings:
        symbol = ".".join(filter(None, (sighting.get("module"), sighting.get("attribute")))).replace("._api.v2", "")
        if _TENSORFLOW_1.fullmatch(symbol):
            about = case.fields_of("tensorflow")
            yield Diagnosis((Cause("tensorflow-1-code", {**about, "symbol": symbol}),), (sighting,))
            continue
        change = next((it for it in _CHANGES if re.fullmatch(it.names, symbol)), None)
        if change is not None:
            yield Diagnosis((_api_cause(case, symbol, change),), (sighting,))


def _api_cause(case: Case, symbol: str, change: _Change) -> Cause:
    about = change.about
    version = case.version_of("pytorch") if about == "torch" else version_of_package(case, about)
    fields = known(
        symbol=symbol,
        about=about,
        apart=None if change.since or change.until else about,
        since=change.since,
        until=change.until,
        users=change.users,
        goes_with=change.goes_with,
        found_version=version,
        belongs=belongs(case, about),
    )
    return Cause("framework-too-old-for-package" if change.since else "framework-too-new-for-package", fields)


def keras_3(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Keras 3 beside a package that knows Keras 2: a matter of TensorFlow, whatever the program computes with."""
    yield Diagnosis((Cause("keras-3", case.fields_of("tensorflow")),), sightings)


def cuda_majors(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Lists of installed packages with libraries of several CUDA majors."""
    packages = {(it.get("package") or "").replace("_", "-"): it for it in sightings}
    majors = sorted({it.get("major") or "" for it in sightings})
    if len(majors) == 1:
        return
    components = [(it.get("component") or "").replace("_", "-") for it in packages.values()]
    twice = sorted({name for name in components if components.count(name) > 1})
    shown = [name for name in packages if not twice or any(f"-{it}-cu" in name for it in twice)][:8]
    fields = known(majors=listed(majors), packages=listed(shown), twice=listed(twice))
    yield Diagnosis((Cause("cuda-majors-mixed", fields),), tuple(packages[name] for name in shown))


def jit_driver(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Compilers at run time that are newer than the driver."""
    fields = merged(sightings)
    toolkit = CudaVersion(int(fields["major"]), int(fields["minor"]))
    wanted = case.knowledge.full_driver(toolkit, windows=case.windows)
    words = known(
        toolkit_has=str(toolkit),
        driver_has=f"{fields['driver_major']}.{fields['driver_minor']}",
        driver_wanted=None if wanted is None else str(wanted),
    )
    remedy = Remedy(cuda=f"<={words['driver_has']}")
    yield Diagnosis((Cause("jit-driver-older-than-toolkit", words, remedy),), sightings)


def vllm_on_linux_only(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A vLLM that says so itself, or misses a module of Unix on Windows."""
    if any(it.get("said") for it in sightings) or _vllm_on_windows(case):
        yield Diagnosis((Cause("vllm-on-linux-only"),), sightings)


def _vllm_on_windows(case: Case) -> bool:
    """Whether it is vLLM that is installed or run on native Windows."""
    named = "vllm" in case.packages or any(it.casefold() == "vllm" for it in case.every("gpu_name"))
    return named and case.windows and not case.wsl


def rapids_cuda(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """RAPIDS for another CUDA than the machine's, where the loader's own line does not tell it."""
    if not case.saw("library-missing"):
        yield Diagnosis((Cause("rapids-of-other-cuda", merged(sightings)),), sightings)


RULES: Mapping[str, Rule] = {
    "jit-needs-newer-driver": jit_driver,
    "rapids-of-other-cuda": rapids_cuda,
    "vllm-on-linux-only": vllm_on_linux_only,
    "torch-companion": torch_companion,
    "xformers-build": xformers_build,
    "extension-not-built": extension_not_built,
    "jax-versions": jax_versions,
    "framework-api": framework_api,
    "cuda-majors": cuda_majors,
    "keras-3": keras_3,
    **symbols.RULES,
}
