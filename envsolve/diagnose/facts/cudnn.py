"""Facts on cuDNN: which of its versions is needed, which one is there, and what the build's CUDA and GPU allow.

Its file names carry the major version only, the sub-libraries differ from major to major (8: _infer and _train, 9: ops,
cnn, graph, engines), and each part refuses parts of another release.
"""

from __future__ import annotations

import re

from envsolve.diagnose.case import Case, Lines, Sighting
from envsolve.diagnose.facts.libraries import cuda_of_program
from envsolve.diagnose.facts.shared.gpu_packages import version_of_package
from envsolve.diagnose.facts.shared.library_names import Owner, cudnn_major, is_plain, owner_of, span_of
from envsolve.diagnose.facts.shared.programs import program_of
from envsolve.diagnose.facts.shared.seen_libraries import cudnns, library, whole_messages
from envsolve.model.capability import ComputeCapability

_OLD_NUMBERS = 1_000
_NEW_NUMBERS = 10_000
"""From cuDNN 9 on a version is counted 9.1.0 = 90100, before 8.9.7 = 8907."""
_FIRST_GPU_OF_LATER = ComputeCapability(7, 5)
_WITHOUT_OLD_GPUS = (9, 11)
_FIRST_WITH_WHEELS = 11
"""The first CUDA major for which there are wheels of cuDNN."""
_FIRST_FOR_CUDA_12 = (8, 8)
_WHEELS = {8: ("11", "12"), 9: ("11", "12", "13")}
"""The CUDA majors for which pip has wheels of a major of cuDNN: 9 for CUDA 11 up to 9.10."""


# ------------------------------------------------------------------------------------------------- what is needed


def cudnn_file(_case: Case, lines: Lines) -> str | None:
    """The library of cuDNN that is named."""
    names = (library(it) for it in lines if owner_of(library(it)) is Owner.CUDNN)
    return next((it for it in names if it.lower() != "cudnn"), None)


def cudnn_link(case: Case, lines: Lines) -> str | None:
    """The name without a number, if that is what is missing: only cuDNN's packages for developers have it."""
    file = cudnn_file(case, lines)
    if file is None:
        named = any(library(it).lower() == "cudnn" for it in lines)
        return "libcudnn.so" if named and not case.windows else None
    return file if is_plain(file) else None


def cudnn_wanted(_case: Case, lines: Lines) -> int | None:
    """The major version that is needed, by the names of the files."""
    return next((major for it in lines if (major := _major(it)) is not None), None)


def _major(it: Sighting) -> int | None:
    major = it.get("cudnn")
    return int(major) if major is not None and major.isdecimal() and len(major) == 1 else cudnn_major(library(it))


# ------------------------------------------------------------------------------------------------- what is there


def _majors_there(case: Case) -> dict[int, str]:
    """The majors of cuDNN that the text shows to be installed, with the version as written."""
    found: dict[int, str] = {}
    for version in cudnns(case):
        major = version.partition(".")[0]
        if major.isdecimal():
            found.setdefault(int(major), version)
    for it in case.of("library-present"):
        if it.get("cudnn"):
            version = _version(it.get("cudnn") or "")
            found.setdefault(int(version.partition(".")[0]), version)
        elif owner_of(library(it)) is Owner.CUDNN and (major_there := cudnn_major(library(it))) is not None:
            found.setdefault(major_there, str(major_there))
    return found


def cudnn_there(case: Case, _lines: Lines) -> str | None:
    """The newest cuDNN that is installed."""
    there = _majors_there(case)
    return there[max(there)] if there else None


def cudnn_is_there(case: Case, lines: Lines) -> bool:
    """Whether the major version that is needed is installed."""
    return cudnn_wanted(case, lines) in _majors_there(case)


# ------------------------------------------------------------------------------------------------- two versions


def _version(number: str) -> str:
    """``8.7.0`` of 8700, ``9.1.0`` of 90100 and of ``9, 1, 0``; a version as it stands otherwise."""
    if number.isdecimal() and int(number) >= _OLD_NUMBERS:
        value = int(number)
        unit = 10_000 if value >= _NEW_NUMBERS else 1_000
        return f"{value // unit}.{value % unit // 100}.{value % 100}"
    return ".".join(re.findall(r"\d+", number))


def _parts(version: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in (version or "").split(".") if part.isdecimal())


