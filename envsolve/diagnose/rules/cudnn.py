"""Rules on cuDNN: which of its versions is wanted, which one is there, and what else makes it fail.

Its file names carry the major version only, the sub-libraries differ from major to major (8: _infer and _train, 9: ops,
cnn, graph, engines), and each part refuses parts of another release.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.facts.library_names import Owner, cudnn_major, is_plain, owner_of, span_of
from envsolve.diagnose.facts.programs import program_of, remedy_of
from envsolve.diagnose.facts.seen_libraries import cudnns, library, toolkits
from envsolve.diagnose.rules.library_context import common_fields
from envsolve.model.capability import ComputeCapability
from envsolve.model.versions import CudaVersion

_OLD_NUMBERS = 1_000
_NEW_NUMBERS = 10_000
"""From cuDNN 9 on a version is counted 9.1.0 = 90100, before 8.9.7 = 8907."""
_LAST_FOR_OLD_GPUS = "9.10.2"
_FIRST_GPU_OF_LATER = ComputeCapability(7, 5)
_MEMORY = re.compile(
    r"valid cuDNN algorithm|failed to initialize|No algorithm worked|Could not create cudnn handle",
    re.IGNORECASE,
)
_PLAN = re.compile(r"plan failed with", re.IGNORECASE)


def version_text(number: str) -> str:
    """``8.7.0`` of 8700, ``9.1.0`` of 90100 and of ``9, 1, 0``; a version as it stands otherwise."""
    if number.isdecimal() and int(number) >= _OLD_NUMBERS:
        value = int(number)
        unit = 10_000 if value >= _NEW_NUMBERS else 1_000
        return f"{value // unit}.{value % unit // 100}.{value % 100}"
    return ".".join(re.findall(r"\d+", number))


# ------------------------------------------------------------------------------------------------- missing


def missing(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Libraries of cuDNN that are not found, by the major version that their names tell."""
    wanted = next((major for it in sightings if (major := _major(it)) is not None), None)
    fields = {**common_fields(case, sightings, None, stem="cudnn"), **_wanted(case, sightings, wanted)}
    codes = {it.get("code") for it in sightings}
    if "127" in codes:
        yield Diagnosis((Cause("cudnn-mixed", fields),), sightings)
        return
    if "126" in codes:
        yield Diagnosis(_dependencies(wanted, fields), sightings)
        return
    first, *others = _located(case, fields, wanted)
    yield Diagnosis((first._replace(remedy=remedy_of(case, sightings)), *others), sightings)


def of_dll(case: Case, sighting: Sighting, code: str) -> tuple[Cause, ...]:
    """A DLL of cuDNN that Windows does not load, by its error number."""
    wanted = cudnn_major(library(sighting))
    fields = {**common_fields(case, (sighting,), None), **_wanted(case, (sighting,), wanted), "code": code}
    if code == "127":
        return (Cause("cudnn-mixed", fields),)
    if code == "1114":
        return Cause("dll-does-not-start", fields), Cause("cudnn-mixed", fields)
    if re.search(r"[\\/]torch[\\/]lib[\\/]", sighting.line, re.IGNORECASE):
        damaged = Cause("pytorch-installation-damaged", {**fields, "subject": library(sighting)})
        others = (Cause("cudnn-mixed", {**fields, "code": ""}),)
        return (damaged, Cause("zlib-missing", fields), *others) if wanted == _NEEDS_ZLIB else (damaged, *others)
    if re.search(r"site-packages[\\/]nvidia[\\/]", sighting.line, re.IGNORECASE):
        return Cause("cudnn-incomplete", fields), Cause("cudnn-mixed", {**fields, "code": ""})
    return _dependencies(wanted, fields)


