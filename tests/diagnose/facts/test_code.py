"""Rules on code for GPUs: whether a build is older or newer than the GPU, and what a GPU cannot do."""

from __future__ import annotations

import pytest

from envsolve.diagnose.facts.shared.gpu_code import capability_from, targets_from
from envsolve.findings.catalogue import shipped
from envsolve.model.capability import ComputeCapability
from tests.diagnose.facts.code_cases import NOTHING, Known, causes_of, words_of

NO_IMAGE = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
NEW, OLD = "gpu-too-new-for-build", "gpu-too-old-for-build"
EXTENSION = "extension-without-code"
NEITHER = "no-code-for-unknown-gpu"

# facts of a text


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("12.0", (12, 0)),
        ("sm_120", (12, 0)),
        ("120a", (12, 0)),
        ("103f", (10, 3)),
        ("(8, 6)", (8, 6)),
        ("75", (7, 5)),
        ("8.6.0", (8, 6)),
        (None, None),
        ("none", None),
    ],
)
def test_a_capability_is_read_however_it_is_written(text: str | None, capability: tuple[int, int] | None) -> None:
    assert capability_from(text) == (None if capability is None else ComputeCapability(*capability))


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("sm_37 sm_50 sm_70 compute_70", [(3, 7), (5, 0), (7, 0)]),
        ("'sm_90', 'sm_100', 'sm_120', 'compute_120'", [(9, 0), (10, 0), (12, 0)]),
        ("70 75 80 86", [(7, 0), (7, 5), (8, 0), (8, 6)]),
        ("520,610,700", [(5, 2), (6, 1), (7, 0)]),
        ("750 800 1200", [(7, 5), (8, 0), (12, 0)]),
        (None, []),
    ],
)
def test_a_list_of_architectures_is_its_machine_code(text: str | None, targets: list[tuple[int, int]]) -> None:
    assert targets_from(text) == tuple(ComputeCapability(*it) for it in targets)


# which way


def torch(version: str) -> dict[str, str]:
    return {"torch": version}


