"""From the answer or end of a probe to the verdict: the cases are in cases/framework_outcomes.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from envsolve.frameworks import FRAMEWORKS
from envsolve.validation.child import Ending, Outcome
from envsolve.validation.framework_verdict import verdict
from tests.validation.explained import explained

CASES = tomllib.loads((Path(__file__).parent / "cases" / "framework_outcomes.toml").read_text(encoding="utf-8"))["case"]
THROUGH = {"matmul": "cuBLAS", "convolution": "cuDNN", "convolution-backward": "cuDNN"}
FINE: dict[str, Any] = {
    "on_device": True,
    "max_error": 3e-7,
    "tolerance": 1e-4,
    "wrong": 0,
    "numbers": 4096,
    "error": None,
}
NOT_DONE = {**FINE, "ok": False, "on_device": False, "max_error": None}


def raised(text: str) -> dict[str, str]:
    kind, _, message = text.partition(": ")
    return {"type": kind, "text": message}


def operations(case: dict[str, Any]) -> list[dict[str, Any]]:
    done: dict[str, dict[str, Any]] = {
        **{name: {**FINE, "ok": True} for name in case.get("right", ())},
        **{name: {**NOT_DONE, "error": raised(text)} for name, text in case.get("raised", {}).items()},
        **{name: {**FINE, "ok": False, "on_device": False} for name in case.get("elsewhere", ())},
        **{name: {**NOT_DONE, "ok": None, "unsupported": "it does not"} for name in case.get("absent", ())},
        **{
            name: {**FINE, "ok": False, "wrong": 1, "max_error": None if error < 0 else error}
            for name, error in case.get("wrong", {}).items()
        },
    }
    return [{"name": name, "proves": case.get("proves", THROUGH.get(name)), **it} for name, it in done.items()]


def outcome(case: dict[str, Any]) -> Outcome:
    ended = case.get("ended", {"exit_code": 0})
    about = {"version": "2.15.0", "cpu_build": case.get("cpu_build", False)}
    result = {"device": "NVIDIA H200", "operations": operations(case), **about}
    result.update({key: case[key] for key in ("stage", "unsupported", "remarks", "burn") if key in case})
    if "error" in case:
        result["error"] = raised(case["error"])
    return Outcome(
        result=None if "ended" in case else result,
        error=ended.get("error"),
        stage=ended.get("stage"),
        notes=(about, *({"operation": it} for it in operations(case))),
        seconds=1.5,
        ending=Ending(ended.get("exit_code"), ended.get("signal"), ended.get("timeout")),
        tail=case.get("tail", ""),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_an_outcome_gives_its_verdict(case: dict[str, Any]) -> None:
    expect = case["expect"]
    framework = FRAMEWORKS[case.get("framework", "pytorch")]
    found = verdict(
        framework, case.get("device", "cuda"), outcome(case), explained, gpu_present=case.get("gpu_present", False)
    )
    assert found.status.value == expect["status"]
    assert [it.id for it in found.findings] == expect["findings"]
    assert expect.get("detail", "") in found.detail
    assert found.name == framework.name
    assert found.seconds == 1.5
    if found.findings:
        first = found.findings[0]
        assert expect.get("cause", "") in first.cause
        assert expect.get("evidence", "") in "\n".join(first.evidence)
        assert first.severity.value == expect.get("severity", "error")
        assert first.in_scope is expect.get("in_scope", True)


def test_measurements_are_reported_in_json() -> None:
    measured = verdict(FRAMEWORKS["pytorch"], "cuda", outcome({"right": ["matmul"]}), explained).measured
    assert measured["version"] == "2.15.0"
    assert measured["operations"][0]["max_error"] == 3e-7  # type: ignore[index]
