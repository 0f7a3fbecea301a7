"""DLLs that Windows does not load: its error number and the name of the DLL or module decide."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from envsolve.diagnose.case import Given
from envsolve.diagnose.facts.dlls import dll_error
from envsolve.model.host import Platform
from tests.diagnose.facts.library_cases import case_of, causes_of, words_of

DLL = r"OSError: [WinError {}] {}. Error loading \"C:\env\lib\site-packages\torch\lib\{}\" or one of its dependencies."


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "name", "first"),
    [
        ("126", "c10.dll", "visual-cpp-missing"),
        ("126", "torch_cuda.dll", "pytorch-cuda-dll-missing"),
        ("126", "caffe2_nvrtc.dll", "pytorch-cuda-dll-missing"),
        ("126", "cublas64_11.dll", "pytorch-installation-damaged"),
        ("126", "shm.dll", "pytorch-mkl-not-found"),
        ("126", "fbgemm.dll", None),
        ("127", "cublas64_11.dll", "dll-other-build"),
        ("127", "cudnn_cnn64_9.dll", "cudnn-mixed"),
        ("127", "torch_python.dll", "dll-other-build"),
        ("1114", "c10.dll", "visual-cpp-outdated"),
        ("1114", "cublas64_11.dll", "dll-does-not-start"),
        ("193", "c10.dll", "dll-of-other-architecture"),
    ],
)
@pytest.mark.parametrize(
    "words", ["The specified module could not be found", "找不到指定的模块", "Le module spécifié est introuvable"]
)
def test_the_error_number_of_windows_and_the_name_decide_in_every_language(
    code: str, name: str, first: str | None, words: str
) -> None:
    causes = causes_of(DLL.format(code, words, name).replace('\\"', '"'))
    assert (causes[0] if causes else None) == first


def test_a_known_version_excludes_the_fault_of_another_release() -> None:
    text = DLL.format("126", "", "shm.dll").replace('\\"', '"')
    assert causes_of(text, Given(packages={"torch": "2.6.0"}))[0] == "visual-cpp-missing"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("The specified module could not be found.", "126"),
        ("找不到指定的模块。", "126"),
        ("Das angegebene Modul wurde nicht gefunden.", "126"),
        ("The specified procedure could not be found.", "127"),
        ("指定されたプロシージャが見つかりません。", "127"),
        ("Impossibile trovare la procedura specificata.", "127"),
        ("动态链接库(DLL)初始化例程失败。", "1114"),
        ("Error en una rutina de inicialización de biblioteca de vínculos dinámicos (DLL).", "1114"),
        ("%1 n'est pas une application Win32 valide.", "193"),
    ],
)
def test_words_are_used_without_a_number(words: str, code: str) -> None:
    case = case_of(f"ImportError: DLL load failed while importing _C: {words}")
    assert dll_error(case, case.of("module-not-loaded")) == code


@pytest.mark.parametrize(
    ("module", "packages", "first"),
    [
        ("_pywrap_tensorflow_internal", {}, "visual-cpp-missing"),
        ("_pywrap_tensorflow_internal", {"tensorflow": "1.13.1"}, "tensorflow-cuda-dll-missing"),
        ("onnxruntime_pybind11_state", {}, "visual-cpp-missing"),
        ("_ext", {}, "extension-dll-of-other-torch"),
        ("flash_attn_2_cuda", {}, "extension-dll-of-other-torch"),
        ("dlib", {}, "cuda-dll-not-on-path"),
        ("win32api", {}, "system-module-not-loaded"),
    ],
)
def test_the_module_decides_which_dlls_may_be_missing(module: str, packages: Mapping[str, str], first: str) -> None:
    text = f"ImportError: DLL load failed while importing {module}: The specified module could not be found."
    assert causes_of(text, Given(packages=packages))[0] == first


def test_zluda_is_not_reported_as_cuda() -> None:
    text = r'OSError: [WinError 126] Error loading "D:\FramePack-ZLUDA\venv\lib\site-packages\torch\lib\cudnn64_9.dll"'
    assert causes_of(text) == []


PROVIDER = r'LoadLibrary failed with error 126 "" when trying to load "C:\capi\onnxruntime_providers_cuda.dll"'


@pytest.mark.parametrize(
    ("text", "given", "needs"),
    [
        (PROVIDER, Given(), None),
        (PROVIDER, Given(packages={"onnxruntime-gpu": "1.17.1"}, platform=Platform.WIN_64), "CUDA 11 and cuDNN 8"),
        (
            f"{PROVIDER}\nFailed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*, and the latest MSVC",
            Given(),
            "CUDA 12 and cuDNN 9",
        ),
    ],
)
def test_onnxruntime_says_what_its_provider_needs(text: str, given: Given, needs: str | None) -> None:
    assert f"It needs {needs}:" in words_of(text, given) or needs is None
    assert ("It needs " in words_of(text, given)) == (needs is not None)


@pytest.mark.parametrize(
    ("version", "cudnn", "is_other", "for_cuda_12"),
    [
        ("1.17.1", "9.0.0", True, "needs cuDNN 8."),
        ("1.18.1", "8.9.7", False, "needs cuDNN 9."),
        ("1.20.0", "8.9.7", True, None),
        ("1.16.3", "8.9.7", False, None),
    ],
)
def test_onnxruntime_needs_one_major_of_cudnn(
    version: str, cudnn: str, is_other: bool, for_cuda_12: str | None
) -> None:
    given = Given(packages={"onnxruntime-gpu": version}, platform=Platform.WIN_64)
    answer = words_of(f"cuDNN: {cudnn}\n{PROVIDER.replace(chr(34), '')}", given)
    assert (f"Installed is cuDNN {cudnn}, another major version." in answer) == is_other
    assert ("Microsoft's own index" in answer) == (for_cuda_12 is not None)
    assert (for_cuda_12 or "") in answer


def test_the_last_message_of_onnxruntime_counts_without_another_rule() -> None:
    text = "EP Error onnxruntime::CreateExecutionProviderInstance CUDA_PATH is set but CUDA wasn't able to be loaded."
    assert causes_of(text) == ["onnxruntime-cuda-dependency"]
    assert causes_of(f"{text}\nFalling back to ['CPUExecutionProvider'] and retrying.") == []


PROCEDURE = "The specified procedure could not be found."


@pytest.mark.parametrize(
    ("text", "first", "package"),
    [
        (
            rf'[WinError 127] {PROCEDURE} Error loading "C:\env\Lib\site-packages\torch\lib\c10.dll"',
            "dll-other-build",
            "torch",
        ),
        (rf'[WinError 127] {PROCEDURE} Error loading "C:\app\torch_cpu.dll"', "dll-other-build", "torch"),
        (rf'[WinError 127] {PROCEDURE} Error loading "C:\cuda\cublas64_12.dll"', "dll-other-build", None),
        (f"DLL load failed while importing _pywrap_tensorflow_internal: {PROCEDURE}", "dll-other-build", "tensorflow"),
        (
            f"DLL load failed while importing onnxruntime_pybind11_state: {PROCEDURE}",
            "onnxruntime-other-copy",
            "onnxruntime",
        ),
        (
            f"DLL load failed while importing _ext: {PROCEDURE}",
            "extension-dll-of-other-torch",
            "The extension was built for another PyTorch",
        ),
    ],
)
def test_error_127_names_the_package_and_is_no_missing_file(text: str, first: str, package: str | None) -> None:
    assert causes_of(text)[0] == first
    assert (package or "A DLL") in words_of(text).splitlines()[0]
    assert "visual-cpp-missing" not in causes_of(text)


@pytest.mark.parametrize(
    ("module", "imported", "causes"),
    [
        ("_pywrap_tensorflow_internal", "tensorflow", ["visual-cpp-outdated", "cpu-without-avx"]),
        ("onnxruntime_pybind11_state", "onnxruntime", ["visual-cpp-outdated", "onnxruntime-other-copy"]),
    ],
)
def test_error_1114_belongs_to_the_import_of_its_framework(module: str, imported: str, causes: list[str]) -> None:
    text = f"DLL load failed while importing {module}: A dynamic link library (DLL) initialization routine failed."
    assert causes_of(text) == causes
    assert f"Import {imported} before other packages" in words_of(text)
