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
"""Lines that have findings of their own: ZLUDA is for AMD, whatever is missing; 1455 is a matter of memory."""
_EXTENSION = re.compile(r"(_C|_ext|C|_cpu|_cuda|\w+_(cuda|ext|cpp|C|ops)|_fused|_qattn\w*)\Z")
"""Extension modules that are built against PyTorch."""
_OTHERS = re.compile(
    r"(win32\w*|_win32\w*|pywintypes|Qt\w+|_sqlite3|_ssl|_hashlib|_ctypes|_bz2|_lzma|_tkinter|cv2|_?scipy\w*|_ufuncs|"
    r"_multiarray_umath|_distributor_init|_arpack|_fblas|_flapack|lib|etree|_imaging\w*|_psycopg|rtree|_gdal|ogr|osr|"
    r"_path|ft2font|_igraph|h5\w*|_errors|defs|pyexpat|unicodedata|_rust|_yaml|rdBase|fitz|_extra|_mysql\w*|pyodbc|"
    r"_base|_geos|_snowboydetect|_portaudio\w*|_zmq|libzmq|_soundfile\w*|kiwisolver|_cext|win32api|_libsumo|tbb\w*)\Z",
    re.IGNORECASE,
)
"""Extension modules that have nothing to do with CUDA."""
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
    return next((code for code, words in _BY_WORDS if words.search(first.line)), _NOT_FOUND)


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
    if lines[0].symptom == "module-not-loaded":
        known = {"tensorflow": "tensorflow", "onnxruntime": "onnxruntime", "torch": "torch"}
        kind = module_kind(case, lines)
        own = importer_of(case, lines) or _built_for_torch(case) or of_module(_module(lines))
        return known.get(kind or "") or (own if kind == "extension" else importer_of(case, lines))
    line = lines[0].line
    within = package_of(line) if re.search(r"(?:site|dist)-packages[\\/]", line, re.IGNORECASE) else None
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
    if _OTHERS.match(module):
        return "other"
    if _TENSORFLOW.search(module) or (not module and case.framework == "tensorflow"):
        return "tensorflow"
    if module == "onnxruntime_pybind11_state":
        return "onnxruntime"
    if module == "_C" and importer_of(case, lines) == "torch":
        return "torch"
    return "extension" if _EXTENSION.match(module) else None


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