WAYS = [
    pytest.param(NO_IMAGE, NOTHING, [NEITHER, NEW, OLD, EXTENSION], id="nothing is known: both ways"),
    pytest.param(
        NO_IMAGE, Known(cuda="13.0", packages=torch("2.9.0")), [NEITHER, OLD, NEW, EXTENSION], id="a build of today"
    ),
    pytest.param(NO_IMAGE, Known("RTX 5090", torch("2.5.1+cu124")), [NEW], id="RTX 50 and CUDA 12.4"),
    pytest.param(NO_IMAGE, Known("RTX 5090", torch("2.8.0+cu128")), [EXTENSION], id="RTX 50 and a build that has it"),
    pytest.param(NO_IMAGE, Known("GTX 1080 Ti", torch("2.9.1+cu128")), [OLD], id="Pascal and cu128"),
    pytest.param(NO_IMAGE, Known("GTX 1080 Ti", torch("2.9.1+cu126")), [EXTENSION], id="Pascal and cu126"),
    pytest.param(NO_IMAGE, Known("V100", torch("2.9.1+cu130")), [OLD], id="Volta and CUDA 13"),
    pytest.param(NO_IMAGE, Known("RTX 3090", torch("1.7.1+cu101")), [NEW], id="Ampere and CUDA 10.1"),
    pytest.param(NO_IMAGE, Known("RTX 4090", torch("2.0.1+cu118")), [EXTENSION], id="Ada by sm_86"),
    pytest.param(NO_IMAGE, Known("RTX 5090"), [NEW, EXTENSION], id="a new GPU and nothing else"),
    pytest.param(NO_IMAGE, Known("GTX 1080"), [OLD, EXTENSION], id="an old GPU and nothing else"),
    pytest.param(
        f"File /x/site-packages/torch_scatter/scatter.py, line 72\n{NO_IMAGE}",
        NOTHING,
        [EXTENSION, NEW, OLD],
        id="an extension in the traceback",
    ),
    pytest.param(
        f"File /x/site-packages/xformers/ops/fmha.py, line 72\n{NO_IMAGE}",
        Known("RTX 5090", torch("2.5.1+cu124")),
        [NEW, EXTENSION],
        id="an extension, and a framework that lacks the GPU as well",
    ),
    pytest.param(
        "NVIDIA X with CUDA capability sm_61 is not compatible with the current PyTorch installation.\n"
        "The current PyTorch install supports CUDA capabilities sm_50 sm_70 sm_80.",
        NOTHING,
        ["no-code-for-gpu"],
        id="a hole in the list",
    ),
    pytest.param(
        "Found GPU0 NVIDIA GB10 which is of cuda capability 12.1. Minimum and Maximum cuda capability supported by "
        "this version of PyTorch is (8.0) - (12.0)",
        NOTHING,
        ["capability-warning-harmless"],
        id="GB10 runs code for 12.0",
    ),
    pytest.param(
        "Found GPU0 NVIDIA B200 which is of cuda capability 10.0. Minimum and Maximum cuda capability supported by "
        "this version of PyTorch is (5.0) - (9.0)",
        NOTHING,
        [NEW],
        id="above the limits",
    ),
    pytest.param(
        "Found GPU0 NVIDIA GB10 which is of compute capability (CC) 12.1.\n"
        "Your installed torch==2.13.0+cu130 does not include kernels for this GPU.",
        NOTHING,
        ["capability-warning-harmless"],
        id="a warning that is wrong",
    ),
    pytest.param(
        "Found GPU0 NVIDIA GeForce RTX 5060 Ti which is of compute capability (CC) 12.0.\n"
        "Your installed torch==2.13.0+cu126 does not include kernels for this GPU.",
        NOTHING,
        [NEW],
        id="a warning that is right",
    ),
    pytest.param(
        "Found GPU0 GeForce RTX 2080 Ti which requires CUDA_VERSION >= 10000 to work properly, but your PyTorch was "
        "compiled with CUDA_VERSION 9000.",
        NOTHING,
        [NEW],
        id="PyTorch before 1.4",
    ),
    pytest.param(NO_IMAGE, Known("Jetson AGX Orin"), ["jetson-without-code"], id="a Jetson"),
    pytest.param(
        "Found GPU0 Orin which is of compute capability (CC) 8.7.\n"
        "No published PyTorch CUDA builds for release 2.13.0+cu130 support this GPU.",
        NOTHING,
        ["orin-capability-warning"],
        id="Orin is warned of",
    ),
    pytest.param(
        "FATAL: kernel `fmha_cutlassF_f16_aligned_64x64_rf_sm80` is for sm80-sm100, but was built for sm37",
        NOTHING,
        [NEW, EXTENSION],
        id="PTX of an older kernel",
    ),
    pytest.param(
        "Unexpected error from cudaGetDeviceCount(). Error 500: named symbol not found", NOTHING, [], id="the driver's"
    ),
    pytest.param("hipErrorNoBinaryForGpu\n" + NO_IMAGE, NOTHING, ["amd-gpu"], id="AMD's"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("text", "known", "expected"), WAYS)
def test_the_build_is_older_or_newer_than_the_gpu(text: str, known: Known, expected: list[str]) -> None:
    assert causes_of(text, known) == expected


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("known", "words"),
    [
        (Known("RTX 5090", torch("2.5.1+cu124")), ["12.8", "PyTorch 2.7.0 (cu128)", "570"]),
        (Known("RTX 5090"), ["If it is PyTorch: install PyTorch 2.7.0 (cu128)"]),
        (
            Known("GTX 1080 Ti", torch("2.9.1+cu128")),
            ["12.9", "cu126", "Keep version 2.9.1 and change the build", "R580"],
        ),
        (Known("Tesla K80", torch("2.1.0+cu121")), ["11.8", "3.7"]),
        (Known("RTX 3090", torch("1.7.1+cu101")), ["11.1", "PyTorch 1.7.1+cu101 was built with CUDA 10.1"]),
        (Known("V100", {"tensorflow": "2.20.0"}), ["7.0"]),
        (
            Known("V100", torch("2.11.0")),
            ["cu126 and not in cu130, cu129 and cu128", "pip install --force-reinstall torch==2.11.0", "/whl/cu126"],
        ),
    ],
)
def test_the_matrix_says_what_has_the_gpu(known: Known, words: list[str]) -> None:
    assert [word for word in words if word not in words_of(NO_IMAGE, known)] == []


