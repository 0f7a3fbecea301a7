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
_ASKED = (FrameworkRequest("tensorflow", SpecifierSet()),)


def _unfit(text: str, *entries: RequestedSpec) -> Unfit:
    problem = Problem(_ASKED, Platform.LINUX_64, (), cpu=False, python=None, cuda=None)
    return Unfit(problem, None, entries, (VirtualPackage("__cuda", "11.8"),), ("conda-forge",), text)


@pytest.mark.parametrize("case", _CONFLICTS, ids=[case["name"] for case in _CONFLICTS])
def test_a_conflict_is_told_in_sentences(case: dict[str, object]) -> None:
    assert list(dict.fromkeys(sentences_in(str(case["text"])))) == case["sentences"]


def test_what_was_asked_is_told_with_its_reason_before_what_packages_require() -> None:
    text = next(str(case["text"]) for case in _CONFLICTS if case["name"] == "a driver that is too old")
    specs = (
        RequestedSpec("cuda-version=12.9", "runs from NVIDIA driver 525.60.13 on"),
        RequestedSpec("numpy", "requested by somebody"),
    )
    error = conda_refusal(_unfit(text, *specs), Request(_ASKED))
    assert error.code == "conda-packages-conflict"
    assert error.cause == (
        "cuda-version=12.9: runs from NVIDIA driver 525.60.13 on",
        "__cuda=11.8: provided by the machine",
        "cuda-version 12.9 works only with __cuda >=12, which conflicts with the versions above",
    )
    every = [step.requirement for step in error.conflict]
    assert [it for it in every if "requires python" in it or "requires cuda-version" in it] == every[2:5]
    assert not any("numpy" in it for it in every)


def test_what_a_person_requires_comes_first_and_then_what_excludes_it() -> None:
    text = next(str(case["text"]) for case in _CONFLICTS if case["name"] == "a further package")
    entries = (
        RequestedSpec("tensorflow=2.14.0", "sm_86 runs on 8.6"),
        RequestedSpec("numpy >=2", "requested by the command line"),
    )
    assert conda_refusal(_unfit(text, *entries), Request(_ASKED)).cause == (
        "numpy >=2: requested by the command line",
        "tensorflow 2.14.0 requires tensorflow-base ==2.14.0 cuda118py311h0476658_0",
        "tensorflow-base 2.14.0 requires numpy >=1.23.5,<2.0a0, which is not available with the rest",
    )


def test_a_package_that_no_channel_has_is_named_as_it_was_asked_for() -> None:
    text = "Cannot solve the request because of: No candidates were found for nosuchpackage >=3.\n"
    entries = RequestedSpec("nosuchpackage >=3", "requested by environment.yml")
    error = conda_refusal(_unfit(text, entries), Request(_ASKED))
    assert error.code == "conda-package-not-found"
    assert error.message == "conda-forge has no nosuchpackage >=3 for linux-64"
    assert error.cause == ("nosuchpackage >=3: requested by environment.yml",)


def test_the_channel_that_a_spec_is_held_to_is_not_told_as_if_it_had_been_asked_for() -> None:
    text = 'Cannot solve the request because of: No candidates were found for python 3.15.*[channel="conda-forge"].\n'
    error = conda_refusal(_unfit(text, RequestedSpec("python=3.15", "the newest")), Request(_ASKED))
    assert error.message == "conda-forge has no python 3.15.* for linux-64"
    assert error.cause == ("python=3.15: the newest",)


def test_how_the_usual_python_is_told_from_others_is_not_shown() -> None:
    text = (
        "Cannot solve the request because of: The following packages are incompatible\n"
        "├─ python 3.13.* cannot be installed because there are no viable options:\n"
        "│  └─ python 3.13.1 conflicts with any installable versions previously reported\n"
        '└─ the constraint python [build="^.*(_cpython|_cp3[0-9]+|h[0-9a-f]+_[0-9]+)$"] cannot be fulfilled\n'
    )
    error = conda_refusal(_unfit(text, RequestedSpec("python=3.13", "it was asked for")), Request(_ASKED))
    assert error.cause[0] == "python=3.13: it was asked for"
    assert any("no such python is standard CPython" in line for line in error.cause)
    assert "[build" not in "".join(error.cause)


@pytest.mark.parametrize(("file", "offered"), [("requirements.txt", True), ("environment.yml", False)])
def test_a_python_lock_is_offered_where_it_reads_the_same_files(file: str, offered: bool) -> None:
    request, problem = Request(_ASKED, packages=Packages(files=(file,))), _unfit("").problem
    stack = Solution(request, problem, Version("3.12"), None, None, None, None, (), ())
    error = not_on_channels(stack, ["conda-forge"], request)
    assert any("--format requirements" in (hint.command or "") for hint in error.hints) is offered


@given(st.text())
def test_whatever_rattler_says_is_told_somehow(text: str) -> None:
    list(sentences_in(text))
    conda_refusal(_unfit(text), Request(_ASKED))
