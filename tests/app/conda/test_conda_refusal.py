import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.conda.conda_refusal import Unfit, conda_refusal, not_on_channels, sentences_in
from envsolve.lockfile.lock import RequestedSpec
from envsolve.model.conda import VirtualPackage
from envsolve.model.host import Platform
from envsolve.model.request import FrameworkRequest, Packages, Request
from envsolve.model.solution import Problem, Solution

_CONFLICTS = tomllib.loads((Path(__file__).parent / "conda_conflicts.toml").read_text(encoding="utf-8"))["conflict"]
_REQUESTED = (FrameworkRequest("tensorflow", SpecifierSet()),)


def _unfit(text: str, *entries: RequestedSpec) -> Unfit:
    problem = Problem(_REQUESTED, Platform.LINUX_64, (), cpu=False, python=None, cuda=None)
    return Unfit(problem, None, entries, (VirtualPackage("__cuda", "11.8"),), ("conda-forge",), text)


@pytest.mark.parametrize("case", _CONFLICTS, ids=[case["name"] for case in _CONFLICTS])
def test_a_conflict_is_reported_in_sentences(case: dict[str, object]) -> None:
    assert list(dict.fromkeys(sentences_in(str(case["text"])))) == case["sentences"]


def test_the_request_and_its_reason_come_before_requirements_of_packages() -> None:
    text = next(str(case["text"]) for case in _CONFLICTS if case["name"] == "a driver that is too old")
    specs = (
        RequestedSpec("cuda-version=12.9", "runs from NVIDIA driver 525.60.13 on"),
        RequestedSpec("numpy", "requested by somebody"),
    )
    error = conda_refusal(_unfit(text, *specs), Request(_REQUESTED))
    assert error.code == "conda-packages-conflict"
    assert error.cause == (
        "cuda-version=12.9: runs from NVIDIA driver 525.60.13 on",
        "__cuda=11.8: provided by the machine",
        "cuda-version 12.9 works only with __cuda >=12, which conflicts with the versions above",
    )
    every = [step.requirement for step in error.conflict]
    assert [it for it in every if "requires python" in it or "requires cuda-version" in it] == every[2:5]
    assert not any("numpy" in it for it in every)


def test_user_requirements_come_first_and_then_what_excludes_them() -> None:
    text = next(str(case["text"]) for case in _CONFLICTS if case["name"] == "a further package")
    entries = (
        RequestedSpec("tensorflow=2.14.0", "sm_86 runs on 8.6"),
        RequestedSpec("numpy >=2", "requested by the command line"),
    )
    assert conda_refusal(_unfit(text, *entries), Request(_REQUESTED)).cause == (
        "numpy >=2: requested by the command line",
        "tensorflow 2.14.0 requires tensorflow-base ==2.14.0 cuda118py311h0476658_0",
        "tensorflow-base 2.14.0 requires numpy >=1.23.5,<2.0a0, which is not available with the rest",
    )


def test_a_package_that_no_channel_has_is_named_as_the_user_spelled_it() -> None:
    text = "Cannot solve the request because of: No candidates were found for nosuchpackage >=3.\n"
    entries = RequestedSpec("nosuchpackage >=3", "requested by environment.yml")
    error = conda_refusal(_unfit(text, entries), Request(_REQUESTED))
    assert error.code == "conda-package-not-found"
    assert error.message == "conda-forge has no nosuchpackage >=3 for linux-64"
    assert error.cause == ("nosuchpackage >=3: requested by environment.yml",)


def test_a_channel_added_to_a_spec_is_not_shown_as_requested() -> None:
    text = 'Cannot solve the request because of: No candidates were found for python 3.15.*[channel="conda-forge"].\n'
    error = conda_refusal(_unfit(text, RequestedSpec("python=3.15", "the newest")), Request(_REQUESTED))
    assert error.message == "conda-forge has no python 3.15.* for linux-64"
    assert error.cause == ("python=3.15: the newest",)


def test_bounds_on_the_default_python_are_not_shown() -> None:
    text = (
        "Cannot solve the request because of: The following packages are incompatible\n"
        "├─ python 3.13.* cannot be installed because there are no viable options:\n"
        "│  └─ python 3.13.1 conflicts with any installable versions previously reported\n"
        '└─ the constraint python [build="^.*(_cpython|_cp3[0-9]+|h[0-9a-f]+_[0-9]+)$"] cannot be fulfilled\n'
    )
    error = conda_refusal(_unfit(text, RequestedSpec("python=3.13", "you required it")), Request(_REQUESTED))
    assert error.cause[0] == "python=3.13: you required it"
    assert any("no such python is standard CPython" in line for line in error.cause)
    assert "[build" not in "".join(error.cause)


@pytest.mark.parametrize(("file", "offered"), [("requirements.txt", True), ("environment.yml", False)])
def test_a_python_lock_is_offered_if_it_reads_the_same_files(file: str, offered: bool) -> None:
    request, problem = Request(_REQUESTED, packages=Packages(files=(file,))), _unfit("").problem
    stack = Solution(request, problem, Version("3.12"), None, None, None, None, (), ())
    error = not_on_channels(stack, ["conda-forge"], request)
    assert any("--format requirements" in (hint.command or "") for hint in error.hints) is offered


@pytest.mark.thorough
@given(st.text())
def test_any_message_of_rattler_is_reported(text: str) -> None:
    list(sentences_in(text))
    conda_refusal(_unfit(text), Request(_REQUESTED))
