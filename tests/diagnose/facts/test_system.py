"""Decisions of the rules on the rest: C library, NumPy, broken releases, and errors that are not mismatches."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Given
from envsolve.model.host import Platform
from tests.diagnose.facts.package_cases import PYTORCH_2_4, causes_of, words_of

GLIBC = "/lib/x86_64-linux-gnu/libc.so.6: version `{}' not found (required by {})"
CXX = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6: version `{}' not found (required by {})"
ALLOC_FAILED = "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
BOTH_INDICES = ["kernel-assert", "index-out-of-range"]
MEMORY_AND_INDEX = ["out-of-memory", "index-out-of-range"]
TORCH = "/env/lib/python3.8/site-packages/torch/lib/libtorch_cpu.so"


@pytest.mark.parametrize(
    ("text", "causes", "expected"),
    [
        (GLIBC.format("GLIBC_2.99", TORCH), ["glibc-too-old"], "was built for glibc 2.99 or newer"),
        (CXX.format("GLIBCXX_3.4.30", TORCH), ["libstdcxx-too-old"], "of gcc 12 or newer"),
        (CXX.format("CXXABI_1.3.13", TORCH), ["libstdcxx-too-old"], "of gcc 11 or newer"),
        (GLIBC.format("GLIBC_2.34", "/usr/bin/node"), [], ""),
        (CXX.format("GLIBCXX_3.4.29", "/opt/game/engine"), [], ""),
    ],
)
def test_a_c_library_that_is_too_old_names_the_system_that_has_it(text: str, causes: list[str], expected: str) -> None:
    assert causes_of(text) == causes
    if causes:
        assert expected in words_of(text)


@pytest.mark.parametrize(
    ("text", "given", "causes", "expected"),
    [
        (
            "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.1.2 as it may crash.",
            PYTORCH_2_4,
            ["numpy-mismatch"],
            "pip install 'numpy<2'",
        ),
        (
            "RuntimeError: module compiled against API version 0xe but this version of numpy is 0xd",
            PYTORCH_2_4,
            ["numpy-too-old"],
            "was built with a newer NumPy",
        ),
        (
            "RuntimeError: module compiled against API version 0x12 but this version of numpy is 0x10",
            PYTORCH_2_4,
            ["numpy-too-old"],
            "pip install -U 'numpy>=2'",
        ),
        ("ImportError: Numba needs NumPy 1.24 or less. Got NumPy 1.26.", None, ["numpy-mismatch"], "numpy<=1.24.*"),
        ("A module that was compiled using NumPy 1.x cannot be run in NumPy 2.1.2", None, ["numpy-mismatch"], "<2"),
        ("RuntimeError: module compiled against API version 0xe but this version of numpy is 0xd", None, [], ""),
    ],
)
def test_numpy_of_another_generation(text: str, given: Given | None, causes: list[str], expected: str) -> None:
    assert causes_of(text, given) == causes
    if causes:
        assert expected in words_of(text, given)


@pytest.mark.parametrize(
    ("text", "given", "causes"),
    [
        ("TypeError: Descriptors cannot not be created directly.", None, ["protobuf-mismatch"]),
        (
            "ImportError: cannot import name 'runtime_version' from 'google.protobuf'",
            Given(packages={"tensorflow": "2.18.0"}),
            ["protobuf-too-old"],
        ),
        ("ImportError: cannot import name 'runtime_version' from 'google.protobuf'", None, []),
    ],
)
def test_protobuf_is_spoken_of_beside_gpu_frameworks(text: str, given: Given | None, causes: list[str]) -> None:
    assert causes_of(text, given) == causes


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        (
            "OSError: [WinError 126] Error loading fbgemm.dll or one of its dependencies.",
            Given(platform=Platform.WIN_64, packages={"torch": "2.4.0"}),
            "PyTorch 2.4.0 for Windows",
        ),
        (
            "OSError: [WinError 126] Error loading fbgemm.dll or one of its dependencies.",
            Given(platform=Platform.WIN_64, packages={"torch": "2.4.1"}),
            "PyTorch 2.4.0 for Windows is broken",
        ),
        ("ERROR: flag 'xla_gpu_x' was defined more than once", None, "jaxlib 0.6.2 of conda-forge"),
    ],
)
def test_a_release_that_the_matrix_knows_to_be_broken(text: str, given: Given | None, expected: str) -> None:
    assert causes_of(text, given) == ["known-broken-release"]
    assert expected in words_of(text, given)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "given", "causes"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", None, ["out-of-memory"]),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741824 bytes.", None, ["out-of-memory"]),
        (
            "DefaultCPUAllocator: not enough memory: you tried to allocate 800000000 bytes.",
            None,
            ["host-out-of-memory"],
        ),
        ("RuntimeError: CUDA error: device-side assert triggered", None, ["kernel-assert"]),
        ("NLLLoss2d.cu:103: block: [5,0,0] Assertion `t >= 0 && t < n_classes` failed.", None, ["kernel-assert"]),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", None, ["kernel-failed"]),
        ("RuntimeError: CUDA error: the launch timed out and was terminated", None, ["kernel-timeout"]),
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasSgemm( handle",
            None,
            ["cublas-other-copy", "cublas-arguments"],
        ),
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
            None,
            ["cublas-memory", "cublas-arguments", "cublas-other-copy"],
        ),
        (
            "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`\nCUDA out of memory.",
            None,
            ["out-of-memory"],
        ),
        (
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
            None,
            ["tensors-on-different-devices"],
        ),
        ("RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'", None, []),
        ("ncclSystemError: System call (e.g. socket, malloc) failed.", None, ["nccl-failed"]),
        ("ncclInvalidUsage\nDuplicate GPU detected : rank 1 and rank 0", None, ["nccl-failed"]),
        ("OSError: [Errno 28] No space left on device", None, []),
        ("OSError: [Errno 28] No space left on device", PYTORCH_2_4, ["disk-full"]),
        ("ssl.SSLCertVerificationError: certificate verify failed", None, []),
        ("npm ERR! network request failed, reason: connect ECONNREFUSED", None, []),
        (f"{ALLOC_FAILED}\nIndexError: index out of range in self", None, ["index-out-of-range"]),
        ("CUDA error: device-side assert triggered\nIndexError: index out of range in self", None, BOTH_INDICES),
        (f"CUDA out of memory\n{ALLOC_FAILED}\nIndexError: index out of range in self", None, MEMORY_AND_INDEX),
        (ALLOC_FAILED, None, ["out-of-memory"]),
        ("indices[0,0] = 30522 is not in [0, 30522)", None, ["index-out-of-range"]),
    ],
)
def test_similar_errors_are_distinguished(text: str, given: Given | None, causes: list[str]) -> None:
    assert causes_of(text, given) == causes


@pytest.mark.parametrize(
    ("text", "given", "causes"),
    [
        ("Illegal instruction (core dumped)", Given(platform=Platform.LINUX_AARCH64), ["openblas-core-type"]),
        ("Illegal instruction (core dumped)", Given(platform=Platform.LINUX_64), ["processor-without-avx"]),
        ("Linux-5.4-x86_64-with\nIllegal instruction (core dumped)", None, ["processor-without-avx"]),
        (
            "Illegal instruction (core dumped)",
            PYTORCH_2_4,
            ["processor-of-unknown-kind", "processor-without-avx", "openblas-core-type"],
        ),
        ("The command exited with exit code 132", Given(platform=Platform.LINUX_AARCH64), ["openblas-core-type"]),
        (
            ">>> import torch\nIllegal instruction",
            None,
            ["processor-of-unknown-kind", "processor-without-avx", "openblas-core-type"],
        ),
    ],
)
def test_an_illegal_instruction_is_openblas_on_arm(text: str, given: Given, causes: list[str]) -> None:
    assert causes_of(text, given) == causes
