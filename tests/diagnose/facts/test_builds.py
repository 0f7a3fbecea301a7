"""Rules on builds without CUDA: the system decides who installed one, and what is available instead."""

from __future__ import annotations

import pytest

from envsolve.model.host import Platform
from tests.diagnose.facts.code_cases import NOTHING, Known, causes_of, words_of

WINDOWS, LINUX, ARM, MAC = Platform.WIN_64, Platform.LINUX_64, Platform.LINUX_AARCH64, Platform.OSX_ARM64
NOT_COMPILED = "AssertionError: Torch not compiled with CUDA enabled"
IS_FALSE = ">>> torch.cuda.is_available()\nFalse"

# PyTorch


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        pytest.param(
            NOT_COMPILED, NOTHING, ["cpu-build", "cpu-only-on-purpose", "macos-without-cuda"], id="nothing is known"
        ),
        pytest.param(
            NOT_COMPILED, Known(platform=WINDOWS), ["cpu-build", "cpu-only-on-purpose"], id="Windows, perhaps no GPU"
        ),
        pytest.param(NOT_COMPILED, Known(platform=MAC), ["macos-without-cuda"], id="a Mac"),
        pytest.param(f"{NOT_COMPILED}\nmacOS 14.2, Apple M2", NOTHING, ["macos-without-cuda"], id="a Mac by its text"),
        pytest.param(NOT_COMPILED, Known(platform=ARM), ["aarch64-cpu-build"], id="Arm"),
        pytest.param(f"{NOT_COMPILED}\nJetPack 5.1.2 (L4T R35.4)", NOTHING, ["jetson-build-needed"], id="a Jetson"),
        pytest.param(f"{NOT_COMPILED}\nAMD Radeon RX 6700 XT", NOTHING, ["amd-gpu"], id="a GPU of AMD"),
        pytest.param("torch 2.5.1+cpu", Known("RTX 4090"), ["cpu-build"], id="the build's name, and a GPU"),
        pytest.param("torch 2.5.1+cpu", NOTHING, [], id="the build's name alone"),
        pytest.param(f"torch 2.5.1+cpu\n{IS_FALSE}", NOTHING, ["cpu-build"], id="the build's name, and a question"),
        pytest.param("torch.version.cuda: None", NOTHING, ["cpu-build"], id="no CUDA in it"),
        pytest.param(
            "pytorch  2.3.1  cpu_generic_py311h8ca351a_0", NOTHING, ["cpu-build-listed"], id="a list of conda"
        ),
        pytest.param("libtorch  2.4.0  cpu_generic_h4a3044c_1", Known("RTX 3090"), ["cpu-build"], id="and a GPU"),
        pytest.param("pytorch-mutex  1.0  cpu  pytorch", Known("RTX 3090"), ["cpu-build"], id="conda's switch"),
        pytest.param(
            "Could not run 'aten::empty_strided' with arguments from the 'CUDA' backend. 'aten::empty_strided' is only "
            "available for these backends: [CPU, MPS, Meta, QuantizedCPU]",
            NOTHING,
            ["macos-without-cuda"],
            id="Apple's backend",
        ),
        pytest.param(
            "Could not run 'aten::_spdiags' with arguments from the 'CUDA' backend.", NOTHING, [], id="no kernel of it"
        ),
    ],
)
def test_a_build_without_cuda_has_a_known_origin(text: str, known: Known, expected: list[str]) -> None:
    assert causes_of(text, known) == expected


