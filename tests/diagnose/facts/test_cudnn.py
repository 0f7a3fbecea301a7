"""Decisions of the rules on cuDNN: which version is needed, which is installed, and why it fails on which machine."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Given
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.versions import DriverVersion
from tests.diagnose.facts.library_cases import causes_of, words_of

LOADED = "Loaded runtime CuDNN library: {} but source was compiled with: {}."


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("number", "version"),
    [
        ("8700", "8.7.0"),
        ("8907", "8.9.7"),
        ("90100", "9.1.0"),
        ("91002", "9.10.2"),
        ("7005", "7.0.5"),
        ("6021", "6.0.21"),
        ("5110", "5.1.10"),
        ("8.0.4", "8.0.4"),
        ("7.6", "7.6"),
    ],
)
def test_a_number_is_read_as_cudnn_counts(number: str, version: str) -> None:
    assert words_of(LOADED.format(number, "1.0")).startswith(f"cuDNN {version} is loaded")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("found", "built", "cause"),
    [
        ("8.0.4", "8.1.0", "cudnn-too-old"),
        ("9.10.1", "9.13.1", "cudnn-too-old"),
        ("7.5.0", "7.6.5", "cudnn-too-old"),
        ("8.9.2", "9.1.0", "cudnn-other-major-loaded"),
        ("9.1.0", "8.9.2", "cudnn-other-major-loaded"),
        ("8.9.7", "8.6.0", "cudnn-newer-than-built"),
    ],
)
def test_the_older_version_decides(found: str, built: str, cause: str) -> None:
    answer = words_of(LOADED.format(found, built))
    assert causes_of(LOADED.format(found, built)) == [cause]
    assert answer.startswith(f"cuDNN {found} is loaded")
    assert built in answer


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("found", "built", "given", "command"),
    [
        ("8.0.4", "8.1.0", Given(), 'pip install "nvidia-cudnn-cu11>=8.1,<9"'),
        ("8.5.0", "8.6.0", Given(packages={"tensorflow": "2.12.0"}), 'pip install "nvidia-cudnn-cu11>=8.6,<9"'),
        ("8.9.2", "9.1.0", Given(), 'pip install "nvidia-cudnn-cu12>=9.1,<10"'),
        (
            "9.1.0",
            "9.8.0",
            Given(packages={"jax": "0.6.0", "jax-cuda12-plugin": "0.6.0"}),
            "nvidia-cudnn-cu12>=9.8,<10",
        ),
        ("7.5.0", "7.6.5", Given(), None),
        ("8.7.0", "8.8.0", Given(), None),
    ],
)
def test_the_package_is_for_the_cuda_of_the_build(found: str, built: str, given: Given, command: str | None) -> None:
    answer = words_of(LOADED.format(found, built), given)
    assert (command or "Install cuDNN") in answer
    assert ('pip install "' in answer) == (command is not None)


def test_the_minimum_of_jax_counts_before_the_version_it_was_built_with() -> None:
    text = (
        "Outdated cuDNN installation found.\nVersion JAX was built against: 8907\nMinimum supported: 9100\n"
        "Installed version: 8907"
    )
    assert causes_of(text) == ["cudnn-other-major-loaded"]
    assert "compiled with cuDNN 8.9.7, and its own check asks for 9.1.0" in words_of(text)


MISSING = (
    "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot open shared object file"
)


@pytest.mark.parametrize(
    ("beside", "causes"),
    [
        ("", ["cudnn-missing", "cudnn-of-other-major", "cudnn-not-on-path"]),
        ("libcudnn_ops.so.9 (libc6,x86-64) => /lib/libcudnn_ops.so.9", ["cudnn-of-other-major"]),
        ("/usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.2", ["cudnn-not-on-path", "cudnn-missing"]),
        ("cuDNN: 9.1.0", ["cudnn-of-other-major"]),
        (
            "TensorFlow requires cuDNN 7.6, install cuDNN 7.6",
            ["cudnn-missing", "cudnn-of-other-major", "cudnn-not-on-path"],
        ),
    ],
)
def test_the_installed_cudnn_decides_why_it_is_not_found(beside: str, causes: list[str]) -> None:
    assert causes_of(f"{MISSING}\n{beside}") == causes


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9}", "cuDNN 9"),
        ("Could not locate cudnn_ops_infer64_8.dll. Please make sure it is in your library path!", "cuDNN 8"),
        ("- Could not find cuDNN 6.", "cuDNN 6"),
        ("The third-party dynamic library (cudnn64_7.dll) that Paddle depends on is not configured", "cuDNN 7"),
    ],
)
def test_a_file_name_gives_the_required_major(text: str, wanted: str) -> None:
    assert wanted in words_of(text).splitlines()[0]


@pytest.mark.parametrize(
    ("text", "package"),
    [
        ("libcudnn.so.9: cannot open shared object file", 'pip install "nvidia-cudnn-cu12==9.*"'),
        (
            "libcudnn.so.9: cannot open shared object file\nlibcublas.so.13: cannot open shared object file",
            'pip install "nvidia-cudnn-cu13==9.*"',
        ),
        (
            "libcudnn.so.8: cannot open shared object file\nCUDA: 11.2",
            'pip install "nvidia-cudnn-cu11==8.*"',
        ),
        ("libcudnn.so.7: cannot open shared object file", None),
    ],
)
def test_the_package_is_for_the_cuda_beside_it(text: str, package: str | None) -> None:
    assert (package or "Install cuDNN") in words_of(text)
    assert ('pip install "' in words_of(text)) == (package is not None)


@pytest.mark.parametrize(
    ("code", "causes"),
    [
        ("126", ["zlib-missing", "cudnn-incomplete", "cudnn-missing"]),
        ("127", ["cudnn-mixed"]),
    ],
)
def test_the_error_number_of_windows_explains_a_broken_dll(code: str, causes: list[str]) -> None:
    assert causes_of(f"Could not load library cudnn_cnn_infer64_8.dll. Error code {code}") == causes


EXECUTION = "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"
HANDLE = "tensorflow/stream_executor/cuda/cuda_dnn.cc:334] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR"
STARTED = "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "given", "first"),
    [
        (EXECUTION, Given(), "cudnn-broken"),
        (
            EXECUTION,
            Given(capabilities=(ComputeCapability(8, 6),), packages={"torch": "1.5.1+cu101"}),
            "cudnn-gpu-too-new",
        ),
        (
            EXECUTION + "\ncuDNN: 9.14.0",
            Given(capabilities=(ComputeCapability(6, 1),)),
            "cudnn-gpu-too-old",
        ),
        (
            STARTED,
            Given(driver=DriverVersion.parse("510.47"), packages={"torch": "2.2.0+cu121"}, platform=Platform.LINUX_64),
            "cudnn-driver-too-old",
        ),
        (STARTED, Given(), "cudnn-broken"),
        (HANDLE, Given(), "cudnn-out-of-memory"),
        ("Possibly insufficient driver version: 384.130.0", Given(), "cudnn-driver-too-old"),
        ("DNN library is not found.", Given(), "cudnn-other-copy"),
        ("RuntimeError: Unable to find a valid cuDNN algorithm to run convolution", Given(), "cudnn-out-of-memory"),
        ("RuntimeError: GET was unable to find an engine to execute this computation", Given(), "cudnn-broken"),
        ("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if", Given(), "cudnn-call-not-supported"),
    ],
)
def test_a_status_is_ranked_by_machine_and_build(text: str, given: Given, first: str) -> None:
    assert causes_of(text, given)[0] == first


def test_a_plan_that_is_rejected_is_harmless() -> None:
    text = "UserWarning: Plan failed with a cudnnException: cudnn_status: CUDNN_STATUS_NOT_SUPPORTED"
    assert causes_of(text) == ["cudnn-plan-rejected"]
    assert causes_of(f"{text}\n{EXECUTION}")[0] == "cudnn-broken"


def test_pytorch_has_a_cudnn_of_its_own_that_another_one_hides() -> None:
    text = "cuDNN version incompatibility: PyTorch was compiled against (8, 3, 2) but linked against (8, 0, 3)"
    assert "Remove the directory with cuDNN 8.0.3 from LD_LIBRARY_PATH: PyTorch contains cuDNN 8.3.2." in words_of(text)
    windows = words_of(text, Given(platform=Platform.WIN_64))
    assert "Remove the directory with cuDNN 8.0.3 from PATH" in windows
    assert "unset" not in windows
    assert 'pip install "' not in windows


@pytest.mark.parametrize(("file", "there"), [("libcudnn_ops.so.9", "8"), ("libcudnn_ops_infer.so.8", "9")])
def test_of_ctranslate2_a_release_that_needs_no_cudnn_is_named(file: str, there: str) -> None:
    text = f"import faster_whisper\n{file}: cannot open shared object file\n/lib/libcudnn.so.{there}"
    assert 'pip install --upgrade "ctranslate2>=4.6.3"' in words_of(text)


def test_a_cudnn_that_is_installed_beside_the_loaded_one_is_not_installed_again() -> None:
    loaded = "Loaded runtime CuDNN library: 9.4.0 but source was compiled with: 9.8.0."
    assert 'pip install "' not in words_of(f"jax {loaded}\nnvidia-cudnn-cu12: 9.10.0.56")
    assert 'pip install "nvidia-cudnn-cu12>=9.8,<10"' in words_of(f"jax {loaded}\nnvidia-cudnn-cu12: 9.7.1.26")


def test_a_known_gpu_and_build_exclude_contradicting_causes() -> None:
    given = Given(capabilities=(ComputeCapability(8, 6),), packages={"torch": "1.5.1+cu101"})
    assert {"cudnn-broken", "cudnn-without-code-for-gpu"} & {*causes_of(EXECUTION, given)} == set()
    new = Given(driver=DriverVersion.parse("580.65.06"), packages={"torch": "2.2.0+cu121"})
    assert "cudnn-driver-too-old" not in causes_of(STARTED, new)


def test_zlib_that_cudnn_needs_is_a_package_of_the_system() -> None:
    text = "ImportError: libcudnn_graph.so.9: libz.so.1: cannot open shared object file: No such file or directory"
    assert causes_of(text) == ["zlib-missing-on-linux"]
    assert "sudo apt install zlib1g" in words_of(text)