def incomplete(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """One of the DLLs of cuDNN 9 was found one of its DLLs and not what that one needs."""
    fields = {**common_fields(case, sightings, None, stem="cudnn"), **_wanted(case, sightings, _major(sightings[0]))}
    yield Diagnosis((Cause("cudnn-incomplete", fields),), sightings)


def _dependencies(wanted: int | None, fields: Mapping[str, str]) -> tuple[Cause, ...]:
    """Error 126: the DLL itself or one that it needs. cuDNN 8 needs zlibwapi.dll."""
    if wanted == _NEEDS_ZLIB:
        zlib = Cause("zlib-missing", {**fields, "found_dll": fields.get("library", "")})
        return zlib, Cause("cudnn-incomplete", fields), Cause("cudnn-missing", {**fields, "advice": ""})
    return Cause("cudnn-incomplete", fields), Cause("cudnn-missing", fields)


def _located(case: Case, fields: Mapping[str, str], wanted: int | None) -> tuple[Cause, ...]:
    there = _majors_there(case)
    if wanted is not None and wanted in there:
        return (Cause("cudnn-not-on-path", fields), Cause("cudnn-missing", fields))
    if wanted is not None and there:
        return (Cause("cudnn-of-other-major", {**fields, "found_major": f"cuDNN {there[max(there)]}"}),)
    short = {**dict.fromkeys(_ONLY_FIRST, ""), **{key: fields[key] for key in _ALWAYS if key in fields}}
    short["no_cudnn"] = "The cuDNN that is installed"
    if wanted is None:
        return Cause("cudnn-missing", fields), Cause("cudnn-not-on-path", short)
    return (
        Cause("cudnn-missing", fields),
        Cause("cudnn-of-other-major", short),
        Cause("cudnn-not-on-path", short),
    )


def wanted_first(there: Mapping[int, str]) -> int:
    """The newest of those that are there."""
    return max(there)


_ALWAYS = ("library", "wanted_cudnn", "find", "program", "linux", "windows", "get_cudnn")
_ONLY_FIRST = ("framework", "version", "built_cuda", "toolkit", "cudnn")
"""Fields of the alternatives beside the first: those that every one speaks of, and those of the first alone."""


def _majors_there(case: Case) -> dict[int, str]:
    """The majors of cuDNN that the text shows to be installed, with the version as told."""
    found: dict[int, str] = {}
    for version in cudnns(case):
        major = version.partition(".")[0]
        if major.isdecimal():
            found.setdefault(int(major), version)
    for it in case.of("library-present"):
        if it.get("cudnn"):
            version = version_text(it.get("cudnn") or "")
            found.setdefault(int(version.partition(".")[0]), version)
        elif owner_of(library(it)) is Owner.CUDNN and (major_there := cudnn_major(library(it))) is not None:
            found.setdefault(major_there, str(major_there))
    return found


def _major(sighting: Sighting) -> int | None:
    told = sighting.get("cudnn")
    return int(told) if told is not None and told.isdecimal() and len(told) == 1 else cudnn_major(library(sighting))


def _wanted(case: Case, sightings: tuple[Sighting, ...], wanted: int | None) -> dict[str, str]:
    found: dict[str, str] = {}
    name = next((library(it) for it in sightings if library(it)), None)
    if name is not None:
        found["library"] = name
        if name == "cudnn":  # no file is named
            found |= {"library": "", "all": ""} | ({} if case.windows else {"plain": "libcudnn.so"})
        elif is_plain(name):
            found["plain"] = name
    if wanted is not None:
        found["wanted_cudnn"] = f"cuDNN {wanted}"
        found["cudnn_major"] = str(wanted)
    cuda = _cuda_beside(case)
    there = next(iter(toolkits(case)), None)
    if there is not None and case.built_cuda is not None and there.major != case.built_cuda.major:
        found["other_toolkit"] = str(there)
    if cuda is not None:
        found["cuda_wanted"] = f"CUDA {cuda}"
    package = _package(wanted, cuda)
    if package is not None:
        found["get_cudnn"] = f"pip: '{package}=={wanted}.*', conda: cudnn={wanted}.*"
    if program_of(case, sightings) in (None, "pytorch") and wanted in _OF_CTRANSLATE2:
        found["whisper"] = "With faster-whisper or WhisperX"
    return found


def _cuda_beside(case: Case) -> str | None:
    """The CUDA that cuDNN is wanted for: that of libraries missing beside it, ONNX Runtime's wish, the build's."""
    for it in case.of("library-missing"):
        span = span_of(case.knowledge, library(it)) if owner_of(library(it)) is Owner.CUDA else None
        if span is not None and span.first.major == span.last.major:
            return str(span.last.major) if span.first.major >= _FIRST_WITH_WHEELS else str(span.last)
    asked = next((it.get("cuda_major") for it in case.of("onnxruntime-provider-failed") if it.get("cuda_major")), None)
    if asked is not None:
        return asked
    build = _build_cuda(case)
    return None if build is None else str(build.major) if build.major >= _FIRST_WITH_WHEELS else str(build)


def _package(cudnn: int | None, cuda: str | None) -> str | None:
    """NVIDIA's package of that cuDNN for that CUDA: 8 for CUDA 11 and 12, 9 for 12 and 13 (for 11 up to 9.10)."""
    major = cuda or "12"
    known = {8: ("11", "12"), 9: ("11", "12", "13")}.get(cudnn or 0, ())
    return f"nvidia-cudnn-cu{major}" if major in known else None


_NEEDS_ZLIB = 8
_OF_CTRANSLATE2 = (8, 9)
_FIRST_WITH_WHEELS = 11
"""The first CUDA major for which there are wheels of cuDNN."""


# ------------------------------------------------------------------------------------------------ versions


def version_mismatch(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """The cuDNN that is loaded and the one that the build was made with: which is the older decides."""
    told = next((it for it in sightings if it.get("found") and it.get("built")), None)
    if told is None:
        yield Diagnosis((Cause("cudnn-mixed", common_fields(case, sightings, None, stem="cudnn")),), sightings)
        return
    found, built = version_text(told.get("found") or ""), version_text(told.get("built") or "")
    least = version_text(told.get("least") or "0")
    fields = {**common_fields(case, sightings, None, stem="cudnn"), "found": found}
    if _parts(least) > _parts(built) and _parts(found) < _parts(least):
        fields["compiled"] = f"was compiled with {built}, and asks for"
        built = least
    fields["built"] = built
    major = built.partition(".")[0]
    fields |= {"found_major": found.partition(".")[0], "built_major": major}
    minor = ".".join(built.split(".")[:2])
    fields["least"] = minor
    package = _package(int(major), _cuda_beside(case))
    fields["get_newer"] = f"conda: 'cudnn>={minor},<{int(major) + 1}'"
    if package is not None:
        fields["get_newer"] = f"pip: '{package}>={built},<{int(major) + 1}', {fields['get_newer']}"
    if program_of(case, sightings) == "pytorch":
        fields |= {"bundled": "PyTorch", "get_newer": "", "advice": ""}
    elif re.search(r"LD_LIBRARY_PATH", " ".join(it.line for it in sightings)):
        fields["path"] = "LD_LIBRARY_PATH"
    if _parts(found)[:1] != _parts(built)[:1]:
        explanation = "cudnn-other-major-loaded"
    elif _parts(found) < _parts(built):
        explanation = "cudnn-too-old"
    else:
        explanation = "cudnn-newer-than-built"
    yield Diagnosis((Cause(explanation, fields, remedy_of(case, sightings)),), sightings)


def mixed(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Parts of two installations of cuDNN in one process."""
    fields = common_fields(case, sightings, None, stem="cudnn")
    versions = sorted({version for version in case.every("cudnn") if version.count(".") > 1})
    if versions:
        fields["versions" if len(versions) > 1 else "one_version"] = " and ".join(versions)
    yield Diagnosis((Cause("cudnn-mixed", fields, remedy_of(case, sightings)),), sightings)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


# ------------------------------------------------------------------------------------------------ failures


def broken(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A status of cuDNN that many things bring about: what is known of GPU, build and driver ranks them."""
    failures = tuple(it for it in sightings if not _PLAN.search(it.line))
    plans = tuple(it for it in sightings if it not in failures)
    if not failures:
        yield Diagnosis((Cause("cudnn-plan-rejected", {}),), plans)
        return
    status = next((it.get("status") for it in failures if it.get("status")), None)
    fields = {**common_fields(case, failures, None, stem="cudnn"), "status": status or ""}
    causes = [*_by_hardware(case, fields), *_by_status(case, failures, fields, status)]
    yield Diagnosis(tuple({it.explanation: it for it in causes}.values())[:4], failures)


def _by_hardware(case: Case, fields: Mapping[str, str]) -> Iterator[Cause]:
    """Causes that GPU, build and driver make certain or likely."""
    build = _build_cuda(case)
    first = case.knowledge.cuda_for(case.capability) if case.capability is not None else None
    if build is not None and first is not None and build < first[0]:
        gpu = {"first_cuda": str(first[0]), "build": str(build), "sm": f"sm_{_digits(case)}"}
        yield Cause("cudnn-gpu-too-new", {**fields, **gpu})
    elif first is None and case.capability is not None:
        return
    if case.capability is not None and case.capability < _FIRST_GPU_OF_LATER and _may_be_later(case):
        yield Cause("cudnn-gpu-too-old", {**fields, "last": _LAST_FOR_OLD_GPUS, "sm": f"sm_{_digits(case)}"})
    if build is not None and case.driver is not None:
        floor = case.knowledge.driver_floor(build, windows=case.windows)
        if floor is not None and not case.driver.meets(floor):
            yield Cause("cudnn-driver-too-old", {**fields, "floor": str(floor), "build": str(build)})


def _by_status(
    case: Case, sightings: tuple[Sighting, ...], fields: Mapping[str, str], status: str | None
) -> Iterator[Cause]:
    """What a status comes from most often, the likeliest first."""
    lines = " ".join(it.line for it in sightings)
    tensorflow = program_of(case, sightings) == "tensorflow"
    memory = Cause("cudnn-out-of-memory", {**fields, **({"tensorflow_memory": "TensorFlow"} if tensorflow else {})})
    driver = Cause("cudnn-driver-too-old", fields)
    other = Cause("cudnn-other-copy", fields)
    kernels = Cause("cudnn-without-code-for-gpu", fields)
    if "insufficient driver version" in lines:
        yield from (driver, memory, other)
    elif tensorflow and not _no_library(lines):
        yield from (memory, other, driver)
    elif _no_library(lines):
        yield from (other, memory)
    elif _MEMORY.search(lines):
        yield from (memory, other)
    elif "unable to find an engine" in lines.lower():
        yield from (other, memory, kernels)
    elif status in ("EXECUTION_FAILED", "MAPPING_ERROR", "INTERNAL_ERROR"):
        yield from (kernels, memory, other)
    elif any(it.get("frontend") for it in sightings):
        yield from (Cause("cudnn-attention-not-supported", fields), other)
    elif status in ("NOT_SUPPORTED", "BAD_PARAM"):
        yield from (Cause("cudnn-call-not-supported", fields), kernels, other)
    else:
        yield from (memory, driver, other, kernels)


def _no_library(lines: str) -> bool:
    return re.search(r"DNN library|No DNN in stream", lines, re.IGNORECASE) is not None


def _build_cuda(case: Case) -> CudaVersion | None:
    """The CUDA of the build, as far as anything tells it: else the toolkit that is named beside it."""
    return case.built_cuda or next(iter(toolkits(case)), None)


def _may_be_later(case: Case) -> bool:
    """Whether the cuDNN may be 9.11 or newer: told, or nothing tells otherwise."""
    versions = [_parts(it) for it in cudnns(case)]
    if versions:
        return any(it >= (9, 11) for it in versions)
    built = [it.cudnn for it in case.releases() if it.cudnn is not None]
    return any(it.release >= (9, 11) for it in built)


def _digits(case: Case) -> str:
    return str(case.capability).replace(".", "")


RULES: Mapping[str, Rule] = {
    "cudnn-version-mismatch": version_mismatch,
    "cudnn-mixed": mixed,
    "cudnn-incomplete": incomplete,
    "cudnn-broken": broken,
}