# TensorFlow, cuDNN, cuBLAS


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        (
            "TensorFlow was not built with CUDA kernel binaries compatible with compute capability 12.0.",
            NOTHING,
            ["tensorflow-without-blackwell"],
        ),
        (
            "TensorFlow was not built with CUDA kernel binaries compatible with compute capability 8.9.",
            NOTHING,
            ["first-start-compiles"],
        ),
        ("'cuLaunchKernel(...)' failed with 'CUDA_ERROR_INVALID_HANDLE'", NOTHING, ["tensorflow-without-blackwell"]),
        ("'cuLaunchKernel(...)' failed with 'CUDA_ERROR_INVALID_HANDLE'", Known("RTX 3090"), []),
        ("cuDNN error: CUDNN_STATUS_ARCH_MISMATCH\nGPU: Tesla K80", NOTHING, ["gpu-below-cudnn"]),
        (
            "CUDNN_STATUS_ARCH_MISMATCH ; GPU=0 NVIDIA GeForce GTX 1080 Ti\ncuDNN version: 9.14.0",
            NOTHING,
            ["cudnn-dropped-gpu"],
        ),
        (
            "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED",
            Known("RTX 3090", torch("1.6.0+cu101")),
            ["library-too-old-for-gpu"],
        ),
        ("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED", Known("RTX 3090", torch("2.1.0+cu121")), []),
        ("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED", Known("RTX 4090", torch("1.13.1+cu117")), []),
        (
            "cublas runtime error : the GPU program failed to execute",
            Known("RTX 2080 Ti", torch("0.4.1"), "9.0"),
            ["library-too-old-for-gpu"],
        ),
        ("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED", NOTHING, []),
    ],
)
def test_libraries_and_tensorflow_lack_gpus_in_their_own_words(text: str, known: Known, expected: list[str]) -> None:
    assert causes_of(text, known) == expected


# lists


LIST = "['sm_70', 'sm_75', 'sm_80', 'sm_86', 'sm_90', 'sm_100', 'sm_120', 'compute_120']"


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        (LIST, NOTHING, ["architectures-of-build"]),
        (LIST, Known("GTX 1080"), [OLD]),
        (LIST, Known("RTX 4090"), []),
        (f"(6, 1) {LIST}", NOTHING, [OLD]),
        ("(12, 0) ['sm_80', 'sm_86', 'sm_90']", NOTHING, [NEW]),
    ],
)
def test_a_list_is_compared_with_the_gpu(text: str, known: Known, expected: list[str]) -> None:
    assert causes_of(text, known) == expected


# compilers


def unsupported(number: str, toolkit: str | None = None) -> str:
    text = f"nvcc fatal   : Unsupported gpu architecture 'compute_{number}'"
    return text if toolkit is None else f"{text}\nCuda compilation tools, release {toolkit}, V{toolkit}.105"


@pytest.mark.parametrize(
    ("text", "known", "expected", "word"),
    [
        (unsupported("120"), NOTHING, "nvcc-too-old-for-architecture", "12.8"),
        (unsupported("89", "11.5"), NOTHING, "nvcc-too-old-for-architecture", "TORCH_CUDA_ARCH_LIST=8.6"),
        (unsupported("90"), Known("Jetson AGX Orin"), "nvcc-too-old-for-architecture", "TORCH_CUDA_ARCH_LIST=8.7"),
        (unsupported("35"), NOTHING, "nvcc-too-new-for-architecture", "11.8"),
        (unsupported("70", "13.0"), NOTHING, "nvcc-too-new-for-architecture", "12.9"),
        (unsupported("70", "8.0"), NOTHING, "nvcc-too-old-for-architecture", "9.0"),
        (unsupported("20"), NOTHING, "nvcc-too-new-for-architecture", "8.0"),
        (unsupported("130"), NOTHING, "nvcc-unknown-architecture", "130"),
        ("clang: error: unsupported CUDA gpu architecture: sm_120", NOTHING, "nvcc-too-old-for-architecture", "12.8"),
    ],
)
def test_nvcc_lacks_what_came_later_or_was_dropped(text: str, known: Known, expected: str, word: str) -> None:
    assert causes_of(text, known) == [expected]
    assert word in words_of(text, known)


