"""Facts on DLLs that Windows does not load: its error number and the DLL's name decide, its words are translated.

126: the DLL, or one that it needs, is not found. 127: found, and of another version. 1114: it refuses to start.
193: it is not of this architecture, or damaged.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from packaging.version import Version

from envsolve.diagnose.case import Case, Lines, Sighting
from envsolve.diagnose.facts.shared.gpu_packages import of_module, package_of
from envsolve.diagnose.facts.shared.library_names import Owner, owner_of
from envsolve.diagnose.facts.shared.programs import importer_of
from envsolve.diagnose.facts.shared.seen_libraries import cudnns, library, reported_with_libdevice
from envsolve.diagnose.facts.shared.tables import first_match
from envsolve.model.versions import parsed_version

_NOT_FOUND = "126"
_ELSEWHERE = re.compile(r"zluda|WinError 1455", re.IGNORECASE)
"""Lines that have findings of their own: ZLUDA is for AMD, whatever is missing; 1455 is a matter of memory."""
_CUDNN_MAJORS = range(5, 13)
_OPENS_CUDA_LATER = Version("2.1")
"""From this TensorFlow on importing it needs no DLL of CUDA; they are opened when a GPU is looked for."""
_PACKAGES = {Owner.PYTORCH: "torch", Owner.TENSORFLOW: "tensorflow", Owner.ONNXRUNTIME: "onnxruntime"}
"""The package that contains an owner's DLLs."""
_FOR_CUDA_12 = {"1.17": "8", "1.17.1": "8", "1.18": "8", "1.18.1": "9"}
"""The cuDNN of builds for CUDA 12 beside those for CUDA 11 on PyPI (onnxruntime.ai, CUDA execution provider)."""


def _first(lines: Lines) -> Sighting:
    return next((it for it in lines if it.get("module")), lines[0])


def dll_error(_case: Case, lines: Lines) -> str:
    """Windows' number of the error: as it stands there, or by its words; "not found" without both."""
    first = _first(lines)
    number = first.get("code")
    if number is not None:
        return _NOT_FOUND if number.lower() in ("0x8007007e", "0x7e") else number
    return first_match("dll-error", first.line) or _NOT_FOUND


def dll_failure(case: Case, lines: Lines) -> str | None:
    """The DLL that an error names, with the number; None for one that another symptom explains."""
    name = library(lines[0])
    named = {library(it) for it in case.of("library-missing")}
    if _ELSEWHERE.search(lines[0].line) or name in named or reported_with_libdevice(case, name):
        return None
    return f"{dll_error(case, lines)} {name.lower()}"


def dll_owner(_case: Case, lines: Lines) -> str:
    """To what the DLL belongs: cuda, cudnn, pytorch, system ..."""
    return owner_of(library(lines[0])).value


def dll_package(case: Case, lines: Lines) -> str | None:
    """The package of the DLL or of the extension module, by the name that it is imported by."""
    line = lines[0].line
    within = package_of(line) if re.search(r"(?:site|dist)-packages[\\/]", line, re.IGNORECASE) else None
    if lines[0].symptom == "module-not-loaded":
        known = {"tensorflow": "tensorflow", "onnxruntime": "onnxruntime", "torch": "torch"}
        kind = module_kind(case, lines)
        own = importer_of(case, lines) or within or _built_for_torch(case) or of_module(_module(lines))
        return known.get(kind or "") or (own if kind == "extension" else importer_of(case, lines))
    return within or _PACKAGES.get(owner_of(library(lines[0])))


# ---------------------------------------------------------------------------------------------- extension modules


def _built_for_torch(case: Case) -> str | None:
    """The only package of the text whose version names the torch that it was built for: 1.0.1+torch2.10."""
    found = [name for name, version in case.packages.items() if re.search(r"\+.*torch\d", version)]
    return found[0] if len(found) == 1 else None


def _module(lines: Lines) -> str:
    return _first(lines).get("module") or ""


def module_kind(case: Case, lines: Lines) -> str | None:
    """What an extension module is: ``tensorflow``, ``onnxruntime``, ``torch``, an ``extension`` of it, or ``other``."""
    module = _module(lines)
    if module == "_C" and importer_of(case, lines) == "torch":
        return "torch"
    if not module and case.framework == "tensorflow":
        return "tensorflow"
    return first_match("module-kind", module, whole=True)


def tensorflow_linked(case: Case, lines: Lines) -> bool:
    """Whether TensorFlow is so old that its own module was linked with CUDA."""
    version = parsed_version(case.version_of("tensorflow"))
    return version < _OPENS_CUDA_LATER if version is not None else not _module(lines)


# ---------------------------------------------------------------------------------------------- ONNX Runtime


class _Provider(NamedTuple):
    """The CUDA major and the cuDNN major that ONNX Runtime's CUDA provider needs."""

    cuda: str
    cudnn: str


def provider_needs(case: Case, _lines: Lines = ()) -> _Provider | None:
    """What this ONNX Runtime needs: as it says, or as its wheel was built."""
    for it in case.of("onnxruntime-provider-failed"):
        cuda, cudnn = it.get("cuda_major"), it.get("cudnn_major")
        if cuda is not None and cudnn is not None:
            return _Provider(cuda, cudnn)
    if case.framework != "onnxruntime" or case.built_cuda is None:
        return None
    wishes = [it.cudnn_requires for it in case.releases() if it.cudnn_requires is not None]
    majors = {str(major) for major in _CUDNN_MAJORS for wish in wishes if wish.contains(f"{major}.99")}
    return _Provider(str(case.built_cuda.major), majors.pop()) if len(majors) == 1 else None


def provider_cudnn_there(case: Case, _lines: Lines) -> str | None:
    """The cuDNN that is installed, if it has another major."""
    there, wanted = next(iter(cudnns(case)), None), provider_needs(case)
    return there if there is not None and wanted is not None and there.partition(".")[0] != wanted.cudnn else None


def provider_cudnn_for_12(case: Case, _lines: Lines) -> str | None:
    """The cuDNN of another build of the same ONNX Runtime, for CUDA 12, in Microsoft's own index."""
    version = (case.version_of("onnxruntime") or "").partition("+")[0].removesuffix(".0")
    says = any(it.get("cuda_major") and it.get("cudnn_major") for it in case.of("onnxruntime-provider-failed"))
    return None if says or provider_needs(case) is None else _FOR_CUDA_12.get(version)
