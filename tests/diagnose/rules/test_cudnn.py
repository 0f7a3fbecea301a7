"""What the rules on cuDNN decide: which version is wanted and which is there, what makes it fail on which machine."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Given
from envsolve.diagnose.rules.cudnn import version_text
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.versions import DriverVersion
from tests.diagnose.rules.library_cases import causes_of, fields_of


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
        ("9, 1, 0", "9.1.0"),
        ("8.0.4", "8.0.4"),
        ("7.6", "7.6"),
    ],
)
def test_a_number_is_read_as_cudnn_counts(number: str, version: str) -> None:
    assert version_text(number) == version


LOADED = "Loaded runtime CuDNN library: {} but source was compiled with: {}."


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
def test_which_is_the_older_decides(found: str, built: str, cause: str) -> None:
    fields = fields_of(LOADED.format(found, built))
    assert causes_of(LOADED.format(found, built)) == [cause]
    assert (fields["found"], fields["built"]) == (found, built)


@pytest.mark.parametrize(
    ("found", "built", "newer"),
    [
        ("8.0.4", "8.1.0", "pip: 'nvidia-cudnn-cu12>=8.1.0,<9', conda: 'cudnn>=8.1,<9'"),
        ("7.5.0", "7.6.5", "conda: 'cudnn>=7.6,<8'"),
    ],
)
def test_a_package_is_named_only_where_there_is_one(found: str, built: str, newer: str) -> None:
    assert fields_of(LOADED.format(found, built))["get_newer"] == newer


def test_the_least_that_jax_takes_counts_before_what_it_was_built_with() -> None:
    text = (
        "Outdated cuDNN installation found.\nVersion JAX was built against: 8907\nMinimum supported: 9100\n"
        "Installed version: 8907"
    )
    assert causes_of(text) == ["cudnn-other-major-loaded"]
    assert fields_of(text)["built"] == "9.1.0"


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
def test_the_cudnn_that_is_there_decides_why_it_is_not_found(beside: str, causes: list[str]) -> None:
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
def test_a_file_name_tells_the_major_that_is_wanted(text: str, wanted: str) -> None:
    assert fields_of(text)["wanted_cudnn"] == wanted


@pytest.mark.parametrize(
    ("text", "package"),
    [
        ("libcudnn.so.9: cannot open shared object file", "pip: 'nvidia-cudnn-cu12==9.*', conda: cudnn=9.*"),
        (
            "libcudnn.so.9: cannot open shared object file\nlibcublas.so.13: cannot open shared object file",
            "pip: 'nvidia-cudnn-cu13==9.*', conda: cudnn=9.*",
        ),
        (
            "libcudnn.so.8: cannot open shared object file\nCUDA: 11.2",
            "pip: 'nvidia-cudnn-cu11==8.*', conda: cudnn=8.*",
        ),
        ("libcudnn.so.7: cannot open shared object file", None),
    ],
)
def test_the_package_is_for_the_cuda_beside_it(text: str, package: str | None) -> None:
    assert fields_of(text).get("get_cudnn") == package


@pytest.mark.parametrize(
    ("code", "causes"),
    [
        ("126", ["zlib-missing", "cudnn-incomplete", "cudnn-missing"]),
        ("127", ["cudnn-mixed"]),
    ],
)
def test_windows_number_tells_what_is_wrong_with_a_dll(code: str, causes: list[str]) -> None:
    assert causes_of(f"Could not load library cudnn_cnn_infer64_8.dll. Error code {code}") == causes


EXECUTION = "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"
HANDLE = "tensorflow/stream_executor/cuda/cuda_dnn.cc:334] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR"
STARTED = "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"


@pytest.mark.parametrize(
    ("text", "given", "first"),
    [
        (EXECUTION, Given(), "cudnn-without-code-for-gpu"),
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
        (STARTED, Given(), "cudnn-out-of-memory"),
        (HANDLE, Given(), "cudnn-out-of-memory"),
        ("Possibly insufficient driver version: 384.130.0", Given(), "cudnn-driver-too-old"),
        ("DNN library is not found.", Given(), "cudnn-other-copy"),
        ("RuntimeError: Unable to find a valid cuDNN algorithm to run convolution", Given(), "cudnn-out-of-memory"),
        ("RuntimeError: GET was unable to find an engine to execute this computation", Given(), "cudnn-other-copy"),
        ("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if", Given(), "cudnn-call-not-supported"),
    ],
)
def test_a_status_is_ranked_by_machine_and_build(text: str, given: Given, first: str) -> None:
    assert causes_of(text, given)[0] == first


def test_a_plan_that_is_rejected_is_harmless() -> None:
    text = "UserWarning: Plan failed with a cudnnException: cudnn_status: CUDNN_STATUS_NOT_SUPPORTED"
    assert causes_of(text) == ["cudnn-plan-rejected"]
    assert causes_of(f"{text}\n{EXECUTION}")[0] == "cudnn-without-code-for-gpu"


@pytest.mark.parametrize(
    "text",
    [
        "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
        "OSError: (External)  Cudnn error, CUDNN_STATUS_VERSION_MISMATCH",
        "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED",
        "Could not load symbol cudnnGetLibConfig",
    ],
)
def test_parts_of_two_installations_are_told_as_such(text: str) -> None:
    assert causes_of(text) == ["cudnn-mixed"]


def test_pytorch_has_a_cudnn_of_its_own_that_another_one_hides() -> None:
    text = "cuDNN version incompatibility: PyTorch was compiled against (8, 3, 2) but linked against (8, 0, 3)"
    fields = fields_of(text)
    assert (fields["bundled"], fields["get_newer"], fields["found"]) == ("PyTorch", "", "8.0.3")