NVRTC = "nvrtc: error: invalid value for --gpu-architecture (-arch)"


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        (NVRTC, NOTHING, ["nvrtc-lacks-gpu", "nvrtc-too-old-for-gpu", "nvrtc-too-new-for-gpu"]),
        (NVRTC, Known("RTX 4090", torch("1.12.1+cu113")), ["nvrtc-too-old-for-gpu"]),
        (NVRTC, Known("Tesla K80", torch("2.1.0+cu121")), ["nvrtc-too-new-for-gpu"]),
        (f"{NVRTC}\nOptions: -I/x -ftz=true -arch=compute_21", NOTHING, ["nvrtc-too-new-for-gpu"]),
        ("Options: -I/x -ftz=true -arch=compute_86", NOTHING, []),
    ],
)
def test_nvrtc_lacks_new_gpus_and_old_ones(text: str, known: Known, expected: list[str]) -> None:
    assert causes_of(text, known) == expected


@pytest.mark.parametrize(
    ("text", "expected", "words"),
    [
        (
            "ptxas fatal : Value 'sm_89' is not defined for option 'gpu-name'",
            "ptxas-too-old",
            ["11.8", "TRITON_PTXAS_PATH"],
        ),
        (
            "asm_compiler.cc:231] Falling back to the CUDA driver for PTX compilation; ptxas does not support CC 8.9",
            "ptxas-too-old",
            ["11.8", "xla_gpu_cuda_data_dir"],
        ),
        ("ptxas fatal : Value 'sm_110a' is not defined for option 'gpu-name'", "ptxas-too-old", ["13.0", "sm_101"]),
        (
            "'sm_120' is not a recognized processor for this target (ignoring processor)",
            "ptxas-too-old",
            ["12.8", "LLVM"],
        ),
        (
            "ptxas /tmp/x.ptx, line 5; fatal   : Unsupported .version 8.6; current version is '8.5'",
            "ptxas-too-old",
            ["12.7", "12.5"],
        ),
        ("PTX version 8.5 does not support target 'sm_120'.", "xla-older-than-gpu", ["12.8", "12.5"]),
        (
            "ptxas fatal   : Program with .target 'sm_90a' cannot be compiled to future architecture",
            "xla-before-blackwell",
            ["sm_90a"],
        ),
    ],
)
def test_an_assembler_is_older_than_the_gpu(text: str, expected: str, words: list[str]) -> None:
    assert causes_of(text) == [expected]
    assert [word for word in words if word not in words_of(text)] == []


# features


@pytest.mark.parametrize(
    ("text", "known", "words"),
    [
        ("RuntimeError: FlashAttention only supports Ampere GPUs or newer.", Known("V100"), ["8.0", "7.0", "sdpa"]),
        ("RuntimeError: FlashAttention only supports Hopper GPUs or newer.", NOTHING, ["9.0", "FlashAttention 3"]),
        ("Error: ptxas: Feature '.bf16' requires .target sm_80 or higher", NOTHING, ["bfloat16", "8.0"]),
        ("RuntimeError: GPUs with compute capability < 8.0 are not supported.", Known("T4"), ["8.0", "7.5"]),
        ("RuntimeError: Your device is too old. We require compute capability >= 50", NOTHING, ["5.0"]),
    ],
)
def test_a_gpu_lacks_a_feature(text: str, known: Known, words: list[str]) -> None:
    (name,) = causes_of(text, known)
    assert shipped().entry(name).finding == "gpu-lacks-feature"
    assert [word for word in words if word not in words_of(text, known)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "OpError: expects arch to be one of [Arch.sm_100f, Arch.sm_110a], but got Arch.sm_121a",
            ["kernel-of-other-architecture"],
        ),
        ("OpError: expects arch to be one of ['sm_120a'], but got Arch.sm_121a", ["cutlass-dsl-too-old"]),
    ],
)
def test_a_kernel_of_another_family_is_not_a_matter_of_versions(text: str, expected: list[str]) -> None:
    assert causes_of(text) == expected


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [("RTX 5090", ["deepgemm-without-gpu"]), ("A100", ["deepgemm-without-gpu"]), ("H100", []), ("10.0", [])],
)
def test_deepgemm_has_kernels_for_hopper_and_b200(gpu: str, expected: list[str]) -> None:
    text = "RuntimeError: Assertion error (deepgemm-src/csrc/apis/layout.hpp:60): Unknown SF transformation"
    assert causes_of(text, Known(gpu)) == expected


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        (None, ["bfloat16-unsupported", "bfloat16-needs-ampere", "bfloat16-by-old-pytorch"]),
        ("T4", ["bfloat16-needs-ampere"]),
        ("A100", ["bfloat16-by-old-pytorch"]),
    ],
)
def test_bfloat16_is_refused_by_an_old_pytorch_too(gpu: str | None, expected: list[str]) -> None:
    assert causes_of("ValueError: Your setup doesn't support bf16/gpu.", Known(gpu)) == expected


