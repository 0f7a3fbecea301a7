"""Decisions of the rules on packages: who owns a symbol, what is compatible, which toolkit a build needs."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Given
from envsolve.diagnose.facts import CaseFacts
from envsolve.diagnose.facts.shared.gpu_packages import is_of_gpus, of_module, package_of
from envsolve.findings.catalogue import shipped
from envsolve.model.host import Platform
from tests.diagnose.facts.library_cases import case_of
from tests.diagnose.facts.package_cases import PYTORCH_2_4, causes_of, words_of

UNDEFINED = "ImportError: {}: undefined symbol: {}"
FLASH = "/home/u/env/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so"
TORCH = "/home/u/env/lib/python3.10/site-packages/torch/lib/libtorch_cuda.so"


@pytest.mark.parametrize(
    ("file", "package"),
    [
        (FLASH, "flash-attn"),
        ("/env/lib/python3.10/site-packages/torch_scatter/_version_cuda.so", "torch-scatter"),
        ("torch_scatter/_version_cuda.so", "torch-scatter"),
        ("/home/u/detectron2/detectron2/_C.cpython-38-x86_64-linux-gnu.so", "detectron2"),
        ("/x/dist-packages/detectron2-0.1.3-py3.6-linux-x86_64.egg/detectron2/_C.so", "detectron2"),
        (r"C:\env\Lib\site-packages\xformers\_C.pyd", "xformers"),
        ("amp_C.cpython-38-x86_64-linux-gnu.so", "apex"),
        ("/usr/lib/libcudart.so.12", None),
        ("/home/u/_C.so", None),
        (None, None),
    ],
)
def test_a_file_path_gives_its_package(file: str | None, package: str | None) -> None:
    assert package_of(file) == package


def test_names_of_packages_that_are_built_for_gpus() -> None:
    assert all(map(is_of_gpus, ["torch", "Flash_Attn", "nvidia-nccl-cu12", "cudf-cu12", "tensorflow-gpu", "mmcv-full"]))
    assert not any(map(is_of_gpus, ["numpy", "requests", "pycuda-helpers-of-mine", "tools", "scipy", "django"]))
    assert of_module("libtorch.so.1") is None


@pytest.mark.parametrize(
    ("library", "symbol", "causes"),
    [
        (FLASH, "_ZN3c104cuda9SetDeviceEi", ["extension-of-other-torch"]),
        (FLASH, "_ZNK3c105Error4whatEv", ["extension-of-other-torch"]),
        (TORCH, "_ZN3c104cuda9SetDeviceEi", ["torch-mixed"]),
        (TORCH, "ncclCommRegister", ["nccl-too-old"]),
        (TORCH, "cudaGetDriverEntryPointByVersion, version libcudart.so.12", ["library-mismatch"]),
        (TORCH, "cublasLtGetEnvironmentMode, version libcublasLt.so.12", ["library-mismatch"]),
        (TORCH, "cuModuleGetLoadingMode", ["driver-library-lacks-function"]),
        (TORCH, "cudnnGetErrorString_v9", ["cudnn-symbol-mismatch"]),
        ("/x/libcusparse.so.12", "__nvJitLinkAddData_12_1, version libnvJitLink.so.12", ["library-mismatch"]),
        ("/x/site-packages/tensorflow_text/_ops.so", "_ZN10tensorflow6StatusC1Ev", ["extension-of-other-tensorflow"]),
        ("/x/libtorch_cpu.so", "iJIT_NotifyEvent", ["mkl-too-new"]),
        ("/x/site-packages/torchvision/_C.so", "THPVariableClass", ["extension-before-torch"]),
        (FLASH, "_PyThreadState_UncheckedGet", ["extension-of-other-python"]),
        ("/usr/lib/libgtk-3.so.0", "g_module_check_init", []),
        ("/usr/bin/gimp", "_ZN4Gimp4initEv", []),
        ("/x/lxml/etree.so", "PyObject_X", []),
        ("/x/site-packages/bitsandbytes/libbitsandbytes_cpu.so", "cget_managed_ptr", ["bitsandbytes-without-cuda"]),
    ],
)
def test_a_symbol_shows_what_is_incompatible(library: str, symbol: str, causes: list[str]) -> None:
    assert causes_of(UNDEFINED.format(library, symbol)) == causes


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("symbol", "given", "expected", "unexpected"),
    [
        ("_ZN3c105ErrorC1ENS_14SourceLocationESs", None, "old C++ ABI", "cxx11abiTRUE"),
        ("_ZN5torch3jit17parseSchemaOrNameERKSsb", None, "old C++ ABI", "__cxx11"),
        ("_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcEE", None, "cxx11abiTRUE", "old C++ ABI"),
        (
            "_ZN3c105ErrorC1ENS_14SourceLocationESs",
            Given(packages={"torch": "2.7.0"}),
            "Python and cxx11abiTRUE",
            "Python and cxx11abiFALSE",
        ),
        (
            "_ZN3c106detail14torchCheckFailENSt7__cxx1112basic_stringIcEE",
            PYTORCH_2_4,
            "Python and cxx11abiFALSE",
            "Python and cxx11abiTRUE",
        ),
        ("_ZN2at4_ops5zeros4callEN3c108optionalINS2_10ScalarTypeEEE", None, "PyTorch 2.1 or older", "_GLIBCXX_USE"),
        ("_ZN5torch7LibraryC1ENS0_4KindESt8optionalIN3c1011DispatchKeyEE", None, "2.2 or newer", "_GLIBCXX_USE"),
        ("_ZN2at19UndefinedTensorImpl10_singletonE", None, "older one", "_GLIBCXX_USE"),
    ],
)
def test_a_mangled_name_shows_the_abi_and_the_generation(
    symbol: str, given: Given | None, expected: str, unexpected: str
) -> None:
    words = words_of(UNDEFINED.format(FLASH, symbol), given)
    assert expected in words
    assert unexpected not in words


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("torch", "abi"),
    [
        ("2.5.1", "cxx11abiFALSE"),
        ("2.6.0+cu124", "cxx11abiFALSE"),
        ("2.6.0+cu126", "cxx11abiTRUE"),
        ("2.6.0", "C++ ABI"),
        ("2.8.0", "cxx11abiTRUE"),
    ],
)
def test_the_abi_of_pytorch_is_that_of_its_release_and_in_2_6_of_its_build(torch: str, abi: str) -> None:
    line = UNDEFINED.format(FLASH, "_ZN3c106detail14torchCheckFailENSt7__cxx1112basic_stringIcEE")
    assert f"torch, CUDA, Python and {abi}." in words_of(line, Given(packages={"torch": torch}))


@pytest.mark.parametrize(
    ("text", "given", "whose"),
    [
        (
            "pytorch  2.4.0  cuda118_py312h3690e1b_301  conda-forge",
            None,
            "pip's PyTorch, and this one is from conda-forge",
        ),
        ("", Given(packages={"torch": "2.4.0a0+07cecf4168"}), "pip's PyTorch, and this is NVIDIA's own build"),
        ("", PYTORCH_2_4, "another PyTorch"),
    ],
)
def test_a_pytorch_that_is_not_pips_is_named(text: str, given: Given | None, whose: str) -> None:
    line = UNDEFINED.format("torch_scatter/_version_cuda.so", "_ZN5torch3jit17parseSchemaOrNameERKSs")
    assert words_of(f"{text}\n{line}", given).startswith(f"torch-scatter was built for {whose}\n")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("symbol", "nccl", "driver", "runtime"),
    [
        ("ncclCommRegister", "2.19.1", None, None),
        ("ncclCommSplit", "2.18.1", None, None),
        ("ncclAllReduce", None, None, None),
        ("cuModuleGetLoadingMode", None, "11.7", None),
        ("cuInit", None, None, None),
        ("__cudaPushCallConfiguration", None, None, "9.2"),
    ],
)
def test_a_function_dates_the_library_that_lacks_it(
    symbol: str, nccl: str | None, driver: str | None, runtime: str | None
) -> None:
    case = case_of(UNDEFINED.format(TORCH, symbol))
    facts = CaseFacts(case, case.sightings, shipped())
    assert [facts("nccl_since"), facts("driver_since"), facts("runtime_since")] == [nccl, driver, runtime]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12", "needs an nvJitLink of CUDA 12.4"),
        ("undefined symbol: cusparseSpSM_analysis, version libcusparse.so.11", "nvidia-cusparse-cu11"),
        ("undefined symbol: cublasLtX, version libcublasLt.so.13", "reinstall nvidia-cublas in"),
        ("undefined symbol: cudaLaunchKernelExC, version libcudart.so.11.0", "came with CUDA 11.8"),
    ],
)
def test_a_library_of_another_release_is_named_with_its_cuda(line: str, expected: str) -> None:
    assert expected in words_of(f"ImportError: {TORCH}: {line}")


@pytest.mark.parametrize(
    ("text", "given", "causes"),
    [
        ("RuntimeError: operator torchvision::nms does not exist", None, ["torch-companion-mismatch"]),
        (
            "NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.",
            None,
            ["torch-companion-for-cpu"],
        ),
        ("xFormers wasn't build with CUDA support", None, ["xformers-without-cuda"]),
        ("    device=cpu (supported: {'cuda'})", None, ["xformers-on-cpu"]),
        (
            "xFormers was built for:\nPyTorch 2.3.0+cu121 with CUDA 1201 (you have 2.1.0+cu121)",
            None,
            ["xformers-built-for-other-torch"],
        ),
        ("AttributeError: module 'torch' has no attribute 'compiler'", None, ["framework-too-old-for-package"]),
        ("ModuleNotFoundError: No module named 'torch._six'", None, ["framework-too-new-for-package"]),
        ("AttributeError: module 'torch' has no attribute 'my_function'", None, []),
        ("AttributeError: module 'tensorflow' has no attribute 'Session'", None, ["tensorflow-1-code"]),
        ("AttributeError: 'NoneType' object has no attribute 'origin'", None, []),
        ("AttributeError: 'NoneType' object has no attribute 'origin'", PYTORCH_2_4, ["pyg-without-cuda"]),
        ("ModuleNotFoundError: No module named 'mmcv._ext'", None, ["mmcv-without-operators"]),
        ("NameError: name '_C' is not defined", PYTORCH_2_4, ["extension-not-built"]),
        ("NameError: name '_C' is not defined", None, []),
        ("ModuleNotFoundError: No module named 'triton'", None, ["triton-missing"]),
        (
            "A matching Triton is not available\nModuleNotFoundError: No module named 'triton'",
            None,
            [],
        ),
    ],
)
def test_parts_that_do_not_belong_together(text: str, given: Given | None, causes: list[str]) -> None:
    assert causes_of(text, given) == causes


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        ({"torch": "2.4.1", "torchvision": "0.19.1"}, "torch 2.4.1 and torchvision 0.19.1 belong together"),
        ({"torch": "2.4.1", "torchvision": "0.15.2"}, "torchvision 0.15.2 belongs to torch 2.0.1"),
        ({"torch": "2.4.1", "torchvision": "0.15.2"}, "torchvision 0.15.2 is too old for torch 2.4.1"),
        ({"torch": "2.0.1", "torchvision": "0.19.1"}, "torch 2.0.1 is too old for torchvision 0.19.1"),
        ({"torch": "2.4.1", "torchvision": "0.15.2"}, "and torchvision 0.19.1 to torch 2.4.1"),
        ({"torch": "2.4.1+cu121"}, "torch==2.4.1 torchvision==0.19.1 torchaudio==2.4.1 --index-url"),
        ({"torch": "2.4.1+cu121"}, "whl/cu121"),
    ],
)
def test_a_companion_is_matched_to_its_torch_by_the_matrix(packages: dict[str, str], expected: str) -> None:
    assert expected in words_of("RuntimeError: operator torchvision::nms does not exist", Given(packages=packages))


@pytest.mark.parametrize(
    ("text", "given", "cause", "expected"),
    [
        (
            "FlashAttention is only supported on CUDA 11.7 and above.",
            Given(packages={"torch": "2.4.1+cu121"}),
            "nvcc-too-old-for-package",
            "/usr/local/cuda-12.1",
        ),
        (
            "FlashAttention is only supported on CUDA 12.0 and above.",
            Given(packages={"torch": "2.4.1+cu118"}),
            "nvcc-too-old-for-package",
            "CUDA 12.0 or newer",
        ),
        (
            "error: [Errno 2] No such file or directory: ':/usr/local/cuda/bin/nvcc'",
            None,
            "cuda-home-wrong",
            "export CUDA_HOME=/usr/local/cuda",
        ),
        ("OSError: CUDA_HOME environment variable is not set.", None, "cuda-compiler-missing", ""),
        (
            "#error -- unsupported GNU version! gcc versions later than 11",
            None,
            "gcc-too-new-for-cuda",
            "gcc 12 needs CUDA 12.0",
        ),
        ("CMake Error: No CUDA toolset found.", None, "cmake-without-cuda-toolset", ""),
        ("Failed to detect a default CUDA architecture.", None, "cmake-cannot-use-nvcc", ""),
        ("fatal error: THC/THC.h: No such file or directory", None, "extension-source-too-old", "THC/THC.h"),
        ("fatal error: cudnn.h: No such file or directory", None, "cudnn-header-missing", "cudnn.h"),
        ("fatal error: cusolverDn.h: No such file or directory", None, "cuda-header-missing", "cusolverDn.h"),
        (
            'cupy.cuda.compiler.CompileException: cannot open source file "vector_types.h"',
            None,
            "cupy-headers-missing",
            "",
        ),
    ],
)
def test_a_failed_build_names_its_requirement(text: str, given: Given | None, cause: str, expected: str) -> None:
    assert causes_of(text, given) == [cause]
    assert expected in words_of(text, given)


def test_a_toolkit_that_is_older_than_what_the_package_wants_is_not_recommended() -> None:
    given = Given(packages={"torch": "2.4.1+cu118"})
    assert "cuda-11.8" not in words_of("FlashAttention is only supported on CUDA 12.0 and above.", given)


@pytest.mark.parametrize(
    "text",
    [
        "fatal error: Python.h: No such file or directory",
        "ninja: command not found",
        "/bin/sh: gcc: command not found",
        "error: command 'cl.exe' failed: No such file or directory",
    ],
)
def test_compilers_of_other_programs_are_not_mentioned(text: str) -> None:
    assert causes_of(text) == []


LIST = "nvidia-cudnn-cu12 9.1.0.70\nnvidia-cublas-cu12 12.4.5.8"


@pytest.mark.parametrize(
    ("text", "causes"),
    [
        (LIST.replace(" ", "    "), []),
        ((LIST + "\nnvidia-nccl-cu11 2.14.3").replace(" ", "    "), ["cuda-majors-mixed"]),
    ],
)
def test_cuda_majors_are_mixed_where_there_are_two(text: str, causes: list[str]) -> None:
    assert causes_of(text) == causes


def test_a_driver_function_names_the_driver_that_has_it() -> None:
    text = UNDEFINED.format(TORCH, "cuModuleGetLoadingMode")
    assert "driver to 515" in words_of(text)
    assert "CUDA 11.7" in words_of(text, Given(platform=Platform.WIN_64))


NCCL = UNDEFINED.format(TORCH, "ncclCommWindowRegister")


@pytest.mark.parametrize(
    ("around", "package"),
    [
        ("nvidia-nccl-cu13==2.26.2\nnvidia-cudnn-cu13==9.13.0", "nvidia-nccl-cu13"),
        ("torch 2.10.0+cu130", "nvidia-nccl-cu13"),
        ("torch 2.6.0+cu124", "nvidia-nccl-cu12"),
        ("nvidia-cudnn-cu12==9.1.0", "nvidia-nccl-cu12"),
        ("nvidia-nccl-cu12==2.29.3\nnvidia-nccl-cu13==2.29.7", None),
        ("", None),
    ],
)
def test_nccl_is_of_the_cuda_major_that_the_text_shows(around: str, package: str | None) -> None:
    words = words_of(f"{NCCL}\n{around}")
    assert (f"--no-deps {package}" in words) if package else ("--no-deps" not in words)


PLUGIN_FAILED = "Jax plugin configuration error: Exception when calling jax_plugins.xla_cuda13.initialize()"


def test_a_failing_plugin_of_jax_does_not_prove_another_version() -> None:
    assert causes_of(PLUGIN_FAILED) == []
    called = "TypeError: register_custom_call_target(): incompatible function arguments."
    text = f"{PLUGIN_FAILED}\n{called}\njax 0.7.2"
    assert causes_of(text) == ["jax-versions-differ"]
    assert "pip install -U 'jax[cuda13]==0.7.2'" in words_of(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RuntimeError: Not compiled with GPU support (ROIAlign_forward at ROIAlign.h:73)", ["extension-not-built"]),
        ("RuntimeError: nms is not compiled with GPU support", ["extension-not-built"]),
        ("context.cc:203: XGBoost is not compiled with CUDA support.", []),
        ("ValueError: This CTranslate2 package was not compiled with CUDA support", []),
    ],
)
def test_a_program_that_names_itself_is_no_extension_of_pytorch(text: str, expected: list[str]) -> None:
    assert causes_of(text) == expected


NO_CUDART = "CUDA_SETUP: WARNING! libcudart.so not found in any environmental path. Searching in backup paths..."
SETUP_FAILED = "CUDA Setup failed despite GPU being available. Please run: python -m bitsandbytes"


def test_bitsandbytes_is_reported_once() -> None:
    assert causes_of(f"{NO_CUDART}\n{SETUP_FAILED}") == ["bitsandbytes-without-cuda"]
    assert "did not find libcudart" in words_of(f"{NO_CUDART}\n{SETUP_FAILED}")
    assert causes_of(f"OSError: libcusparse.so.11: cannot open shared object file\n{SETUP_FAILED}") == []
    named = "Required library version not found: libbitsandbytes_cuda118.so"
    assert causes_of(f"{NO_CUDART}\nCUDA SETUP: {named}") == ["bitsandbytes-without-cuda"]
    assert "did not find libcudart" not in words_of(f"{NO_CUDART}\nCUDA SETUP: {named}")


NO_RUNTIME = r"No CUDA runtime is found, using CUDA_HOME='C:\CUDA\v11.8'"
WINDOWS = Given(platform=Platform.WIN_64)


@pytest.mark.parametrize(
    ("text", "given", "causes"),
    [
        (f"pip install vllm\n{NO_RUNTIME}", WINDOWS, ["vllm-on-linux-only"]),
        (f"pip install vllm\n{NO_RUNTIME}", Given(platform=Platform.LINUX_64), ["no-gpu-while-building"]),
        (f"pip install flash-attn\n{NO_RUNTIME}", WINDOWS, ["no-gpu-while-building"]),
        ("vllm serve\nModuleNotFoundError: No module named 'resource'", WINDOWS, ["vllm-on-linux-only"]),
        ("train.py\nModuleNotFoundError: No module named 'resource'", WINDOWS, []),
        ("ModuleNotFoundError: No module named 'vllm._C'", WINDOWS, ["vllm-on-linux-only"]),
        ("AssertionError: vLLM only supports Linux platform (including WSL).", None, ["vllm-on-linux-only"]),
    ],
)
def test_vllm_is_for_linux(text: str, given: Given | None, causes: list[str]) -> None:
    assert causes_of(text, given) == causes


@pytest.mark.parametrize(
    ("beside", "causes"),
    [
        ("/usr/lib/wsl/lib", ["libcuda-without-number", "wsl-driver-not-reached", "driver-library-missing"]),
        ("NVIDIA-SMI 515.48.07", ["libcuda-without-number", "driver-hidden-from-process", "container-without-gpu"]),
        (
            "",
            ["driver-library-not-found", "driver-library-missing", "container-without-gpu", "libcuda-without-number"],
        ),
    ],
)
def test_the_drivers_library_by_its_name_without_a_number(beside: str, causes: list[str]) -> None:
    assert causes_of(f"{beside}\nRuntimeError: Failed to dlopen libcuda.so") == causes


def test_a_bitsandbytes_for_linux_on_windows() -> None:
    loading = r"CUDA SETUP: Loading binary {}bitsandbytes{}libbitsandbytes_cpu.so..."
    assert causes_of(loading.format("D:\\venv\\lib\\site-packages\\", "\\")) == ["bitsandbytes-of-linux"]
    assert "bitsandbytes-of-linux" not in causes_of(loading.format("/venv/lib/site-packages/", "/"))


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("dlopen(/x/libbitsandbytes_cpu.so, 0x0006): tried: '/x/libbitsandbytes_cpu.so' (not a mach-o file)", None),
        ("/x/libbitsandbytes_cpu.so: unknown file type, first eight bytes: 0x7F 0x45 0x4C 0x46 0x02", None),
        (SETUP_FAILED, Given(platform=Platform.OSX_ARM64)),
    ],
)
def test_a_bitsandbytes_on_a_mac(text: str, given: Given | None) -> None:
    assert causes_of(text, given) == ["bitsandbytes-on-mac"]
