"""Rules on building extensions: which CUDA the compiler is of, which host compiler it takes, what it does not find."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.rules.named import about_gpus, is_of_gpus, known, listed
from envsolve.model.release import Source
from envsolve.model.versions import CudaVersion

GCC_SINCE = {8: "10.1", 9: "11.0", 10: "11.1", 11: "11.4", 12: "12.0", 13: "12.4", 14: "12.8", 15: "13.0"}
"""The first CUDA that takes a gcc as host compiler (host_config.h of the toolkits, as gathered in ax3l/9489132)."""


def build_cuda_mismatch(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A compiler of another CUDA than PyTorch's."""
    fields = merged(sightings)
    found, wanted = fields.get("found"), fields.get("wanted")
    isolated = any("pip-build-env" in step or "builds-v0" in step for step in case.every("build_step"))
    more = known(
        found_major=found and found.partition(".")[0],
        found_builds=_builds_for(case, found),
        wanted_index=wanted and wanted.replace(".", ""),
        isolated="pip-build-env" if isolated else None,
    )
    yield Diagnosis((Cause("build-cuda-mismatch", {**fields, **more}),), sightings)


def _builds_for(case: Case, cuda: str | None) -> str | None:
    """The builds of PyTorch's index for a CUDA: the same minor where there is one, else those of its major."""
    if cuda is None:
        return None
    major, _, minor = cuda.partition(".")
    builds = {it.build for it in case.knowledge.all_releases("pytorch") if it.source is Source.PYTORCH}
    same = [it for it in builds if it == f"cu{major}{minor}"]
    of_major = sorted(it for it in builds if re.fullmatch(rf"cu{major}\d", it))
    return listed(same or of_major) or None