@pytest.mark.parametrize(
    "text", ["CUDA SETUP: Highest compute capability among GPUs detected: 6.1", "compute capability 8.0"]
)
def test_a_capability_alone_is_not_a_failure(text: str) -> None:
    assert causes_of(text) == []


# TensorRT and xFormers


@pytest.mark.parametrize(
    ("text", "expected", "words"),
    [
        ("Target GPU SM 120 is not supported by this TensorRT release.", ["tensorrt-too-old-for-gpu"], ["10.8"]),
        ("Target GPU SM 61 is not supported by this TensorRT release.", ["tensorrt-too-new-for-gpu"], ["6.1"]),
        ("Error Code 1: Internal Error (Unsupported SM: 0x809)", ["tensorrt-too-old-for-gpu"], ["8.9", "8.5"]),
        ("Error Code 1: Internal Error (Unsupported SM: 0x601)", ["tensorrt-too-new-for-gpu"], ["6.1"]),
        (
            "Unsupported SM.\n&&&& FAILED TensorRT.trtexec [TensorRT v7000]",
            ["tensorrt-lacks-gpu", "tensorrt-too-old-for-gpu", "tensorrt-too-new-for-gpu"],
            ["7.0"],
        ),
        (
            "Target GPU SM 120 is not supported by this TensorRT release.\nTensorRT.trtexec [TensorRT v100700] [b23]",
            ["tensorrt-too-old-for-gpu"],
            ["10.7"],
        ),
        (
            "requires device with capability <= (9, 0) but your GPU has capability (12, 0) (too new)",
            ["xformers-too-old-for-gpu"],
            ["12.8"],
        ),
        (
            "requires device with capability > (8, 0) but your GPU has capability (7, 5) (too old)",
            ["xformers-too-new-for-gpu"],
            ["8.0"],
        ),
    ],
)
def test_tensorrt_and_xformers_count_their_own_gpus(text: str, expected: list[str], words: list[str]) -> None:
    assert causes_of(text) == expected
    assert [word for word in words if word not in words_of(text)] == []


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (Known("Tesla T4"), ["kernel-needs-target"]),
        (Known("RTX 3090"), ["compiled-for-older-architecture"]),
        (NOTHING, ["kernel-below-target", "kernel-needs-target", "compiled-for-older-architecture"]),
    ],
)
def test_an_instruction_is_lacking_in_the_gpu_or_in_the_list(known: Known, expected: list[str]) -> None:
    assert (
        causes_of("ptxas x.ptx, line 1; error : Feature 'cp.async' requires .target sm_80 or higher", known) == expected
    )


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        ("NVRTC Version : (13, 0)\nNVRTC_ERROR_INVALID_OPTION (5)", NOTHING, ["nvrtc-too-new-for-gpu"]),
        (
            "NVRTC Version : (11, 2)\nNVRTC_ERROR_INVALID_OPTION (5)",
            NOTHING,
            ["nvrtc-lacks-gpu", "nvrtc-too-old-for-gpu", "nvrtc-too-new-for-gpu"],
        ),
        ("NVRTC Version : (11, 2)\nNVRTC_ERROR_INVALID_OPTION (5)", Known("RTX 4090"), ["nvrtc-too-old-for-gpu"]),
        ("NVRTC_ERROR_INVALID_OPTION (5)", Known("GTX 1080", {"cupy": "4.0.0"}), ["nvrtc-too-old-for-gpu"]),
        ("NVRTC_ERROR_INVALID_OPTION (5)", Known("GTX 1080"), ["nvrtc-too-new-for-gpu"]),
        ("nvcc --gpu-architecture=sm_89 x.cu", NOTHING, []),
    ],
)
def test_the_nvrtc_that_is_loaded_decides(text: str, known: Known, expected: list[str]) -> None:
    assert causes_of(text, known) == expected