def _field(lines: Lines, name: str) -> str | None:
    """A version in the first line that has both sides, or in JAX's message, which has each on a line of its own."""
    messages = (it for it in (*lines, *whole_messages(lines)) if (it.get("part") or "cuDNN").lower() == "cudnn")
    whole = next((it for it in messages if it.get("found") and it.get("built")), None)
    number = whole.get(name) if whole is not None else None
    return None if number is None else _version(number)


def cudnn_found(_case: Case, lines: Lines) -> str | None:
    """The cuDNN that is loaded."""
    return _field(lines, "found")


def cudnn_compiled(_case: Case, lines: Lines) -> str | None:
    """The cuDNN that the framework was compiled with."""
    return _field(lines, "built")


def cudnn_least(case: Case, lines: Lines) -> str | None:
    """The cuDNN that it needs: the one that it was compiled with, or a newer one."""
    found, built, least = cudnn_found(case, lines), cudnn_compiled(case, lines), _field(lines, "least")
    return least if _parts(least) > _parts(built) and _parts(found) < _parts(least) else built


def cudnn_that_fits(case: Case, lines: Lines) -> str | None:
    """A cuDNN that is as new as needed and installed beside the loaded one."""
    found, least = _parts(cudnn_found(case, lines)), _parts(cudnn_least(case, lines))
    package = version_of_package(case, f"nvidia-cudnn-cu{least and _cuda_major(case, lines)}")
    versions = (*cudnns(case), *((package,) if package else ()))
    fits = (it for it in versions if _parts(it) > found and _parts(it)[:1] == least[:1] and _parts(it) >= least)
    return next(fits, None) if least else None


def cudnn_loaded(case: Case, lines: Lines) -> str | None:
    """What the loaded cuDNN is beside the needed one: ``other-major``, ``older`` or ``newer``."""
    found, least = _parts(cudnn_found(case, lines)), _parts(cudnn_least(case, lines))
    if not found or not least:
        return None
    return "other-major" if found[0] != least[0] else "older" if found < least else "newer"


# ------------------------------------------------------------------------------------------------- packages and CUDA


def _cuda_major(case: Case, lines: Lines) -> str | None:
    """The CUDA major that cuDNN is needed for: of libraries missing beside it, ONNX Runtime's wish, the build's.

    Where nothing says it, the version of cuDNN does: before 8.8 it was not made for CUDA 12.
    """
    for it in case.of("library-missing"):
        span = span_of(case.knowledge, library(it)) if owner_of(library(it)) is Owner.CUDA else None
        if span is not None and span.first.major == span.last.major:
            return str(span.last.major)
    asked = next((it.get("cuda_major") for it in case.of("onnxruntime-provider-failed") if it.get("cuda_major")), None)
    build = cuda_of_program(case, lines)
    if asked is not None or build is not None:
        return asked or str(build.major if build else "")
    compiled = _parts(cudnn_least(case, lines))
    if compiled and compiled < _FIRST_FOR_CUDA_12:
        return str(_FIRST_WITH_WHEELS)
    if (compiled or (cudnn_wanted(case, lines) or 0,))[0] > _FIRST_FOR_CUDA_12[0]:
        return "12"
    return "12" if program_of(case, lines) in ("ctranslate2", "pytorch") else None


def cudnn_package(case: Case, lines: Lines) -> str | None:
    """Pip's package of the needed cuDNN for the CUDA that it is needed for."""
    cuda = _cuda_major(case, lines)
    major = next(iter(_parts(cudnn_least(case, lines))), None) or cudnn_wanted(case, lines)
    return f"nvidia-cudnn-cu{cuda}" if cuda is not None and cuda in _WHEELS.get(major or 0, ()) else None


def memory_is_free(case: Case, _lines: Lines) -> bool:
    """Whether the text says that more than half of the GPU's memory is free."""
    free, total = (int(it) for it in re.findall(r"\d+", case.clue("memory_usage") or "0 0"))
    return free * 2 > total


def gpu_left_by_cudnn(case: Case, _lines: Lines) -> bool:
    """Whether the GPU is one that cuDNN 9.11 left out, and the cuDNN may be that or a newer one."""
    if case.capability is None or case.capability >= _FIRST_GPU_OF_LATER:
        return False
    if case.knowledge.cuda_for(case.capability) is None:
        return False
    versions = [_parts(it) for it in cudnns(case)]
    versions = versions or [it.cudnn.release for it in case.releases() if it.cudnn is not None]
    return any(it >= _WITHOUT_OLD_GPUS for it in versions)
