from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.model.capability import CodeTarget, ComputeCapability, DeviceCode

SEEN = tomllib.loads(Path(__file__).with_name("targets_on_h200.toml").read_text())
CAPABILITIES = st.builds(ComputeCapability, st.integers(2, 13), st.integers(0, 9))


@pytest.mark.parametrize("text", ["8.6", "sm_86", "86", "compute_86", " 8.6 "])
def test_a_capability_is_read_in_every_usual_spelling(text: str) -> None:
    assert ComputeCapability.parse(text) == ComputeCapability(8, 6)


@pytest.mark.parametrize(("text", "expected"), [("120", "12.0"), ("sm_121", "12.1"), ("10.3", "10.3"), ("50", "5.0")])
def test_the_last_digit_is_the_minor(text: str, expected: str) -> None:
    assert str(ComputeCapability.parse(text)) == expected


@pytest.mark.parametrize("text", ["", "8", "8.6.1", "RTX 3090", "sm_", "8.66", "-8.6", "1234"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="compute capability"):
        ComputeCapability.parse(text)


@given(CAPABILITIES)
def test_a_capability_survives_a_round_trip(capability: ComputeCapability) -> None:
    assert ComputeCapability.parse(str(capability)) == capability


@pytest.mark.parametrize(
    ("target", "gpu", "runs"),
    [
        ("8.0", "8.6", True),
        ("8.6", "8.0", False),
        ("8.9", "9.0", False),
        ("6.0", "6.1", True),
        ("12.0", "12.1", True),
        ("10.0", "10.3", True),
        ("10.0", "12.0", False),
        ("9.0a", "9.0", True),
        ("10.0a", "10.3", False),
        ("10.0f", "10.3", True),
        ("10.3f", "10.0", False),
        ("3.5", "3.7", True),
        ("8.0", "8.7", False),
        ("8.7", "8.9", False),
        ("8.7", "8.7", True),
        ("7.0", "7.5", True),
        ("7.0", "7.2", False),
        ("6.2", "6.2", True),
    ],
)
def test_machine_code_runs_on_its_major_from_its_minor_up(target: str, gpu: str, runs: bool) -> None:
    assert CodeTarget.parse(target).runs_as_machine_code(ComputeCapability.parse(gpu)) is runs


@pytest.mark.parametrize(
    ("target", "gpu", "runs"),
    [
        ("9.0", "12.0", True),
        ("12.0", "9.0", False),
        ("9.0a", "12.0", False),
        ("9.0a", "9.0", True),
        ("10.0f", "10.3", True),
        ("10.0f", "12.0", False),
        ("8.0", "8.7", True),
    ],
)
def test_ptx_compiles_for_newer_capabilities_unless_it_is_specific(target: str, gpu: str, runs: bool) -> None:
    assert CodeTarget.parse(target).runs_as_ptx(ComputeCapability.parse(gpu)) is runs


def code(sass: str, ptx: str = "") -> DeviceCode:
    return DeviceCode(
        tuple(CodeTarget.parse(text) for text in sass.split()), tuple(CodeTarget.parse(text) for text in ptx.split())
    )


@pytest.mark.parametrize(
    ("device_code", "gpu", "expected"),
    [
        (code("5.0 6.0 7.0"), "6.1", "sm_60"),
        (code("7.5 8.0 8.6 9.0"), "8.9", "sm_86"),
        (code("7.5 8.0", "8.0"), "9.0", "compute_80"),
        (code("7.5 8.0", "8.0"), "8.9", "sm_80"),
        (code("7.5 8.0"), "7.0", None),
        (code("9.0a"), "9.0", "sm_90a"),
    ],
)
def test_the_nearest_machine_code_is_used_and_ptx_only_without_it(
    device_code: DeviceCode, gpu: str, expected: str | None
) -> None:
    assert device_code.runs_as(ComputeCapability.parse(gpu)) == expected


@pytest.mark.thorough
@pytest.mark.parametrize("build", SEEN["builds"], ids=lambda it: "-".join((*it["sass"], "ptx", *it["ptx"])))
def test_code_runs_where_it_ran_on_a_real_gpu(build: dict[str, Any]) -> None:
    code = DeviceCode(*(tuple(map(CodeTarget.parse, build[kind])) for kind in ("sass", "ptx")))
    assert (code.runs_as(ComputeCapability.parse(SEEN["gpu"])) is not None) is build["runs"]