@pytest.mark.parametrize(
    ("known", "words", "silent"),
    [
        (Known(platform=WINDOWS, packages={"torch": "2.3.1"}), ["On Windows", "torch==2.3.1", "cu121"], ["On x86-64"]),
        (Known(platform=LINUX), ["On x86-64 Linux", "cu126"], ["On Windows the default"]),
        (Known("RTX 5090", {"torch": "2.8.0+cpu"}, platform=WINDOWS), ["torch==2.8.0", "cu129"], ["cu126"]),
    ],
)
def test_the_command_is_for_the_version_and_the_gpu(known: Known, words: list[str], silent: list[str]) -> None:
    answer = words_of(NOT_COMPILED, known)
    assert [word for word in words if word not in answer] == []
    assert [word for word in silent if word in answer] == []


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        pytest.param(
            IS_FALSE,
            NOTHING,
            ["cuda-not-available", "cpu-build", "gpu-not-visible", "aarch64-cpu-build"],
            id="nothing is known: three ways",
        ),
        pytest.param(
            IS_FALSE,
            Known(platform=LINUX),
            ["cuda-not-available", "gpu-not-visible", "cpu-build"],
            id="Linux has CUDA wheels",
        ),
        pytest.param(
            IS_FALSE,
            Known(platform=WINDOWS),
            ["cuda-not-available", "cpu-build", "gpu-not-visible"],
            id="Windows has CPU wheels",
        ),
        pytest.param(IS_FALSE, Known(packages={"torch": "2.8.0+cu128"}), ["gpu-not-visible"], id="a build with CUDA"),
        pytest.param(
            IS_FALSE, Known(packages={"torch": "2.8.0+cu128"}, driver="450.80.02"), [], id="the driver is too old"
        ),
        pytest.param(IS_FALSE, Known(platform=ARM), ["aarch64-cpu-build", "gpu-not-visible"], id="Arm"),
        pytest.param(IS_FALSE, Known(platform=MAC), ["macos-without-cuda"], id="a Mac"),
        pytest.param("Is CUDA available: False", Known(platform=MAC), [], id="a Mac that collects"),
        pytest.param("Is CUDA available: False", NOTHING, [], id="collected, and no GPU told"),
        pytest.param(
            "Is CUDA available: False",
            Known("RTX 3060", platform=LINUX),
            ["cuda-not-available", "gpu-not-visible", "cpu-build"],
        ),
        pytest.param(">>> torch.cuda.is_available()\nTrue", NOTHING, [], id="it is available"),
    ],
)
def test_no_cuda_for_pytorch_has_several_causes(text: str, known: Known, expected: list[str]) -> None:
    assert causes_of(text, known) == expected


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Could not run 'fbgemm::x' with arguments from the 'CUDA' backend", "fbgemm was built"),
        ("Could not run '_C::x' with arguments from the 'CUDA' backend", "The extension was built"),
    ],
)
def test_an_operator_without_cuda_belongs_to_an_extension(text: str, title: str) -> None:
    assert causes_of(text) == ["extension-without-cuda"]
    assert words_of(text).startswith(title)


# other vendors


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        ("hipErrorNoBinaryForGpu: Unable to find code object", NOTHING, ["amd-gpu"]),
        ("CUDA error: device kernel image is invalid (hipErrorInvalidImage)", NOTHING, ["amd-gpu"]),
        ("AMD Radeon RX 6700 XT", NOTHING, []),
        ("GPU: AMD Radeon RX 580\nRuntimeError: Found no NVIDIA driver on your system.", NOTHING, ["amd-gpu"]),
        ("AMD Radeon(TM) Graphics\nfoo", Known("RTX 4060"), []),
    ],
)
def test_an_amd_gpu_is_reported_if_something_requires_cuda(text: str, known: Known, expected: list[str]) -> None:
    assert causes_of(text, known) == expected


# TensorFlow


def flow(version: str) -> dict[str, str]:
    return {"tensorflow": version}


