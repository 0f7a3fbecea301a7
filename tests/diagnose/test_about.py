"""Which framework a case is about; facts about one framework never appear in findings about another."""

from __future__ import annotations

import io

import pytest

from envsolve.app.explain.explaining import ExplainRequest, explain
from envsolve.app.status.results import Explanation
from envsolve.model.host import Platform
from envsolve.model.versions import CudaVersion
from tests.diagnose.facts.code_cases import Known, case_of

NOT_COMPILED = "AssertionError: Torch not compiled with CUDA enabled"
FLOW = "2024-01-01: W tensorflow/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'"
UNNAMED = "CUDA error: no kernel image is available for execution on the device"


def known(**packages: str) -> Known:
    return Known(packages=packages)


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        pytest.param(UNNAMED, known(tensorflow="2.15.0"), "tensorflow", id="the text names none"),
        pytest.param(NOT_COMPILED, known(tensorflow="2.15.0"), "pytorch", id="the text names only another"),
        pytest.param(f"{FLOW}\n{NOT_COMPILED}", known(tensorflow="2.15.0"), "tensorflow", id="both fail"),
        pytest.param(f"{FLOW}\n{NOT_COMPILED}", known(torch="2.6.0"), "pytorch", id="both fail, the other is given"),
        pytest.param(f"{NOT_COMPILED}\njax 0.4.30", known(jax="0.4.30"), "jax", id="it is mentioned"),
        pytest.param(FLOW, known(torch="2.6.0", tensorflow="2.15.0"), "tensorflow", id="an environment with both"),
    ],
)
def test_given_facts_choose_among_those_in_the_text(text: str, given: Known, expected: str) -> None:
    assert case_of(text, given).framework == expected


def test_the_cuda_of_a_report_is_that_of_the_framework_that_it_names() -> None:
    case = case_of("CUDA used to build PyTorch: 12.1\ntensorflow 2.15.0")
    assert case.cuda_of("pytorch") == CudaVersion(12, 1)
    assert case.cuda_of("tensorflow") == CudaVersion(12, 2)


def test_fields_of_another_framework_leave_nothing_of_the_first() -> None:
    case = case_of(FLOW, Known(packages={"tensorflow": "2.15.0"}))
    assert case.fields_of("pytorch") == {"framework": "PyTorch", "name": "pytorch", "version": "", "built_cuda": ""}


def explained(text: str, request: ExplainRequest) -> Explanation:
    return explain(io.BytesIO(text.encode()), request, {})


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "about"),
    [
        (NOT_COMPILED, "pytorch"),
        ("Unknown backend: 'gpu' requested", "jax"),
        ("Num GPUs Available:  0", "tensorflow"),
        ("Specified provider 'CUDAExecutionProvider' is not in available provider names.", "onnxruntime"),
    ],
)
@pytest.mark.parametrize("given", ["pytorch==2.6.0", "tensorflow==2.15.0", "cupy==13.4.0"])
def test_no_finding_gives_a_version_to_a_framework_that_it_is_not_of(text: str, about: str, given: str) -> None:
    request = ExplainRequest(gpus=("8.6",), platform=Platform.LINUX_64, frameworks=(given,))
    (finding, *_) = explained(text, request).findings
    name, _, version = given.partition("==")
    assert finding.about == (name if name == about else about)
    assert name == about or version not in f"{finding.title} {finding.cause}"
    assert any(f"--framework {about}" in it or f"'{about}" in it for it in finding.commands)


def test_a_linux_library_implies_linux_whatever_platform_is_given() -> None:
    missing = "libcudart.so.11.0: cannot open shared object file: No such file or directory"
    answer = explained(missing, ExplainRequest(platform=Platform.WIN_64, frameworks=("tensorflow==2.10.0",)))
    (note,) = answer.notes
    assert all(word in note.text for word in ("libcudart.so.11.0", "win-64", "linux-64"))
    assert "DLL" not in answer.findings[0].fix
    assert explained("cudart64_110.dll not found", ExplainRequest(platform=Platform.WIN_64)).notes == ()


TOO_NEW = (
    "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
    "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90."
)
TOO_OLD = (
    "Found GPU0 Tesla P100 which is of cuda capability 6.0. PyTorch no longer supports this GPU because it is too old."
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "asked", "expected"),
    [
        pytest.param(TOO_NEW, ExplainRequest(frameworks=("vllm",)), "envsolve --framework vllm --gpu 12.0", id="given"),
        pytest.param(
            f"INFO vllm serve\n{TOO_NEW}", ExplainRequest(), "envsolve --framework vllm --gpu 12.0", id="named"
        ),
        pytest.param(
            f"vllm: Module Not Found\n{TOO_NEW}",
            ExplainRequest(),
            "envsolve --framework pytorch --gpu 12.0",
            id="absent",
        ),
        pytest.param(TOO_NEW, ExplainRequest(), "envsolve --framework pytorch --gpu 12.0", id="PyTorch alone"),
        pytest.param(
            f"INFO vllm serve\n{TOO_NEW}",
            ExplainRequest(platform=Platform.WIN_64),
            "envsolve --framework pytorch --gpu 12.0 --platform win-64",
            id="no vLLM for Windows",
        ),
        pytest.param(TOO_OLD, ExplainRequest(frameworks=("vllm",)), None, id="no vLLM for the GPU"),
    ],
)
def test_a_package_that_requires_one_build_is_replaced_as_a_whole(
    text: str, asked: ExplainRequest, expected: str | None
) -> None:
    commands = explained(text, asked).findings[0].commands
    assert [it for it in commands if it.startswith("envsolve")] == ([] if expected is None else [expected])
    assert any(it.startswith("pip install torch==") for it in commands) == (
        expected is not None and "vllm" not in expected
    )
