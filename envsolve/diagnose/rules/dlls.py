"""Rules on DLLs that Windows does not load: its error number and the DLL's name decide, its words are translated.

126: the DLL, or one that it needs, is not found. 127: found, and of another version. 1114: it refuses to start.
193: it is not of this architecture, or damaged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from packaging.version import Version

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.facts.library_names import Owner, owner_of, span_of
from envsolve.diagnose.facts.programs import importer_of
from envsolve.diagnose.facts.seen_libraries import cudnns, library, told_with_libdevice
from envsolve.diagnose.rules import cudnn
from envsolve.diagnose.rules.library_context import common_fields
from envsolve.diagnose.rules.named import package_of
from envsolve.model.versions import parsed_version

_NOT_FOUND, _OTHER_VERSION, _DOES_NOT_START, _NO_APPLICATION = "126", "127", "1114", "193"
_WORDS = {
    _DOES_NOT_START: (
        "initialization routine failed|初始化例程失败|初始化例行程序失敗|初期化ルーチン|초기화 루틴|"
        "Initialisierungsroutine|routine d.initialisation|rutina de inicializaci|routine di inizializzazione|"
        "rotina de inicializa|программе инициализации|процедуре инициализации|inicjowania"
    ),
    _OTHER_VERSION: (
        "procedure could not be found|找不到指定的程序|プロシージャが見つかりません|프로시저를 찾을 수|"
        "angegebene Prozedur|procédure spécifiée|proceso especificado|procedimiento especificado|"
        "procedura specificata|procedimento especificado|указанная процедура|określonej procedury|Belirtilen yordam"
    ),
    _NO_APPLICATION: (
        "valid Win32|有效的 ?Win32|有効な ?Win32|올바른 ?Win32|Win32-Anwendung|application Win32|aplicación Win32|"
        "applicazione (di )?Win32|aplicativo Win32|приложением Win32|aplikacją( systemu)? Win32"
    ),
}
_BY_WORDS = tuple((code, re.compile(words, re.IGNORECASE)) for code, words in _WORDS.items())
_TENSORFLOW = re.compile(r"_?pywrap_(tensorflow|tfe)|_pywrap|native TensorFlow runtime", re.IGNORECASE)
_ELSEWHERE = re.compile(r"zluda|WinError 1455", re.IGNORECASE)
"""Lines that are told otherwise: ZLUDA is for AMD, whatever is missing; 1455 is a matter of memory."""
_EXTENSION = re.compile(r"(_C|_ext|C|_cpu|_cuda|\w+_(cuda|ext|cpp|C|ops))\Z")
"""Extension modules that are built against PyTorch."""
_OTHERS = re.compile(
    r"(win32\w*|_win32\w*|pywintypes|Qt\w+|_sqlite3|_ssl|_hashlib|_ctypes|_bz2|_lzma|_tkinter|cv2|_?scipy\w*|_ufuncs|"
    r"_multiarray_umath|_distributor_init|_arpack|_fblas|_flapack|lib|etree|_imaging\w*|_psycopg|rtree|_gdal|ogr|osr|"
    r"_path|ft2font|_igraph|h5\w*|_errors|defs|pyexpat|unicodedata|_rust|_yaml|rdBase|fitz|_extra|_mysql\w*|pyodbc|"
    r"_base|_geos|_snowboydetect|_portaudio\w*|_zmq|libzmq|_soundfile\w*|kiwisolver|_cext|win32api|_libsumo|tbb\w*)\Z",
    re.IGNORECASE,
)
"""Extension modules that plainly have nothing to do with CUDA."""
_CUDNN_MAJORS = range(5, 13)
_OPENS_CUDA_LATER = Version("2.1")
"""From this TensorFlow on importing it asks for no DLL of CUDA; they are opened when a GPU is looked for."""


def not_loaded(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """DLLs that an error names, each once."""
    told = {library(it) for it in case.of("library-missing")}
    for it in {(code_of(it), library(it).lower()): it for it in reversed(sightings)}.values():
        if _ELSEWHERE.search(it.line) or library(it) in told or told_with_libdevice(case, library(it)):
            continue
        causes = _causes(case, it, code_of(it))
        if causes:
            yield Diagnosis(causes, (it,))


def module_not_loaded(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Extension modules of Python that fail to load, where Python names the module or nothing, and not the DLL."""
    first = next((it for it in sightings if it.get("module")), sightings[0])
    module = first.get("module") or ""
    code = code_of(first)
    fields = {"module": module, "subject": module, "code": code, **common_fields(case, sightings, None)}
    if _OTHERS.match(module):
        yield Diagnosis((Cause("system-module-not-loaded", fields),), sightings)
    elif _TENSORFLOW.search(module) or (not module and case.framework == "tensorflow"):
        about = {**fields, **case.fields_of("tensorflow"), **_other_version_of("tensorflow", code)}
        yield Diagnosis(_of_tensorflow(case, about, code, named=bool(module)), sightings)
    elif module == "onnxruntime_pybind11_state":
        about = {**fields, **case.fields_of("onnxruntime"), **_other_version_of("onnxruntime", code)}
        yield Diagnosis(_of_onnxruntime(about, code), sightings)
    elif code == _NO_APPLICATION:
        yield Diagnosis((Cause("dll-of-other-architecture", fields),), sightings)
    elif module == "_C" and importer_of(case, sightings) == "torch":
        about = {**fields, **case.fields_of("pytorch"), **_other_version_of("torch", code)}
        first_cause = "dll-other-build" if code == _OTHER_VERSION else "visual-cpp-missing"
        yield Diagnosis((Cause(first_cause, about), Cause("pytorch-installation-damaged", about)), sightings)
    elif _EXTENSION.match(module):
        extension = importer_of(case, sightings) or module
        own = {**fields, **_other_version_of(extension, code), "extension": extension}
        other = Cause("extension-dll-of-other-torch", own)
        second = "dll-other-build" if code == _OTHER_VERSION else "cuda-dll-not-on-path"
        yield Diagnosis((other, Cause(second, own)), sightings)
    elif code == _DOES_NOT_START:
        yield Diagnosis((_outdated(fields, case.framework), Cause("dll-other-build", fields)), sightings)
    elif code == _OTHER_VERSION:
        own = {**fields, **_other_version_of(importer_of(case, sightings), code)}
        yield Diagnosis((Cause("dll-other-build", own),), sightings)
    else:
        if case.framework == "pytorch":
            fields["torch_first"] = "Where it is an extension of PyTorch"
        yield Diagnosis((Cause("cuda-dll-not-on-path", fields), Cause("visual-cpp-missing", fields)), sightings)