NO_GPUS = "Num GPUs Available:  0"


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        (
            NO_GPUS,
            NOTHING,
            ["tensorflow-no-gpu", "tensorflow-native-windows", "tensorflow-libraries-needed", "tensorflow-cpu-build"],
        ),
        (NO_GPUS, Known(packages=flow("2.15.0"), platform=WINDOWS), ["tensorflow-native-windows"]),
        (
            NO_GPUS,
            Known(packages=flow("2.10.1"), platform=WINDOWS),
            ["tensorflow-libraries-needed", "tensorflow-cpu-build"],
        ),
        (
            NO_GPUS,
            Known(packages=flow("2.15.0"), platform=LINUX),
            ["tensorflow-libraries-needed", "tensorflow-cpu-build"],
        ),
        (NO_GPUS, Known(packages=flow("2.15.0"), platform=ARM), ["tensorflow-arm"]),
        (NO_GPUS, Known(platform=MAC), ["macos-without-cuda"]),
        (NO_GPUS, Known("GTX 1650", flow("2.1.0"), "10.2", platform=WINDOWS), ["tensorflow-other-cuda"]),
        (
            NO_GPUS,
            Known("GTX 1650", flow("2.1.0"), "10.1", platform=WINDOWS),
            ["tensorflow-libraries-needed", "tensorflow-cpu-build"],
        ),
        ("is_built_with_cuda(): False", Known(packages=flow("2.15.0"), platform=LINUX), ["tensorflow-cpu-build"]),
        (
            "tf.test.is_built_with_cuda() answers False",
            Known(packages=flow("2.11"), platform=WINDOWS),
            ["tensorflow-native-windows"],
        ),
        (f"tensorflow  2.12.0  mkl_py39h5ea9445_0\n{NO_GPUS}", NOTHING, ["tensorflow-cpu-build"]),
        (f"{NO_GPUS}\nPhysicalDevice(name='/physical_device:GPU:0')", NOTHING, []),
        ("Num GPUs Available:  1", NOTHING, []),
    ],
)
def test_tensorflow_without_gpu_depends_on_system_and_version(text: str, known: Known, expected: list[str]) -> None:
    assert causes_of(text, known) == expected


# JAX


ON_CPU = (
    "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu."
)
PLUGIN = "File /x/site-packages/jax_plugins/xla_cuda12/__init__.py, line 199"


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        (ON_CPU, Known(platform=LINUX), ["jax-cpu-build"]),
        (ON_CPU, NOTHING, ["jax-cpu-build", "jax-native-windows"]),
        (ON_CPU, Known(platform=WINDOWS), ["jax-native-windows"]),
        (ON_CPU, Known(platform=MAC), ["macos-without-cuda"]),
        (f"{PLUGIN}\n{ON_CPU}", Known(platform=LINUX), ["jax-plugin-failed"]),
        (ON_CPU, Known(packages={"jax-cuda12-plugin": "0.5.0"}, platform=LINUX), ["jax-plugin-failed"]),
        (PLUGIN, NOTHING, []),
        ("Unable to initialize backend 'cuda': INTERNAL", NOTHING, ["jax-plugin-failed"]),
        ("jaxlib version 0.5.0 is newer than and incompatible with jax version 0.4.1\n" + ON_CPU, NOTHING, []),
    ],
)
def test_jax_on_the_cpu_has_no_plugin_or_one_that_failed(text: str, known: Known, expected: list[str]) -> None:
    assert causes_of(text, known) == expected


@pytest.mark.parametrize(
    ("version", "words"),
    [("0.4.13", ["+cuda12.cudnn89"]), ("0.6.2", ["cuda12]==0.6.2"]), ("0.4.13+cuda11", ["0.4.13"])],
)
def test_jax_had_its_cuda_inside_jaxlib_once(version: str, words: list[str]) -> None:
    answer = words_of(ON_CPU, Known(packages={"jax": version}, platform=LINUX))
    assert [word for word in words if word not in answer] == []


def test_an_extra_of_jax_is_named_where_that_release_has_it() -> None:
    answer = words_of(ON_CPU, Known(packages={"jax": "0.4.14"}, platform=LINUX))
    assert "jax[cuda12]==0.4.14" not in answer
    assert "jax[cuda12_pip]==0.4.14" in answer
    plugin = "Jax plugin configuration error: Exception when calling jax_plugins.xla_cuda13.initialize()"
    assert "jax[cuda13]" in words_of(plugin, NOTHING)


# ONNX Runtime


