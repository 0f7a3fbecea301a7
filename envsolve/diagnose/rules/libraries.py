"""Rules on libraries that are not found: whose they are decides what is missing, what is installed decides why.

The libraries of the driver and of a faulty release are other rules' business, those of cuDNN the catalogue's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.decide import diagnoses
from envsolve.diagnose.facts.library_names import Owner, Span, is_plain, owner_of, span_of
from envsolve.diagnose.facts.programs import NOT_EXTENSIONS, importer_of, program_of, remedy_of
from envsolve.diagnose.facts.seen_libraries import (
    library,
    opened_span,
    told_with_libdevice,
    toolkits,
    wanted_span,
)
from envsolve.diagnose.rules.jetpack import jetpack_fields
from envsolve.diagnose.rules.library_context import common_fields, program_fields
from envsolve.diagnose.rules.torch_libraries import extension_fields
from envsolve.findings import catalogue
from envsolve.findings.catalogue import Branch, shipped
from envsolve.model.host import Platform
from envsolve.model.versions import CudaVersion

_SYMBOL = re.compile(r"undefined symbol|not defined in file|symbol lookup error", re.IGNORECASE)
"""A library that was found and lacks a function: that is told with the symbols."""
_OPTIONAL_IN = re.compile(r"dso_loader|dynamic library|onnxruntime|TensorrtExecutionProvider|TF-TRT", re.IGNORECASE)
"""Programs that look for TensorRT and go on without it."""


_CUDNN_MISSING = catalogue.Rule(
    "library-missing", None, None, (Branch(None, (), (catalogue.Cause("@cudnn-missing", None),)),)
)


def missing(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Libraries that are not found, sorted by whose they are."""
    groups: dict[Owner, list[Sighting]] = {}
    for it in sightings:
        if not _told_elsewhere(case, it):
            groups.setdefault(_owner(it), []).append(it)
    if Owner.CUDNN in groups:
        yield from diagnoses(_CUDNN_MISSING, shipped(), case, tuple(groups[Owner.CUDNN]))
    if Owner.CUDA in groups:
        yield from _of_cuda(case, groups[Owner.CUDA])
    if Owner.TENSORRT in groups:
        yield _of_tensorrt(case, groups[Owner.TENSORRT])
    for owner, explanation in _EXPLAINED.items():
        for it in _each_once(groups.get(owner, ())):
            fields = {"library": library(it), **program_fields(case, (it,))}
            if owner is Owner.PYTORCH:
                fields |= {"toolkit": "", **extension_fields(case, it)}
            cause = Cause(_in_context(case, it, explanation), fields, remedy_of(case, (it,)))
            yield Diagnosis((cause,), (it,))


def _told_elsewhere(case: Case, sighting: Sighting) -> bool:
    """Whether another symptom tells it: a missing function, libdevice, a back end for TPUs that JAX tries first."""
    name = library(sighting)
    return bool(_SYMBOL.search(sighting.line)) or name.startswith("libtpu") or told_with_libdevice(case, name)


_EXPLAINED = {
    Owner.PYTORCH: "pytorch-library-missing",
    Owner.TENSORFLOW: "tensorflow-library-missing",
    Owner.ONNXRUNTIME: "onnxruntime-library-missing",
    Owner.LLAMA: "llama-library-missing",
    Owner.ZLIB: "zlib-missing",
    Owner.VISUAL_CPP: "visual-cpp-missing",
    Owner.SYSTEM: "system-library-missing",
}
"""What is told by the owner alone. The driver's, bitsandbytes' and a faulty release's are told elsewhere."""


def _in_context(case: Case, sighting: Sighting, explanation: str) -> str:
    """A zlib that cuDNN asks for is its own matter; a runtime that no CUDA program asks for is the system's."""
    if library(sighting).startswith("libz.so") and "cudnn" in sighting.line.lower():
        return "zlib-missing-on-linux"
    if explanation == "visual-cpp-missing" and program_of(case, (sighting,)) is None:
        return "system-library-missing"
    return explanation


