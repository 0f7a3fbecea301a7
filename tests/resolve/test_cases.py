"""Hosts and requests with the expected choices, as data in tests/cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tomli
import yaml
from packaging.specifiers import SpecifierSet

from tests.conftest import Envsolve

pytestmark = pytest.mark.usefixtures("shipped_matrix_is_read_once")
CASES = [
    case
    for path in sorted((Path(__file__).parents[1] / "cases").glob("*.toml"))
    for case in tomli.loads(path.read_text(encoding="utf-8"))["case"]
]

HOSTS = Path(__file__).parents[1] / "hosts"
CASE_KEYS = {"name", "framework", "gpu", "host", "source", "driver", "platform", "python", "cuda", "prefer", "expect"}
CASE_KEYS |= {"exclude-newer"}
PICK_KEYS = {"version", "versions", "cuda", "cudnn", "python", "cuda_none", "source", "build", "not_build", "runs_as"}
EXPECT_KEYS = {
    0: {"exit", "says", "never_says", "minimum_driver", "owner"} | PICK_KEYS,
    1: {"exit", "says", "never_says", "code", "constraints", "groups", "forced_by"},
}


def arguments_of(case: dict[str, Any], format_name: str) -> list[str]:
    """The command line of a case."""
    words = ["--format", format_name]
    for key in ("framework", "gpu", "source"):
        for value in case.get(key, []):
            words += [f"--{key}", value]
    for name in case.get("host", []):
        words += ["--host", str(HOSTS / f"{name}.json")]
    for key in ("driver", "platform", "python", "cuda", "prefer", "exclude-newer"):
        if key in case:
            words += [f"--{key}", case[key]]
    return words


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_answer_is_the_expected_one(case: dict[str, Any], envsolve: Envsolve) -> None:
    result = envsolve(*arguments_of(case, "json"))
    expect = case["expect"]
    assert result.code == expect["exit"], result.err
    for words in expect.get("says", []):
        assert words in result.err
    for words in expect.get("never_says", []):
        assert words not in result.err
    answer = json.loads(result.out)
    if expect["exit"] == 1:
        causes = [line.removeprefix("cause: ") for line in result.err.splitlines() if line.startswith("cause: ")]
        assert not [it for it in causes if it in answer["error"]["message"]], "a cause repeats the message"
        assert answer["error"]["code"] == expect.get("code", answer["error"]["code"])
        assert answer["error"]["conflict"]
        check_refusal(answer["error"], expect)
        return
    check_answer(answer, expect)


def check_refusal(error: dict[str, Any], expect: dict[str, Any]) -> None:
    """Compare an error as JSON with the expectation of a case; hosts are named like their files."""
    if "constraints" in expect:
        assert error["constraints"] == expect["constraints"]
    if "groups" in expect:
        groups = [[Path(host).stem for host in group["hosts"]] for group in error["groups"]]
        assert groups == expect["groups"]
        assert [Path(host).stem for host in error["forced_by"]] == expect.get("forced_by", [])


def check_answer(answer: dict[str, Any], expect: dict[str, Any]) -> None:
    """Compare a JSON answer with what a case expects."""
    for key in ("cuda", "cudnn", "python"):
        if key in expect:
            assert SpecifierSet(expect[key]).contains(answer[key]), f"{key} {answer[key]}"
    if expect.get("cuda_none"):
        assert answer["cuda"] is None
    else:
        assert answer["minimum_driver"] == expect.get("minimum_driver", answer["minimum_driver"])
    assert answer["cuda_owner"] == expect.get("owner", answer["cuda_owner"])
    for framework in answer["frameworks"]:
        versions = expect.get("versions", {}).get(framework["framework"], "")
        assert SpecifierSet(versions).contains(framework["version"], prereleases=True)
        assert SpecifierSet(expect.get("version", "")).contains(framework["version"], prereleases=True)
        assert framework["source"] == expect.get("source", framework["source"])
        assert framework["build"] == expect.get("build", framework["build"])
        assert framework["build"] not in expect.get("not_build", [])
        assert framework["runs_as"].items() >= expect.get("runs_as", {}).items()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["name"], marks=[pytest.mark.thorough] if place % 3 else [])
        for place, case in enumerate(CASES)
    ],
)
def test_the_environment_file_agrees(case: dict[str, Any], envsolve: Envsolve) -> None:
    result = envsolve(*arguments_of(case, "environment"))
    expect = case["expect"]
    assert result.code == expect["exit"], result.err
    if expect["exit"] == 1:
        assert result.out == ""
        assert result.err.startswith("error: ")
        return
    document = yaml.safe_load(result.out)
    specs = [spec for spec in document["dependencies"] if isinstance(spec, str)]
    wheels = [line for spec in document["dependencies"] if isinstance(spec, dict) for line in spec["pip"]]
    python = next(spec for spec in specs if spec.startswith("python="))
    assert SpecifierSet(expect.get("python", "")).contains(python.removeprefix("python="))
    toolkit = [spec for spec in specs if spec.startswith(("cuda-version=", "cudatoolkit=", "pytorch-cuda="))]
    if expect.get("cuda_none"):
        assert not toolkit
        assert "# CPU build" in result.out
    elif not wheels:
        assert SpecifierSet(expect.get("cuda", "")).contains(toolkit[0].partition("=")[2])


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_everything_that_a_case_expects_is_compared(case: dict[str, Any]) -> None:
    assert case.keys() <= CASE_KEYS
    assert case["expect"].keys() <= EXPECT_KEYS[case["expect"]["exit"]]


def test_every_case_has_a_unique_name() -> None:
    names = [case["name"] for case in CASES]
    assert len(names) == len(set(names))
