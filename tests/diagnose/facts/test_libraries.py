"""Results of the rules on libraries for a text and additional facts: who owns a file, why it is not found."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from envsolve.diagnose.case import Given
from envsolve.diagnose.facts.shared.library_names import Owner, Span, cudnn_major, is_plain, owner_of, span_of, stem_of
from envsolve.diagnose.facts.shared.programs import importer_of, program_of
from envsolve.diagnose.facts.shared.seen_libraries import opened_span, toolkits, versions_built_for
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.versions import CudaVersion
from tests.diagnose.facts.library_cases import KNOWLEDGE, case_of, causes_of, words_of


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("file_name", "owner"),
    [
        ("libcudart.so.11.0", Owner.CUDA),
        ("cublasLt64_12.dll", Owner.CUDA),
        ("libnvrtc-builtins.so.12.1", Owner.CUDA),
        ("libnccl.so.2", Owner.CUDA),
        ("nppial64_11.dll", Owner.CUDA),
        ("libcudnn_ops_infer.so.8", Owner.CUDNN),
        ("cudnn64_9.dll", Owner.CUDNN),
        ("libcuda.so.1", Owner.DRIVER),
        ("nvcuda.dll", Owner.DRIVER),
        ("libnvidia-ml.so.1", Owner.DRIVER),
        ("libnvinfer.so.8.6.1", Owner.TENSORRT),
        ("nvinfer_plugin_10.dll", Owner.TENSORRT),
        ("onnxruntime_providers_tensorrt.dll", Owner.TENSORRT),
        ("onnxruntime_providers_cuda.dll", Owner.ONNXRUNTIME),
        ("libonnxruntime_providers_shared.so", Owner.ONNXRUNTIME),
        ("libtorch_cuda_cu.so", Owner.PYTORCH),
        ("c10.dll", Owner.PYTORCH),
        ("caffe2_nvrtc.dll", Owner.PYTORCH),
        ("libtensorflow_framework.so.2", Owner.TENSORFLOW),
        ("libbitsandbytes_cuda118.so", Owner.BITSANDBYTES),
        ("fbgemm.dll", Owner.RELEASE_FAULT),
        ("libomp140.x86_64.dll", Owner.RELEASE_FAULT),
        ("zlibwapi.dll", Owner.ZLIB),
        ("VCRUNTIME140_1.dll", Owner.VISUAL_CPP),
        ("libcudf.so", Owner.GPU_PROGRAM),
        ("libGL.so.1", Owner.SYSTEM),
        ("libopenblas.so.0", Owner.SYSTEM),
    ],
)
def test_a_file_name_identifies_the_component(file_name: str, owner: Owner) -> None:
    assert owner_of(file_name) is owner


@pytest.mark.parametrize(
    ("file_name", "span"),
    [
        ("libcudart.so.11.0", "CUDA 11.0 to 11.8"),
        ("cudart64_110.dll", "CUDA 11.0 to 11.8"),
        ("cudart64_101.dll", "CUDA 10.1"),
        ("libcublasLt.so.11", "CUDA 11.0 to 11.8"),
        ("libcublasLt.so.10", "CUDA 10.1 to 10.2"),
        ("libcusolver.so.10", "CUDA 10.1 to 11.0"),
        ("libcusolver.so.11", "CUDA 11.1 to 12.9"),
        ("libcudart.so.7.5", "CUDA 7.5"),
        ("cublas64_75.dll", "CUDA 7.5"),
        ("libnvrtc-builtins.so.11.1", "CUDA 11.1"),
        ("libcupti.so.9.0", "CUDA 9.0"),
        ("libnppc.so.10", "CUDA 10.1 to 10.2"),
        ("libnccl.so.2", "None"),
        ("libcusparseLt.so.0", "None"),
        ("libcudart.so", "None"),
    ],
)
def test_a_number_belongs_to_the_name_and_stands_for_toolkits(file_name: str, span: str) -> None:
    assert str(span_of(KNOWLEDGE, file_name)) == span


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("span", "shortly"),
    [
        (Span(CudaVersion(11, 0), CudaVersion(11, 8)), "CUDA 11"),
        (Span(CudaVersion(10, 1), CudaVersion(10, 1)), "CUDA 10.1"),
        (Span(CudaVersion(10, 1), CudaVersion(10, 2)), "CUDA 10.1 to 10.2"),
        (Span(CudaVersion(10, 1), CudaVersion(13, 5)), None),
    ],
)
def test_a_span_is_named_by_its_major_where_that_is_enough(span: Span, shortly: str | None) -> None:
    assert span.shortly == shortly


def test_names_without_a_number_are_links_of_an_installer() -> None:
    assert is_plain("libcublas.so")
    assert not is_plain("libcublas.so.12")
    assert stem_of("libcudart.so.12") == stem_of("cudart64_110.dll") == "cudart"
    assert cudnn_major("libcudnn.so") is None


MISSING = "ImportError: {}: cannot open shared object file: No such file or directory"
TENSORFLOW = "dso_loader.cc:64] Could not load dynamic library '{0}'; dlerror: {0}: cannot open shared object file"


@pytest.mark.parametrize(
    ("text", "causes"),
    [
        (MISSING.format("libcudart.so.12"), ["missing", "not-on-path", "of-other-cuda"]),
        (MISSING.format("libcudart.so.12") + "\nCUDA: 12.4", ["not-on-path"]),
        (MISSING.format("libcudart.so.12") + "\nCUDA: 11.8", ["of-other-cuda"]),
        (MISSING.format("libcudart.so.12") + "\n/usr/local/cuda-12.1/bin/nvcc", ["not-on-path"]),
        (
            MISSING.format("libcudart.so.12") + "\n| NVIDIA-SMI 550.54 Driver Version: 550.54 CUDA Version: 12.4 |",
            ["missing", "not-on-path", "of-other-cuda"],
        ),
        (MISSING.format("libcusolver.so.11"), ["missing", "not-on-path", "of-other-cuda"]),
        (
            "Successfully opened dynamic library libcudart.so.10.1\n" + TENSORFLOW.format("libcublas.so.10"),
            ["part-missing"],
        ),
        (
            "Failed to load library libonnxruntime_providers_cuda.so with error: "
            + MISSING.format("libcublasLt.so.11"),
            ["of-other-cuda", "missing", "not-on-path"],
        ),
    ],
)
def test_the_toolkit_that_is_there_decides_why_it_is_not_found(text: str, causes: list[str]) -> None:
    assert causes_of(text) == [f"cuda-library-{it}" for it in causes]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "given", "causes"),
    [
        (MISSING.format("libcuda.so.1"), Given(), []),
        ("Could not load dynamic library 'nvcuda.dll'; dlerror: nvcuda.dll not found", Given(), []),
        (MISSING.format("libcudf.so"), Given(), []),
        (MISSING.format("libbitsandbytes_cuda118.so"), Given(), []),
        (MISSING.format("libGL.so.1"), Given(), ["system-library-missing"]),
        (MISSING.format("libc10.so"), Given(), ["pytorch-library-missing"]),
        (MISSING.format("libnvinfer.so.8"), Given(), ["tensorrt-missing"]),
        (TENSORFLOW.format("libnvinfer.so.7"), Given(), ["tensorrt-not-found"]),
        (
            "/a/libcublas.so.11: undefined symbol: cublasLtGetStatusString, version libcublasLt.so.11",
            Given(),
            [],
        ),
        (
            MISSING.format("libcublas.so.12"),
            Given(platform=Platform.LINUX_AARCH64, packages={"torch": "2.5.0"}),
            ["jetson-libraries", "cuda-library-missing"],
        ),
    ],
)
def test_the_owner_of_a_library_decides_the_advice(text: str, given: Given, causes: list[str]) -> None:
    assert causes_of(text, given) == causes


IMPORT = 'File "/env/lib/python3.10/site-packages/{0}/__init__.py", line 3, in <module>\n'


@pytest.mark.parametrize(
    ("package", "packages", "causes"),
    [
        ("flash_attn", {}, ["extension-of-other-cuda", "cuda-library-missing"]),
        ("flash_attn", {"torch": "2.1.0+cu118"}, ["extension-of-other-cuda"]),
        ("flash_attn", {"torch": "2.1.0+cu121"}, ["cuda-library-missing"]),
        ("torch", {}, ["cuda-library-missing"]),
        ("cupy", {}, ["cuda-library-missing"]),
    ],
)
def test_an_extension_has_to_be_of_the_cuda_of_its_framework(
    package: str, packages: Mapping[str, str], causes: list[str]
) -> None:
    text = IMPORT.format(package) + MISSING.format("libcudart.so.12")
    assert causes_of(text, Given(packages=packages))[: len(causes)] == causes


def test_a_gpu_that_the_needed_cuda_does_not_know_is_mentioned() -> None:
    given = Given(capabilities=(ComputeCapability(8, 6),), platform=Platform.WIN_64)
    answer = words_of("Could not load dynamic library 'cudart64_101.dll'; dlerror: cudart64_101.dll not found", given)
    assert "for CUDA 11.1 or newer" in answer
    assert "capability 8.6" in answer


def test_the_versions_that_want_a_library_are_those_of_the_matrix() -> None:
    case = case_of("")
    assert versions_built_for(case, "tensorflow", lambda cuda: cuda == CudaVersion(10, 1)) == "2.1 to 2.3"
    assert versions_built_for(case, "tensorflow", lambda cuda: cuda == CudaVersion(9, 9)) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("CUDA: 11.2", ["11.2"]),
        ("Cuda compilation tools, release 12.4, V12.4.131", ["12.4"]),
        ("LD_LIBRARY_PATH: /usr/local/cuda-9.0/lib64", ["9.0"]),
        ("Download and install CUDA 10.0 from this URL", []),
        ("TensorFlow was built for CUDA 11.8", []),
        ("Driver Version: 550.54.14   CUDA Version: 12.4", []),
    ],
)
def test_a_toolkit_is_what_is_installed(text: str, found: list[str]) -> None:
    assert [str(it) for it in toolkits(case_of(text))] == found


def test_opened_libraries_determine_the_toolkit_together() -> None:
    opened = "Successfully opened dynamic library {}\n"
    text = opened.format("libcudart.so.11.0") + opened.format("libcusolver.so.10")
    assert str(opened_span(case_of(text))) == "CUDA 11.0"


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("RuntimeError: Library libcublas.so.12 is not found or cannot be loaded", "ctranslate2"),
        (TENSORFLOW.format("libcudart.so.11.0"), "tensorflow"),
        ("jax==0.4.1\n" + TENSORFLOW.format("libcudart.so.11.0"), "jax"),
        ("@tensorflow/tfjs-node-gpu\n" + TENSORFLOW.format("libcudart.so.11.0"), "tfjs"),
        ("CuPy failed to load libnvrtc.so.12: OSError: libnvrtc.so.12: cannot open shared object file", "cupy"),
        (IMPORT.format("torch") + MISSING.format("libcudart.so.12"), "pytorch"),
        ("./program: error while loading shared libraries: " + MISSING.format("libcudart.so.12"), None),
    ],
)
def test_the_line_or_its_surroundings_show_what_needs_the_library(text: str, program: str | None) -> None:
    case = case_of(text)
    assert program_of(case, case.of("library-missing")) == program


def test_the_last_package_of_a_traceback_is_the_one_that_failed() -> None:
    case = case_of(IMPORT.format("vllm") + IMPORT.format("nixl_ep") + MISSING.format("libcudart.so.13"))
    assert importer_of(case, case.of("library-missing")) == "nixl_ep"


TRACE = """\
 1: file=libnvJitLink.so.12 [0];  needed by /env/lib/python3.11/site-packages/nvidia/cusparse/lib/libcusparse.so.12 [0]
 1:  search path={directory}  ({by})
 1:   trying file={directory}/libnvJitLink.so.12
 1: file=libnvJitLink.so.12 [0];  generating link map
