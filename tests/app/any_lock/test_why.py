"""Questions about an answer: what it has and why, and what else would fit."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Envsolve

PASCAL = ("-f", "pytorch", "--gpu", "GTX 1080 Ti", "--driver", "580.65.06")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("pytorch", "pytorch 2.13.0 (conda-forge, cuda129)", "it contains sm_60, which runs on compute capability 6.1"),
        ("torch", "pytorch 2.13.0 (conda-forge, cuda129)", "the newest, 2.15.0, does not fit"),
        ("cuda", "CUDA 12.9", "pytorch 2.13.0 (conda-forge, cuda129) is built for CUDA 12.9"),
        ("cuda-version", "CUDA 12.9", "is built for CUDA 12.9"),
        ("cudnn", "cuDNN 9.10.2.21", "cuDNN 9.11 has no code for compute capability 6.1"),
        ("libcudnn", "cuDNN 9.10.2.21", "needs cuDNN"),
        ("python", "Python 3.14", "was built for Python 3.10, 3.11, 3.12, 3.13, 3.14"),
        ("driver", "NVIDIA driver 525.60.13 or newer", "CUDA 12.9 needs NVIDIA driver 525.60.13"),
        ("owner", "conda", "uses CUDA from its conda channel"),
    ],
)
def test_why_gives_the_value_and_its_reasons(name: str, value: str, says: str, envsolve: Envsolve) -> None:
    result = envsolve(*PASCAL, "--why", name)
    assert result.code == 0
    assert result.out.startswith(f"{name} is {value}\n")
    assert says in result.out
    assert result.err == ""


def test_a_cpu_answer_has_no_cuda(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "none", "--why", "cuda", "--why", "cudnn", "--why", "driver")
    assert result.out.count(" is none\n") == 3
    assert "CPU environment" in result.out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("other", "fits", "says"),
    [
        ("pytorch==2.15", False, "pytorch 2.15.0 (pypi, cu132) has no code for compute capability 6.1"),
        ("pytorch==2.14.1", True, "the answer has pytorch 2.13.0 (conda-forge, cuda129), from the preferred source"),
        ("pytorch==2.5.1", True, "newest-framework chooses pytorch 2.13.0 (conda-forge, cuda129), which is newer"),
        ("pytorch==2.13.0", True, "the answer already contains it"),
        ("cuda==13", False, "CUDA 13.5 has no code for compute capability 6.1"),
        ("cuda>=12.0,<12.5", True, "also fits"),
        ("python==3.7", True, "also fits"),
        ("python==3.99", False, "was built for Python"),
        ("jax", True, "jax was not requested; jax 0.10.2 (conda-forge, cuda129) fits with the rest"),
        ("jax==0.12.*", True, "jax was not requested"),
    ],
)
def test_why_not_solves_for_the_requested_value(other: str, fits: bool, says: str, envsolve: Envsolve) -> None:
    result = envsolve(*PASCAL, "--why-not", other)
    assert result.code == 0
    assert result.out.startswith(f"{other} {'fits' if fits else 'does not fit'}\n")
    assert says in result.out


def test_a_suggested_command_of_why_not_works(envsolve: Envsolve) -> None:
    output = envsolve(*PASCAL, "--why-not", "pytorch==2.14.1").out
    command = next(line.strip() for line in output.splitlines() if line.strip().startswith("envsolve "))
    words = command.replace("'GTX 1080 Ti'", "6.1").split()[1:]
    assert "torch==2.14.1+cu126" in envsolve(*words).out


def test_why_not_ignores_conflicting_bounds_of_the_request(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch<2.10", *PASCAL[2:], "--why-not", "pytorch==2.13.*")
    assert result.out.startswith("pytorch==2.13.* fits\n")


def test_sources_are_shown_on_request_and_always_in_json(envsolve: Envsolve) -> None:
    assert "[" not in envsolve(*PASCAL, "--why", "driver").out
    assert "525.60.13 or newer [" in envsolve(*PASCAL, "--why", "driver", "-v").out
    answer = json.loads(envsolve(*PASCAL, "--why", "driver", "--why-not", "pytorch==2.15", "--json").out)
    assert all(fact["source"] for fact in answer["why"][0]["facts"])
    (other,) = answer["why_not"]
    assert other["constraints"] == ["pytorch==2.15", "GeForce GTX 1080 Ti (6.1)"]
    assert other["hints"][0]["command"].startswith("envsolve --framework pytorch==2.14.1")


def test_an_impossible_request_is_refused_before_any_question(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch==2.15.*", "--gpu", "6.1", "--why", "cuda")
    assert result.code == 1
    assert result.err.startswith("error: gpu-not-supported")


@pytest.mark.thorough
def test_every_platform_is_answered(envsolve: Envsolve) -> None:
    result = envsolve(
        "-f", "pytorch", "--gpu", "8.6", "--platform", "linux-64", "--platform", "win-64", "--why", "python"
    )
    assert result.out.startswith("python on linux-64 is Python ")
    assert "\npython on win-64 is Python " in result.out


@pytest.mark.parametrize(
    ("question", "code"),
    [
        (("--why", "numpy"), "unknown-name"),
        (("--why", "jax"), "unknown-name"),
        (("--why-not", "pytroch==2.15"), "unknown-framework"),
        (("--why-not", "pytorch=="), "invalid-requirement"),
        (("--why-not", "cuda"), "invalid-requirement"),
    ],
)
def test_a_question_without_a_subject_is_one_clear_error(
    question: tuple[str, str], code: str, envsolve: Envsolve
) -> None:
    result = envsolve(*PASCAL, *question)
    assert result.code == 2
    assert result.err.startswith(f"error: {code}\n")
    assert result.out == ""


@pytest.mark.parametrize("other", ["sglang", "torchvision"])
def test_why_not_of_a_package_suggests_a_lock(other: str, envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "8.0", "--why-not", other)
    assert (result.code, f"--why-not cannot explain '{other}'\n" in result.err) == (2, True)
    assert f"  envsolve --framework pytorch --gpu 8.0 --format requirements {other}\n" in result.err
    assert "matrix list" not in result.err


@pytest.mark.thorough
@pytest.mark.parametrize("other", ["cudnn>=9.11", "driver", "owner", "", "python=3.14"])
def test_a_question_that_cannot_be_answered_lists_those_that_can(other: str, envsolve: Envsolve) -> None:
    result = envsolve(*PASCAL, "--why-not", other)
    assert result.code == 2
    assert "a framework, CUDA or Python with a version" in result.err


@pytest.mark.thorough
def test_the_policy_is_blamed_and_not_the_source(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "8.6", "--prefer", "widest-gpu", "--why-not", "pytorch==2.13.0")
    assert "widest-gpu chooses pytorch 1.10.2 (conda-forge, cuda112)" in result.out
    assert "the preferred source" not in result.out


def test_the_newest_release_is_called_the_newest(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "8.9", "--source", "pypi", "--json", "--why", "pytorch")
    (why,) = json.loads(result.out)["why"]
    assert why["value"].startswith("pytorch 2.15.0")
    assert why["facts"][-1]["fact"] == "2.15.0 is the newest pytorch in the matrix for this target"


def test_only_the_framework_in_question_is_reported(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "-f", "jax", "--gpu", "8.6", "--why", "jaxlib", "--why-not", "jax==0.4.30")
    assert "the newest is 0.12.0.1: jax 0.12.0.1 (pypi, cuda13) also fits" in result.out
    assert "pytorch 2.15.0" not in result.out
    assert "jax 0.4.30 (pypi, cuda12) also fits; newest-framework chooses jax 0.10.2" in result.out


@pytest.mark.thorough
def test_the_cost_for_another_framework_is_reported(envsolve: Envsolve) -> None:
    result = envsolve("-f", "tensorflow", "-f", "pytorch", "--gpu", "8.6", "--why-not", "tensorflow==2.10.*")
    assert "tensorflow 2.10.0 (conda-forge, cuda112) also fits, with pytorch " in result.out
    assert " instead of 2.13.0" in result.out


def test_a_cpu_answer_has_no_cuda_to_change(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "none", "--why-not", "cuda==12")
    assert result.code == 2
    assert result.err.startswith("error: contradictory-options\n")


def test_questions_are_about_the_answer_common_to_all_platforms(envsolve: Envsolve) -> None:
    both = ("-f", "tensorflow", "--gpu", "8.6", "--platform", "linux-64", "--platform", "win-64")
    result = envsolve(*both, "--why", "tensorflow")
    assert "tensorflow on linux-64 is tensorflow 2.10.1 " in result.out
    assert "tensorflow on win-64 is tensorflow 2.10.1 " in result.out


def test_a_refusal_before_a_question_notes_the_date_of_the_matrix(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch==2.15.*", "--gpu", "6.1", "--why", "cuda")
    assert "note: based on the compatibility matrix of " in result.err
