"""Who owns a missing function, by the namespace in its name, and what the text states about the two builds."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Given
from tests.diagnose.facts.package_cases import causes_of, words_of

SITE = "/env/lib/python3.10/site-packages"
SET_DEVICE = "_ZN3c104cuda9SetDeviceEi"


def undefined(library: str, symbol: str) -> str:
    return f"ImportError: {library}: undefined symbol: {symbol}"


@pytest.mark.parametrize(
    ("library", "symbol", "causes"),
    [
        ("/src/vllm/vllm/_C.abi3.so", "_Z20cutlass_moe_mm_sm100RN2at6TensorERKS0_", ["extension-without-own-kernel"]),
        (f"{SITE}/flash_attn_2_cuda.so", "_ZN5flash11mha_fwd_kvERN2at6TensorE", ["extension-half-built"]),
        (f"{SITE}/vllm/_C.abi3.so", "_ZN4vllm11launch_norm7forwardEv", ["extension-half-built"]),
        (f"{SITE}/vllm/_C.abi3.so", "_ZNK2at6Tensor4sizeEl", ["extension-of-other-torch"]),
        (f"{SITE}/vllm/_C.abi3.so", "_ZTIN3c1010TensorImplE", ["extension-of-other-torch"]),
        (f"{SITE}/x.so", "_Z16THPVariable_WrapN2at6TensorE", ["extension-of-other-torch"]),
        (f"{SITE}/torch/lib/libtorch_cuda.so", "_ZN2at4_ops5zeros4callEv", ["torch-mixed"]),
        (f"{SITE}/torch/lib/../../nvidia/cudnn/lib/libcudnn_cnn.so.9", "_ZN5cudnn3opsEv", ["cudnn-symbol-mismatch"]),
        ("/usr/bin/gimp", "_ZN4Gimp4initEv", []),
    ],
)
def test_the_namespace_shows_who_defines_a_function(library: str, symbol: str, causes: list[str]) -> None:
    assert causes_of(undefined(library, symbol)) == causes


def test_a_cpu_build_of_pytorch_is_named_before_the_extension() -> None:
    line = undefined(f"{SITE}/flash_attn_2_cuda.so", SET_DEVICE)
    given = Given(packages={"torch": "2.4.1+cpu"})
    assert causes_of(line, given) == ["extension-beside-cpu-torch"]
    assert "pip install torch==2.4.1 torchvision torchaudio --index-url" in words_of(line, given)
    assert causes_of(line, Given(packages={"torch": "2.4.1+cu121"})) == ["extension-of-other-torch"]


def test_a_second_copy_in_the_users_site_packages_is_named_first() -> None:
    line = undefined("/home/u/.local/lib/python3.10/site-packages/flash_attn_2_cuda.so", SET_DEVICE)
    frame = f'File "{SITE}/transformers/utils/import_utils.py", line 1099, in _get_module'
    assert causes_of(line) == ["extension-of-other-torch"]
    assert causes_of(f"{frame}\n{line}") == ["extension-in-user-site", "extension-of-other-torch"]


@pytest.mark.parametrize(
    ("torch", "index"),
    [("2.1.0+cpu", "torch==2.1.2 torchvision xformers --index-url https://download.pytorch.org/whl/cu121")],
)
def test_xformers_beside_a_cpu_build_gets_torch_from_a_cuda_index(torch: str, index: str) -> None:
    text = f"xFormers was built for:\nPyTorch 2.1.2+cu121 with CUDA 1201 (you have {torch})"
    assert causes_of(text) == ["xformers-beside-cpu-torch"]
    assert index in words_of(text)


def test_packages_that_need_a_newer_torch_are_named() -> None:
    error = "AttributeError: module 'torch' has no attribute 'int1'"
    assert words_of(error).startswith("torch is older than a package beside it needs\n")
    assert "Another package (torchao) uses it" in words_of(error)


NVIDIAS = "torch 2.6.0a0+ecf3bae40a.nv25.1"


@pytest.mark.parametrize(
    ("text", "title", "never"),
    [
        (
            f"{NVIDIAS}\nRuntimeError: operator torchvision::nms does not exist",
            "torchvision from pip does not fit NVIDIA's own build of PyTorch",
            "pip install",
        ),
        (
            "xFormers was built for:\nPyTorch 2.5.1+cu124 with CUDA 1204 (you have 2.6.0a0+ecf3bae40a.nv25.1)",
            "xFormers was built for pip's PyTorch 2.5.1, and this is NVIDIA's own build",
            "whl/",
        ),
        (
            """File "/home/u/src/vllm/vllm/_custom_ops.py", line 10, in x\nNo module named 'vllm._C'""",
            "vLLM is imported from its source directory, which has no compiled library",
            "pip install vllm",
        ),
        (
            "docker run vllm/vllm-openai\nAttributeError: module 'torch' has no attribute 'compiler'",
            "torch is older than a package beside it needs",
            "pip install",
        ),
    ],
)
def test_an_image_or_a_source_directory_is_named_and_nothing_is_installed_into_it(
    text: str, title: str, never: str
) -> None:
    words = words_of(text)
    assert words.startswith(f"{title}\n")
    assert never not in words