def compiler_missing(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """No nvcc: none at all, or CUDA_HOME that leads to none."""
    wrong = tuple(it for it in sightings if _path(it))
    if wrong:
        path = _path(wrong[0])
        home = re.sub(r"[\\/]+bin[\\/]+nvcc$", "", path)
        fields = known(path=path, home=home.strip(":"), colon=home if home.strip(":") != home else None)
        yield Diagnosis((Cause("cuda-home-wrong", fields),), wrong)
    elif about_gpus(case):
        package = next((name for it in sightings if (name := it.get("package")) and is_of_gpus(name)), None)
        wanted = None if case.built_cuda is None else str(case.built_cuda)
        fields = known(wanted=wanted, package=package and package.replace("_", "-"))
        yield Diagnosis((Cause("cuda-compiler-missing", fields),), sightings)


def _path(sighting: Sighting) -> str:
    return sighting.get("path") or sighting.get("path_run") or ""


def nvcc_too_old(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A toolkit that is older than the package wants; PyTorch's own CUDA is the one to build with."""
    fields = merged(sightings)
    package = fields.get("package") or fields.get("package_of_nvcc") or ""
    if not about_gpus(case, package.lower(), "flash-attn" if package == "FlashAttention" else None):
        return
    least = fields.get("least") or fields.get("least_of_nvcc")
    built = case.built_cuda
    fits = built is not None and (least is None or built >= CudaVersion.parse(least))
    wanted = str(built) if fits else None
    words = known(package=package, least=least, toolkit_wanted=wanted)
    yield Diagnosis((Cause("nvcc-too-old-for-package", words),), sightings)


def cmake(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """CMake's own words where nvcc is there and of no use."""
    fields = merged(sightings)
    if "toolset" in fields:
        explanation = "cmake-without-cuda-toolset"
    else:
        explanation = "cmake-without-cuda-root" if "root" in fields else "cmake-cannot-use-nvcc"
    yield Diagnosis((Cause(explanation),), sightings)


def host_compiler(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A gcc, clang or MSVC that the toolkit does not take, or a C library that it does not go with."""
    fields = merged(sightings)
    yield Diagnosis((_of_host(fields, sightings),), sightings)


def _of_host(fields: dict[str, str], sightings: tuple[Sighting, ...]) -> Cause:
    if "studio" in fields or "least" in fields or any("visual studio" in it.line.lower() for it in sightings):
        return _of_msvc(fields)
    if "clang" in fields:
        return Cause("clang-too-new-for-cuda", fields)
    if "function" in fields:
        return Cause("glibc-too-new-for-cuda", fields)
    if any("std_function" in it.line for it in sightings):
        return Cause("gcc-11-headers", fields)
    major = fields.get("gcc", "").partition(".")[0]
    newer = [f"gcc {gcc} from CUDA {cuda} on" for gcc, cuda in GCC_SINCE.items() if major and gcc > int(major)]
    return Cause("gcc-too-new-for-cuda", {**fields, **known(major=major, newer=", ".join(newer))})


def _of_msvc(fields: dict[str, str]) -> Cause:
    studio = fields.get("studio", "").strip(" ,")
    late = None
    if "2022" in studio and "2017" in studio:
        late = "If it is Visual Studio 2022, it is 17.10 or newer: MSVC 14.40 and newer are unknown to this CUDA."
    return Cause("msvc-unknown-to-cuda", {**fields, **known(studio=studio, late_2022=late)})


def build_tool(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Build tools that are not there, where something is built for a GPU framework."""
    if not about_gpus(case):
        return
    for it in sightings:
        tool = (it.get("tool") or it.get("where") or "cl").lower()
        explanation = {"ninja": "ninja-missing", "cl": "msvc-missing"}.get(tool, "c-compiler-missing")
        yield Diagnosis((Cause(explanation),), (it,))


_HEADERS = (
    (re.compile(r"THC?/"), "extension-source-too-old"),
    (re.compile(r"(torch|ATen)/"), "torch-header-missing"),
    (re.compile(r"cudnn"), "cudnn-header-missing"),
    (re.compile(r"NvInfer"), "tensorrt-header-missing"),
    (re.compile(r"Python|crypt"), "python-header-missing"),
    (re.compile(r""), "cuda-header-missing"),
)
"""Whose a header is, by its name; the first that fits."""


def header_missing(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Headers by whose they are, and what PyTorch's own headers no longer have."""
    for it in sightings:
        explanation = _of_header(case, it)
        if explanation != "python-header-missing" or about_gpus(case):
            header = it.get("header")
            fields = known(
                header=header,
                header_name=header and header.rpartition("/")[2],
                old=it.get("old") or it.get("old_gcc") or it.get("old_type"),
                standard=it.get("standard") or it.get("standard_old"),
                torch_version=case.version_of("pytorch"),
            )
            yield Diagnosis((Cause(explanation, fields),), (it,))


def _of_header(case: Case, sighting: Sighting) -> str:
    header = sighting.get("header")
    of_runtime = re.match(r"vector_types|cuda_(?:fp16|bf16|runtime)", header or "")
    if sighting.get("cupy") or (of_runtime and "cupy" in case.every("gpu_name")):
        return "cupy-headers-missing"
    if header is None:
        return "extension-source-too-old"
    return next(explanation for pattern, explanation in _HEADERS if pattern.match(header))


def linker(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Libraries of CUDA that the linker wants and does not find."""
    name = next(iter(filter(None, (it.get("library") or it.get("windows") for it in sightings))), None)
    yield Diagnosis((Cause("linker-does-not-find-cuda-library", known(library=name)),), sightings)


def build_without_torch(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """PyTorch that is not found: while something is built it is isolation that hides it, else it is not installed."""
    if case.every("build_step"):
        packages = [name for name in case.every("building") if name.lower() not in ("torch", "setup.py")]
        package = packages[-1].replace("_", "-") if packages else None
        yield Diagnosis((Cause("build-isolation", known(package=package)),), sightings)
        return
    yield Diagnosis((Cause("torch-not-installed", {}, Remedy(frameworks=("pytorch",))),), sightings)


def build_of_extension(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """That an extension could not be built, where nothing says why."""
    yield Diagnosis((Cause("build-of-extension", merged(sightings)),), sightings)


RULES: Mapping[str, Rule] = {
    "build-cuda-mismatch": build_cuda_mismatch,
    "cuda-compiler-missing": compiler_missing,
    "host-compiler": host_compiler,
    "nvcc-too-old": nvcc_too_old,
    "cmake-cuda": cmake,
    "build-tool-missing": build_tool,
    "header-missing": header_missing,
    "linker-cuda": linker,
    "build-without-torch": build_without_torch,
    "build-of-extension": build_of_extension,
}
