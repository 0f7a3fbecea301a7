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
from envsolve.diagnose.names import span_of
from envsolve.findings.catalogue import shipped
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
    (r"implementation for device|miss in module _ext", "mmcv"),
    (r"ms_deform_attn|custom C\+\+ ops|groundingdino", "groundingdino"),
    (r"detectron2", "detectron2"),
    (r"_OpNamespace' '_(?:vllm|moe)?\w*C", "vllm"),
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


# ---------------------------------------------------------------------------------------------- names of releases


class _Change(NamedTuple):
    """A name that came with a release of a package, ``since``, or was last in one, ``until``.

    ``users`` are packages that need it, ``goes_with`` what to install where these stay as they are, and ``asker`` is
    the only one that asks for it.
    """

    about: str
    since: str = ""
    until: str = ""
    users: str = ""
    goes_with: str = ""
    asker: str = ""


def _wanted(lines: Lines) -> tuple[str, str | None]:
    """The module and the name in it that a package does not have; no name if it lacks the module."""
    fields = merged(lines)
    return fields.get("module", "").replace("._api.v2", ""), fields.get("attribute")


def api_name(_case: Case, lines: Lines) -> str:
    """The name that a package does not have, torch.library.register_fake."""
    return ".".join(filter(None, _wanted(lines)))


def api(case: Case, lines: Lines) -> _Change | None:
    """The name as one that its package has in some releases only."""
    name = api_name(case, lines)
    rows = (row for names, row in shipped().table("api").items() if re.fullmatch(names, name))
    return next((_Change(**row) for row in rows if isinstance(row, dict)), None) or _released(case, *_wanted(lines))


def _released(case: Case, module: str, attribute: str | None) -> _Change | None:
    """A name that came or went with a release that was read; of one that did both, what the installed release lacks."""
    span, about = span_of(module, attribute), module.partition(".")[0]
    if span is None:
        return None
    installed = parsed_version(case.version_of("pytorch") if about == "torch" else version_of_package(case, about))
    if span.since and (span.until is None or (installed is not None and installed < Version(span.since))):
        return _Change(about, since=span.since)
    return _Change(about, until=span.until or "", goes_with=f"'{about}<{span.after}'")


def _importers(case: Case, lines: Lines) -> list[str]:
    """The packages of the frames before the lines in the traceback."""
    first = min((it.number for it in lines), default=0)
    frames = (it.get("package") for it in case.of("import-frame") if it.number < first)
    return [it for it in frames if it and not it.startswith("_") and it != "pip"]


def api_asker(case: Case, lines: Lines) -> str | None:
    """The package whose code uses the name: the last one before the lines in the traceback that is another one."""
    module = _wanted(lines)[0].partition(".")[0]
    return next((it for it in reversed(_importers(case, lines)) if it != module), None)


def name_of_own_package(case: Case, lines: Lines) -> bool:
    """Whether the file that uses the name is of the package that lacks it."""
    return _importers(case, lines)[-1:] == [_wanted(lines)[0].partition(".")[0]]


def api_version(case: Case, lines: Lines) -> str | None:
    """The installed version of it."""
    change = api(case, lines)
    about = None if change is None else change.about
    return case.version_of("pytorch") if about == "torch" else version_of_package(case, about)


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