def not_found(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A framework that says only that something is missing; where a library is named, that is told instead."""
    if any(_owner(it) in (Owner.CUDA, Owner.CUDNN) for it in case.of("library-missing")):
        return
    if case.saw("loader-path") and _shadow(case.of("loader-trace")) is not None:
        return
    program = program_of(case, sightings)
    if program == "bitsandbytes" and case.saw("bitsandbytes-binary"):
        return  # told with the library that it did not load for it
    parts = ", ".join(dict.fromkeys(part for it in sightings if (part := it.get("part"))))
    fields = {
        **common_fields(case, sightings, None),
        "message": _MEANINGS.get(program or "", _MEANS),
        **({"parts": parts} if parts else {}),
    }
    if program == "jax" and re.search("cusparse|cusolver", parts, re.IGNORECASE):
        fields["by_nvjitlink"] = parts
    if program == "jax":
        fields["jax"] = "pip install --upgrade --force-reinstall 'jax[cuda12]'"
    if program == "tensorflow" and case.windows:
        fields["native_windows"] = "TensorFlow"
    if (case.version_of("tensorflow") or "").startswith("2.16") and program == "tensorflow":
        fields["tensorflow_216"] = "TensorFlow 2.16"
    yield Diagnosis((Cause("cuda-libraries-not-found", fields, remedy_of(case, sightings)),), sightings)


_MEANS = "The framework looked for the CUDA runtime libraries and did not find them."
_MEANINGS = {
    "tensorflow": (
        "TensorFlow did not find the CUDA libraries (libcudart first of all): its message speaks of drivers or of GPU "
        "libraries and means these."
    ),
    "jax": (
        "JAX could not load these libraries: they are not there, or what they need in turn is of another release "
        "(cuSPARSE and cuSOLVER need the libnvJitLink of their own release, which a CUDA on LD_LIBRARY_PATH shadows)."
    ),
    "pytorch": "PyTorch looked for the cuBLAS of its nvidia-* packages and did not find it.",
    "bitsandbytes": (
        "bitsandbytes looked for libcudart in the environment and on LD_LIBRARY_PATH and did not find it."
    ),
}


def older_than_built(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """JAX's comparison of each library with the one it was built against; cuDNN's is told as such."""
    compared = tuple(_whole_messages(sightings))
    others = tuple(it for it in compared if (it.get("part") or "").lower() != "cudnn")
    if others:
        yield Diagnosis((Cause("cuda-library-too-old", _compared(others[0])),), others)
    if len(others) < len(compared) and not case.saw("cudnn-version-mismatch"):
        rule = shipped().rule("cudnn-version-mismatch")
        assert rule is not None
        yield from diagnoses(rule, shipped(), case, tuple(it for it in compared if it not in others))


def _compared(sighting: Sighting) -> Mapping[str, str]:
    """The numbers of a comparison as versions: 12020 is CUDA 12.2, 12002 cuSPARSE 12.0.2, 120103 cuBLAS 12.1.3."""
    fields = dict(sighting.fields)
    for name in ("found", "built", "least"):
        version = _version_of(sighting.get("part") or "", int(fields.get(name) or 0))
        if version is not None:
            fields[name] = f"{version} ({fields[name]})"
    return fields


def _version_of(part: str, number: int) -> str | None:
    """A version as each library counts it: by ten thousands those with six digits, by thousands those with five."""
    if part == "CUDA":
        version = CudaVersion.from_driver_api(number)
        return None if version is None else str(version)
    unit = next((it for it, least in ((10_000, 100_000), (1_000, 10_000)) if number >= least), None)
    return None if unit is None else f"{number // unit}.{number % unit // 100}.{number % 100}"


def _whole_messages(sightings: tuple[Sighting, ...]) -> Iterator[Sighting]:
    """The messages, with the numbers that stand in the lines after them."""
    for place, it in enumerate(sightings):
        if not it.get("part"):
            continue
        later: dict[str, str] = {}
        for after in sightings[place + 1 :]:
            if after.get("part"):
                break
            later |= {"found" if name == "installed" else name: value for name, value in after.fields.items()}
        yield it._replace(fields={**later, **it.fields})


def traced(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """The loader's own trace (LD_DEBUG): LD_LIBRARY_PATH led to another copy than the one beside the library."""
    shadow = _shadow(sightings) if case.saw("loader-path") else None
    if shadow is not None:
        needed, tried = shadow
        fields = {"library": library(needed), "by": needed.get("by") or "", "found": tried.get("path") or ""}
        seen = (needed, *case.of("loader-path")[:1], tried)
        yield Diagnosis((Cause("library-shadowed", {**fields, **program_fields(case, (needed,))}),), seen)


def _shadow(sightings: tuple[Sighting, ...]) -> tuple[Sighting, Sighting] | None:
    """What needed a library, and the copy that the loader took, where that is of another environment."""
    needed: Sighting | None = None
    tried: Sighting | None = None
    for it in (*sightings, None):
        ends = it is None or it.get("by") or it.get("loaded")
        if ends and needed is not None and tried is not None:
            found = tried.get("path") or ""
            if found.endswith(f"/{library(needed)}") and not _beside(needed.get("by") or "", found):
                return needed, tried
        if it is None or it.get("loaded"):
            needed, tried = None, None
        elif it.get("by"):
            needed, tried = it, None
        else:
            tried = it
    return None


def profiler(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A profiler that finds no CUPTI; where its library is named, that is told instead."""
    if not any("cupti" in library(it).lower() for it in case.of("library-missing")):
        yield Diagnosis(
            (Cause("profiler-without-cupti", common_fields(case, sightings, None, stem="cupti")),), sightings
        )


# ---------------------------------------------------------------------------------------------- CUDA's libraries


def _of_cuda(case: Case, sightings: Sequence[Sighting]) -> Iterator[Diagnosis]:
    """Why libraries of CUDA are not found; those of one kind are one finding."""
    builtins = tuple(it for it in sightings if re.match("(lib)?nvrtc(-builtins.*)?$", library(it), re.IGNORECASE))
    if builtins:
        yield Diagnosis((Cause("nvrtc-builtins-missing", _builtins_fields(case, builtins)),), builtins)
    links = tuple(it for it in sightings if library(it) == "libnvrtc.so" and "cudnn" in (it.get("by") or ""))
    if links:
        yield Diagnosis((Cause("nvrtc-link-missing", common_fields(case, links, None)),), links)
    rest = tuple(it for it in sightings if it not in builtins and it not in links)
    if rest:
        first, *others = _causes(case, rest)
        yield Diagnosis((first._replace(remedy=remedy_of(case, rest)), *others), rest)


def _causes(case: Case, sightings: tuple[Sighting, ...]) -> tuple[Cause, ...]:
    """The causes of missing CUDA libraries, judged by what is known of the CUDA that is there."""
    told, span = wanted_span(case, sightings)
    fields = {**common_fields(case, sightings, span), **_names(case, told)}
    foreign = _mixed(case, sightings)
    if foreign is not None:
        return (Cause("cuda-libraries-mixed", {**fields, **foreign}),)
    if case.jetson or (case.platform is Platform.LINUX_AARCH64 and program_of(case, sightings) == "pytorch"):
        on_board = Cause("jetson-libraries", {**fields, **jetpack_fields(case, span)})
        sure = "jetpack" in on_board.fields and "jetpack_wanted" in on_board.fields
        return (on_board,) if sure else (on_board, Cause("cuda-library-missing", fields))
    asked_by_cudnn = _asked_by_cudnn(case, sightings, fields, span)
    if asked_by_cudnn is not None:
        absent = Cause("cuda-library-missing", {**fields, "official_cuda": ""})
        return (asked_by_cudnn, absent) if asked_by_cudnn.fields.get("here") else (absent, asked_by_cudnn)
    extension = _extension(case, sightings, span)
    if extension is not None:
        return extension_causes(case, fields, extension, span)
    return located(case, sightings, fields, span)


_CUDNN_LOADS = re.compile(r"Could not load library \S+\.\s+Error|libcudnn\w*\.so\S*: undefined", re.IGNORECASE)
"""How cuDNN 8 tells what it opens itself."""


def _asked_by_cudnn(
    case: Case, sightings: tuple[Sighting, ...], fields: Mapping[str, str], span: Span | None
) -> Cause | None:
    """A library that cuDNN 8 opens, of another CUDA major than that of the program: cuDNN is of the other."""
    if span is None or span.shortly is None or not any(_CUDNN_LOADS.search(it.line) for it in sightings):
        return None
    there = next(iter(toolkits(case)), None)
    here = case.built_cuda or there
    if here is None:
        return Cause("cudnn-for-other-cuda", {"library": fields["library"], "wanted": span.shortly})
    if here.major in (span.first.major, span.last.major):
        return None
    told = {"here": str(here), "here_major": str(here.major)}
    if case.built_cuda is None:
        told["here_toolkit"] = str(here)
    return Cause("cudnn-for-other-cuda", {**fields, **told})


def extension_causes(case: Case, fields: Mapping[str, str], extension: str, span: Span | None) -> tuple[Cause, ...]:
    """The causes where a package beside the framework wants the library."""
    torch = {} if case.built_cuda is None else {"torch_cuda": str(case.built_cuda)}
    own = Cause("extension-of-other-cuda", {**fields, **torch, "extension": extension})
    if case.built_cuda is not None and span is not None:
        return (own,)
    return own, Cause("cuda-library-missing", fields)


def located(
    case: Case, sightings: tuple[Sighting, ...], fields: Mapping[str, str], span: Span | None
) -> tuple[Cause, ...]:
    """By the toolkits that are told: not on the path, another CUDA, in part; all three where none is told."""
    there = toolkits(case)
    opened = opened_span(case)
    if span is not None and opened is not None and opened.common(span) is not None:
        return (Cause("cuda-library-part-missing", {**fields, **_opened(case, opened, span)}),)
    if span is not None and any(it in span for it in there):
        return (Cause("cuda-library-not-on-path", {**fields, **_path(next(it for it in there if it in span), fields)}),)
    if span is not None and there:
        return (Cause("cuda-library-of-other-cuda", {**fields, "toolkit": str(there[0])}),)
    short = {**dict.fromkeys(_ONLY_FIRST, ""), **{key: fields[key] for key in _ALWAYS if key in fields}}
    absent, elsewhere = Cause("cuda-library-missing", fields), Cause("cuda-library-not-on-path", short)
    unknown = {"no_toolkit": "The CUDA that is installed"}
    program = program_of(case, sightings)
    other_first = (
        program == "rapids" if span is None else span.last.major <= _OLD_MAJOR and program in _USUALLY_BESIDE_PYTORCH
    )
    if other_first:
        other = Cause("cuda-library-of-other-cuda", {**fields, **unknown})
        return other, Cause("cuda-library-missing", short), elsewhere
    if span is None:
        return absent, elsewhere
    return absent, elsewhere, Cause("cuda-library-of-other-cuda", {**short, **unknown})


_ALWAYS = ("library", "wanted", "find", "program", "linux", "windows", "one_name", "cupti")
"""Fields that every alternative speaks of; the others are for the one that is told first."""
_ONLY_FIRST = ("framework", "version", "built_cuda", "toolkit")
_OLD_MAJOR = 11
_USUALLY_BESIDE_PYTORCH = frozenset({"onnxruntime", "ctranslate2", "cupy", "llama.cpp"})
"""Programs that find a CUDA 12 of PyTorch or of the machine more often than none."""


def _path(toolkit: CudaVersion, fields: Mapping[str, str]) -> dict[str, str]:
    """The toolkit that has the library, and what puts it on the path."""
    found = {"toolkit": str(toolkit)}
    if fields.get("linux"):
        directory = f"/usr/local/cuda-{toolkit}" + ("/extras/CUPTI" if fields.get("cupti") else "")
        found["export"] = f"export LD_LIBRARY_PATH={directory}/lib64:$LD_LIBRARY_PATH"
    return found


def _names(case: Case, told: str) -> Mapping[str, str]:
    """Fields on the one library that is spoken of."""
    found = {"library": told}
    if is_plain(told):
        found["plain"] = told
    if told == "libcublas.so.10":
        found["cublas"] = told
    if told == "libcusolver.so.10":
        found["cusolver"] = told
    if told.lower().startswith(("libcupti", "cupti")):
        found["cupti"] = told
        if program_of(case, case.of("library-missing")) == "tensorflow" and "could not dlopen DSO" not in _lines(case):
            found["cupti_optional"] = told
    return found


def _mixed(case: Case, sightings: tuple[Sighting, ...]) -> Mapping[str, str] | None:
    """A library of CUDA that was found, of another CUDA than the rest, and now wants its own kind."""
    opened = opened_span(case)
    for it in sightings:
        by, span = it.get("by"), span_of(case.knowledge, library(it))
        if by is None or by == library(it) or opened is None or span is None or opened.common(span) is not None:
            continue
        if owner_of(by) is Owner.CUDA:
            return {"by": by, "library": library(it), "present": opened.shortly or str(opened)}
    return None


def _extension(case: Case, sightings: tuple[Sighting, ...], span: Span | None) -> str | None:
    """The package beside PyTorch whose import failed, where PyTorch is not known to be of the CUDA that is wanted."""
    importer = importer_of(case, sightings)
    if importer is None or importer.lower() in NOT_EXTENSIONS or importer.startswith("_"):
        return None
    if span is not None and case.framework == "pytorch" and case.built_cuda is not None and case.built_cuda in span:
        return None
    return importer


def _opened(case: Case, opened: Span, span: Span) -> Mapping[str, str]:
    found = {
        "opened": " and ".join(
            dict.fromkeys(
                library(it)
                for it in case.of("library-present")
                if it.get("opened") and owner_of(library(it)) is Owner.CUDA
            )
        )
    }
    both = opened.common(span)
    if both is not None and both.first == both.last:
        found["exact"] = str(both)
    return found


def _builtins_fields(case: Case, sightings: tuple[Sighting, ...]) -> dict[str, str]:
    fields = dict(common_fields(case, sightings, span_of(case.knowledge, library(sightings[0]))))
    fields["library"] = library(sightings[0])
    span = span_of(case.knowledge, library(sightings[0]))
    if "_ERROR_" in sightings[0].line:
        fields |= {"library": "", "status": "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"}
        there = fields.get("toolkit")
        fields["unnumbered"] = f"; here the CUDA is told as {there}" if there else ""
    if span is not None and span.first == span.last:
        fields |= {"exact": str(span.first), "exact_cuda": f"CUDA {span.first}"}
    return fields


# ----------------------------------------------------------------------------------------------- TensorRT and others


def _of_tensorrt(case: Case, sightings: Sequence[Sighting]) -> Diagnosis:
    """TensorRT, which TensorFlow and ONNX Runtime do without, and others do not."""
    first = sightings[0]
    fields = {"library": library(first), **program_fields(case, tuple(sightings))}
    major = re.search(r"\.so\.(\d+)|_(\d+)\.dll", first.get("by") or library(first))
    if major is not None:
        fields["tensorrt"] = f"TensorRT {major[1] or major[2]}"
    by = first.get("by")
    if by is not None and by != library(first) and owner_of(library(first)) is not Owner.TENSORRT:
        fields["needed"] = library(first)
        fields["library"] = by
    optional = any(_OPTIONAL_IN.search(it.line) for it in sightings)
    return Diagnosis((Cause("tensorrt-not-found" if optional else "tensorrt-missing", fields),), tuple(sightings))


def _owner(sighting: Sighting) -> Owner:
    """Whose it is; what TensorRT's own libraries miss is TensorRT's, what cuDNN misses of zlib is zlib's."""
    if sighting.get("cudnn"):
        return Owner.CUDNN
    by = sighting.get("by") or ""
    if by and owner_of(by) is Owner.TENSORRT:
        return Owner.TENSORRT
    return owner_of(library(sighting))


def _lines(case: Case) -> str:
    return " ".join(it.line for it in case.of("library-missing"))


def _each_once(sightings: Sequence[Sighting]) -> Iterator[Sighting]:
    yield from {library(it): it for it in reversed(sightings)}.values()


def _beside(by: str, found: str) -> bool:
    """Whether two files are of one environment: the same site-packages, or the same prefix."""
    root = by.partition("/site-packages/")[0] if "/site-packages/" in by else by.rpartition("/")[0]
    return found.startswith(root)


RULES: Mapping[str, Rule] = {
    "library-missing": missing,
    "cuda-libraries-not-found": not_found,
    "library-older-than-built": older_than_built,
    "loader-trace": traced,
    "profiler-without-cupti": profiler,
}