def test_statements_of_the_build_are_not_a_fault_of_an_extension() -> None:
    text = (
        "Ignoring visible gpu device (device: 0, name: GeForce GT 730, pci bus id: 0000:01:00.0, compute capability: "
        "3.5) with Cuda compute capability 3.5. The minimum required Cuda capability is 3.7."
    )
    assert causes_of(text, NOTHING) == [OLD]


def test_ptx_alone_is_no_proof_that_a_build_serves_the_gpu() -> None:
    text = "CUDA error: invalid device function (RTX 3090, torch 1.5.0+cu102)"
    assert causes_of(text, NOTHING)[0] == NEW


INVOKING = (
    "*** WARNING *** Invoking ptxas with version 12.4.131, which corresponds to a CUDA version <=12.6.2. CUDA versions "
    "12.x.y up to and including 12.6.2 miscompile certain edge cases around clamping."
)
TOO_OLD_FOR_120 = "ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'"
PTXAS_PRINTS = """ptxas: NVIDIA (R) Ptx optimizing assembler
Copyright (c) 2005-2023 NVIDIA Corporation
Built on Fri_Nov__3_17:14:42_PDT_2023
Cuda compilation tools, release 12.3, V12.3.103"""


def test_no_ptxas_is_too_old_for_an_architecture_that_newer_ones_dropped() -> None:
    dropped = "ptxas fatal   : Value 'sm_30' is not defined for option 'gpu-name'"
    assert causes_of(dropped) == ["ptxas-of-another-toolkit"]


@pytest.mark.parametrize(
    ("text", "found", "least"),
    [
        ("*** WARNING *** You are using ptxas 9.2.148, which is older than 11.1. ptxas before", "9.2.148", "11.1"),
        (
            f"{INVOKING}\nPlease upgrade to CUDA 12.6.3 or newer.",
            "12.4.131",
            "12.6.3",
        ),
        (INVOKING, "12.4.131", None),
    ],
)
def test_xla_warns_of_an_older_ptxas(text: str, found: str, least: str | None) -> None:
    assert causes_of(text) == ["ptxas-faulty"]
    limit = "" if least is None else f" ({least} or newer)"
    assert f"ptxas {found} is older than XLA requires{limit}\n" in words_of(text)


@pytest.mark.parametrize(
    ("listed", "known", "words"),
    [
        ("sm_37 sm_50 sm_60 sm_61 sm_70 sm_75 compute_37", NOTHING, "builds for CUDA 10.0, 10.1 and 10.2"),
        ("sm_37 sm_50 sm_60 sm_61 sm_70 sm_75", Known(packages={"torch": "1.8.0.dev20201023"}), "CUDA 10.1 and 10.2"),
    ],
)
def test_a_list_implies_the_cuda_of_the_build(listed: str, known: Known, words: str) -> None:
    assert words in words_of(SM_86.format(listed), known)


@pytest.mark.parametrize(
    ("listed", "known"),
    [
        ("sm_37 sm_50 sm_60 sm_61 sm_70 sm_75", Known(packages={"torch": "1.8.0+cu102"})),
        ("sm_50 sm_61", NOTHING),
    ],
)
def test_nothing_is_concluded_from_a_list_without_a_known_build(listed: str, known: Known) -> None:
    assert "That is the list" not in words_of(SM_86.format(listed), known)


SM_86 = (
    "GeForce RTX 3090 with CUDA capability sm_86 is not compatible with the current PyTorch installation.\n"
    "The current PyTorch install supports CUDA capabilities {}."
)


def test_thor_takes_builds_for_servers_with_arm() -> None:
    words = words_of(f"Jetson AGX Thor\n{NO_IMAGE}", Known("11.0", torch("2.9.1+cu128")))
    assert "cu130" in words
    assert "Arm servers" in words