"""


@pytest.mark.parametrize(
    ("directory", "by", "causes"),
    [
        ("/usr/local/cuda-12.1/lib64", "LD_LIBRARY_PATH", ["library-shadowed"]),
        ("/usr/local/cuda-12.1/lib64", "RUNPATH from file /env/lib/libcusparse.so.12", []),
        ("/env/lib/python3.11/site-packages/nvidia/nvjitlink/lib", "LD_LIBRARY_PATH", []),
    ],
)
def test_a_trace_of_the_loader_shows_a_copy_that_shadows(directory: str, by: str, causes: list[str]) -> None:
    assert causes_of(TRACE.format(directory=directory, by=by)) == causes


@pytest.mark.parametrize(
    ("part", "number", "version"),
    [
        ("CUDA", "12010", "12.1"),
        ("cuSPARSE", "12002", "12.0.2"),
        ("cuBLAS", "120103", "12.1.3"),
        ("cuFFT", "11008", "11.0.8"),
        ("cuPTI", "18", "18"),
    ],
)
def test_a_number_is_shown_as_the_version_that_it_is(part: str, number: str, version: str) -> None:
    text = f"Found {part} version {number}, but JAX was built against version {number}, which is newer."
    assert f"built against {part} {version} and finds {version}:" in words_of(text)


CUDNN_8 = "Could not load library libcublasLt.so.12. Error: " + MISSING.format("libcublasLt.so.12") + "\n"


@pytest.mark.parametrize(
    ("beside", "causes"),
    [
        ("", ["cuda-library-missing", "cudnn-for-other-cuda"]),
        ("jax 0.4.6", ["cudnn-for-other-cuda", "cuda-library-missing"]),
        ("Cuda compilation tools, release 12.2, V12.2.1", ["cuda-library-not-on-path"]),
        ("Cuda compilation tools, release 11.8, V11.8.1", ["cudnn-for-other-cuda", "cuda-library-missing"]),
    ],
)
def test_libraries_that_cudnn_opens_show_its_cuda(beside: str, causes: list[str]) -> None:
    assert causes_of(CUDNN_8 + beside) == causes


@pytest.mark.parametrize(
    ("package", "cuda"), [("mxnet-cu92", "9.2"), ("dgl-cu113", "11.3"), ("cuml-cu12", "12"), ("cupy-cuda101", "10.1")]
)
def test_a_package_may_have_its_cuda_in_its_name(package: str, cuda: str) -> None:
    assert f"needs the libraries of CUDA {cuda}." in words_of(f"{package}\n" + MISSING.format("libcublas.so.10"))


def test_rapids_is_mostly_of_another_major() -> None:
    assert causes_of("import cuml\n" + MISSING.format("libcudart.so"))[0] == "cuda-library-of-other-cuda"


def test_a_list_of_conda_packages_gives_the_toolkit() -> None:
    assert [
        str(it) for it in toolkits(case_of("cudatoolkit               11.7.0              hd8887f6_10    conda-forge"))
    ] == ["11.7"]