MISSING = (
    "Specified provider 'CUDAExecutionProvider' is not in available provider names.Available providers: "
    "'CPUExecutionProvider'"
)


@pytest.mark.parametrize(
    ("text", "known", "expected", "word"),
    [
        (MISSING, NOTHING, "onnxruntime-cpu-build", "'CPUExecutionProvider'"),
        (MISSING, Known(platform=MAC), "onnxruntime-cpu-build", "CoreMLExecutionProvider"),
        (MISSING, Known(platform=ARM), "onnxruntime-cpu-build", "aarch64"),
        (
            "Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*",
            NOTHING,
            "onnxruntime-provider-failed",
            "CUDA 12 and cuDNN 9",
        ),
    ],
)
def test_onnx_runtime_has_no_provider_or_one_that_failed(text: str, known: Known, expected: str, word: str) -> None:
    assert causes_of(text, known) == [expected]
    assert word in words_of(text, known)


# programs


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("FFmpeg was built without CUDA support", "FFmpeg"),
        ("This library was not compiled with CUDA", None),
        ("CUDA support was not enabled at compile time", None),
        ("RuntimeError: [Open3D Error] Set BUILD_CUDA_MODULE=ON to compile for CUDA support", "Open3D"),
    ],
)
def test_a_program_says_that_it_has_no_cuda(text: str, program: str | None) -> None:
    assert causes_of(text) == ["cpu-build-of-program"]
    assert words_of(text).startswith(f"{program or 'The program'} was built without CUDA")


def test_the_program_is_not_mentioned_if_the_cause_is_known() -> None:
    assert causes_of(NOT_COMPILED, Known(platform=MAC)) == ["macos-without-cuda"]
    assert "cpu-build-of-program" not in causes_of("This CTranslate2 package was not compiled with CUDA support")


@pytest.mark.parametrize(
    "text",
    [
        "torch.cuda.is_available()\u53d1\u73b0\u662fFalse",
        "torch.cuda.is_available=**False**",
        "print(torch.cuda.is_available())  # False",
        "torch.cuda.is_available() always returns False",
    ],
)
def test_false_is_read_in_any_form(text: str) -> None:
    assert causes_of(text, Known(platform=WINDOWS)) == ["cuda-not-available", "cpu-build", "gpu-not-visible"]


@pytest.mark.parametrize(
    "text",
    [
        "if not torch.cuda.is_available(): return False",
        "if torch.cuda.is_available() == False:",
        "assert torch.cuda.is_available(), 'this test needs a GPU'",
    ],
)
def test_code_that_queries_cuda_proves_nothing(text: str) -> None:
    assert causes_of(text, NOTHING) == []


def test_a_build_that_the_driver_does_not_run_is_not_offered() -> None:
    known = Known("RTX 3080", {"torch": "2.9.1+cpu"}, driver="573.44", platform=WINDOWS)
    words = words_of(NOT_COMPILED, known)
    assert "whl/cu126" in words
    assert "cu130" not in words


@pytest.mark.parametrize(
    ("known", "expected", "word"),
    [
        (Known(platform=MAC), "macos-without-cuda", ""),
        (Known(platform=ARM), "ctranslate2-cpu-build", "from source with CUDA"),
        (Known(platform=LINUX), "ctranslate2-cpu-build", ""),
    ],
)
def test_ctranslate2_has_cuda_on_some_machines_only(known: Known, expected: str, word: str) -> None:
    text = "This CTranslate2 package was not compiled with CUDA support"
    assert causes_of(text, known)[0] == expected
    assert word in words_of(text, known)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("hipErrorNoBinaryForGpu\nAMD Radeon RX 6600", "10.3.0"),
        ("hipErrorNoBinaryForGpu\nAMD Radeon RX 7600", "11.0.0"),
        ("whl/rocm6.0\nhttps://download.pytorch.org/whl/rocm6.0\nFound no NVIDIA driver on your system", "another env"),
    ],
)
def test_facts_about_an_amd_gpu(text: str, word: str) -> None:
    assert word in words_of(text, NOTHING)