def onnxruntime_without_cuda(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """ONNX Runtime's last word on its CUDA provider, where nothing before it tells what is missing."""
    if case.saw("onnxruntime-provider-failed"):
        return
    fields = {**common_fields(case, sightings, None), **_wants(case)}
    code = next((it.get("code") for it in sightings if it.get("code")), None)
    if code is not None:
        fields["code"] = code
    yield Diagnosis((Cause("onnxruntime-cuda-dependency", fields),), sightings)


def code_of(sighting: Sighting) -> str:
    """Windows' number of the error: as it stands there, or by its words; not found where neither tells."""
    number = sighting.get("code")
    if number is not None:
        return _NOT_FOUND if number.lower() in ("0x8007007e", "0x7e") else number
    return next((code for code, words in _BY_WORDS if words.search(sighting.line)), _NOT_FOUND)


def _causes(case: Case, sighting: Sighting, code: str) -> tuple[Cause, ...]:
    name = library(sighting)
    owner = owner_of(name)
    fields = {"library": name, "subject": name, "code": code, **_fields(case, sighting)}
    if owner in (Owner.DRIVER, Owner.RELEASE_FAULT, Owner.SYSTEM, Owner.GPU_PROGRAM):
        return _of_unknown(owner, fields, code)
    if code == _NO_APPLICATION:
        return (Cause("dll-of-other-architecture", fields),)
    if owner is Owner.CUDNN:
        return cudnn.of_dll(case, sighting, code)
    if owner is Owner.TENSORRT:
        return (Cause("tensorrt-not-found", fields),)
    if code == _OTHER_VERSION:
        package = package_of(sighting.line) if _IN_SITE.search(sighting.line) else None
        return (Cause("dll-other-build", {**fields, **_other_version_of(package or _PACKAGES.get(owner), code)}),)
    return _BY_OWNER[owner](fields, code)


_IN_SITE = re.compile(r"(?:site|dist)-packages[\\/]", re.IGNORECASE)
_PACKAGES = {Owner.PYTORCH: "torch", Owner.TENSORFLOW: "tensorflow", Owner.ONNXRUNTIME: "onnxruntime"}
"""The package that brings an owner's DLLs."""


def _other_version_of(package: str | None, code: str) -> dict[str, str]:
    """Fields on error 127 in a DLL of ``package``: whose DLL asks, and how two versions of its DLLs meet."""
    if code != _OTHER_VERSION:
        return {"how_failed": "Windows does not find one of them (error 126)"} if code == _NOT_FOUND else {}
    found = {"how_failed": "Windows finds one of another version, in which a function is missing (error 127)"}
    if package is None:
        return found
    found |= {"package": package, "of_package": f", a DLL of {package},"}
    if package == "torch":
        found["leftovers"] = (
            "import torch loads every DLL in torch\\lib: one that an older release left there is loaded too, and asks "
            "the newer ones for functions that they no longer have."
        )
        found["clean"] = (
            "Uninstall torch, delete what is left of site-packages\\torch, and install it anew: pip does not remove "
            "files that it does not know of."
        )
    return found


def _of_unknown(owner: Owner, fields: Mapping[str, str], code: str) -> tuple[Cause, ...]:
    """DLLs that are other rules' business, or of nobody that is known here."""
    if owner is not Owner.SYSTEM:
        return ()
    if code == _NO_APPLICATION:
        return (Cause("dll-of-other-architecture", fields),)
    return (Cause("system-library-missing", fields),)


def _outdated(fields: Mapping[str, str], program: str | None = None) -> Cause:
    """A runtime that is older than what ``program`` was built with, which importing it alone tells."""
    return Cause("visual-cpp-outdated", {**fields, **_ON_RUNTIMES.get(program or "", {})})


_ON_RUNTIMES: Mapping[str, Mapping[str, str]] = {
    "pytorch": {
        "imported": "torch",
        "runtime_since": "PyTorch 2.9 (c10.dll) made this visible.",
        "runtime_before": "Or take the release before: PyTorch 2.8.",
    },
    "onnxruntime": {
        "imported": "onnxruntime",
        "runtime_since": "ONNX Runtime 1.21 and newer made this visible.",
        "runtime_before": "Or take the release before: ONNX Runtime 1.20.1.",
    },
    "tensorflow": {
        "imported": "tensorflow",
        "runtime_since": "TensorFlow's makers name it first of what makes this import fail.",
    },
}
"""What is known of the Visual C++ runtime that frameworks need."""


def _of_pytorch(fields: Mapping[str, str], code: str) -> tuple[Cause, ...]:
    if code == _DOES_NOT_START:
        return _outdated(fields, "pytorch"), Cause("pytorch-installation-damaged", fields)
    damaged, runtime = Cause("pytorch-installation-damaged", fields), Cause("visual-cpp-missing", fields)
    name = fields["library"].lower()
    if name == "shm.dll" and fields["torch_version"] in ("", "2.3.0"):
        return Cause("pytorch-mkl-not-found", fields), damaged, runtime
    if re.search(r"cuda|gpu|nvrtc", name):
        return Cause("pytorch-cuda-dll-missing", fields), damaged, runtime
    return runtime, damaged


def _of_cuda(fields: Mapping[str, str], code: str) -> tuple[Cause, ...]:
    if code == _DOES_NOT_START:
        return Cause("dll-does-not-start", fields), Cause("dll-other-build", fields)
    if fields.get("in_pytorch"):
        return Cause("pytorch-installation-damaged", fields), Cause("dll-other-build", fields)
    return Cause("cuda-library-missing", fields), Cause("cuda-dll-not-on-path", fields)


def _of_onnxruntime_dll(fields: Mapping[str, str], code: str) -> tuple[Cause, ...]:
    if "providers_cuda" in fields["library"].lower():
        if code == _DOES_NOT_START:
            return _outdated(fields, "onnxruntime"), Cause("dll-other-build", fields)
        return (Cause("onnxruntime-cuda-dependency", fields),)
    return _of_onnxruntime(fields, code)


def _of_onnxruntime(fields: Mapping[str, str], code: str) -> tuple[Cause, ...]:
    if code == _NO_APPLICATION:
        return (Cause("dll-of-other-architecture", fields),)
    if code == _OTHER_VERSION:
        return Cause("onnxruntime-other-copy", fields), Cause("dll-other-build", fields)
    if code == _DOES_NOT_START:
        return _outdated(fields, "onnxruntime"), Cause("onnxruntime-other-copy", fields)
    return Cause("visual-cpp-missing", fields), Cause("onnxruntime-other-copy", fields)


def _of_tensorflow(case: Case, fields: Mapping[str, str], code: str, *, named: bool) -> tuple[Cause, ...]:
    """TensorFlow's own module: its runtime, the CPU, or with an old one the CUDA that it was linked with."""
    version = parsed_version(case.version_of("tensorflow"))
    old = version < _OPENS_CUDA_LATER if version is not None else not named
    if code == _NO_APPLICATION:
        return (Cause("dll-of-other-architecture", fields),)
    if code == _DOES_NOT_START:
        return _outdated(fields, "tensorflow"), Cause("cpu-without-avx", fields)
    if code == _OTHER_VERSION:
        return (Cause("dll-other-build", fields),)
    if old:
        return Cause("tensorflow-cuda-dll-missing", fields), Cause("visual-cpp-missing", fields)
    return Cause("visual-cpp-missing", fields), Cause("cpu-without-avx", fields)


def _of_other(fields: Mapping[str, str], code: str) -> tuple[Cause, ...]:
    if code == _DOES_NOT_START:
        return (_outdated(fields),)
    return Cause("cuda-dll-not-on-path", fields), Cause("visual-cpp-missing", fields)


def _of_tensorflow_binding(fields: Mapping[str, str], code: str) -> tuple[Cause, ...]:
    """TensorFlow's C library, and what loads it into Node."""
    if fields["library"].endswith(".node") and code == _NOT_FOUND:
        return Cause("node-binding-not-loaded", fields), Cause("visual-cpp-missing", fields)
    return _of_other(fields, code)


_BY_OWNER: Mapping[Owner, Callable[[Mapping[str, str], str], tuple[Cause, ...]]] = {
    Owner.PYTORCH: _of_pytorch,
    Owner.CUDA: _of_cuda,
    Owner.ONNXRUNTIME: _of_onnxruntime_dll,
    Owner.TENSORFLOW: _of_tensorflow_binding,
    Owner.LLAMA: _of_other,
    Owner.BITSANDBYTES: _of_other,
    Owner.VISUAL_CPP: lambda fields, _: (Cause("visual-cpp-missing", fields),),
    Owner.ZLIB: lambda fields, _: (Cause("zlib-missing", fields),),
}


def _fields(case: Case, sighting: Sighting) -> dict[str, str]:
    found = common_fields(case, (sighting,), span_of(case.knowledge, library(sighting)))
    if owner_of(library(sighting)) is Owner.ONNXRUNTIME:
        found |= _wants(case)
    found["torch_version"] = (case.version_of("pytorch") or "").partition("+")[0]
    if re.search(r"[\\/]torch[\\/]lib[\\/]", sighting.line, re.IGNORECASE):
        found["in_pytorch"] = "PyTorch"
    return found


def _wants(case: Case) -> dict[str, str]:
    """The CUDA and the cuDNN that this ONNX Runtime is for: as it says, or as its wheel was built."""
    for it in case.of("onnxruntime-provider-failed"):
        cuda, cudnn_wanted = it.get("cuda_major"), it.get("cudnn_major")
        if cuda is not None and cudnn_wanted is not None:
            return {"ort_cuda": cuda, "ort_cudnn": cudnn_wanted}
    if case.framework != "onnxruntime" or case.built_cuda is None:
        return {}
    wishes = [it.cudnn_requires for it in case.releases() if it.cudnn_requires is not None]
    majors = {str(major) for major in _CUDNN_MAJORS for wish in wishes if wish.contains(f"{major}.99")}
    if len(majors) != 1:
        return {}
    found = {"ort_cuda": str(case.built_cuda.major), "ort_cudnn": majors.pop()}
    told = next(iter(cudnns(case)), None)
    if told is not None and told.partition(".")[0] != found["ort_cudnn"]:
        found["other_cudnn"] = told
    other = _FOR_CUDA_12.get((case.version_of("onnxruntime") or "").partition("+")[0].removesuffix(".0"))
    if other is not None:
        found["other_build"] = (
            f"Microsoft's own index has this release for CUDA 12 as well: that build wants cuDNN {other}."
        )
    return found


_FOR_CUDA_12 = {"1.17": "8", "1.17.1": "8", "1.18": "8", "1.18.1": "9"}
"""The cuDNN of builds for CUDA 12 beside those for CUDA 11 on PyPI (onnxruntime.ai, CUDA execution provider)."""


RULES: Mapping[str, Rule] = {
    "dll-not-loaded": not_loaded,
    "module-not-loaded": module_not_loaded,
    "onnxruntime-without-cuda": onnxruntime_without_cuda,
}
