"""A line of a header is read back by the template that wrote it."""

from __future__ import annotations

import pytest

from envsolve.lockfile.header_lines import (
    COMMAND,
    EXPORTED,
    FOR,
    GPU,
    MADE_BY,
    MADE_BY_OWN_MATRIX,
    NEEDS,
    RESOLVED_FOR,
    Line,
)

LINES: list[tuple[Line, dict[str, str]]] = [
    (MADE_BY, {"version": "0.1.0"}),
    (MADE_BY, {"version": "0.1.0", "date": "2026-11-20"}),
    (MADE_BY_OWN_MATRIX, {"version": "0.1.0"}),
    (MADE_BY_OWN_MATRIX, {"version": "0.1.0", "date": "2026-11-20"}),
    (COMMAND, {"command": "envsolve --framework 'pytorch>=2' for: a, b"}),
    (FOR, {"platform": "linux-64"}),
    (FOR, {"platform": "linux-64", "machines": "NVIDIA GeForce RTX 3090 (8.6), a GPU of 9.0"}),
    (NEEDS, {"floor": "525.60.13"}),
    (RESOLVED_FOR, {"python": "3.12.11"}),
    (RESOLVED_FOR, {"python": "3.12.11", "assumed": "__cuda=12.2, __glibc=2.35"}),
    (RESOLVED_FOR, {"assumed": "no virtual package"}),
    (EXPORTED, {"name": "locks/pixi.lock by envsolve"}),
    (GPU, {"name": "NVIDIA GeForce RTX 3090 (24 GB)", "capability": "8.6"}),
    (GPU, {"capability": "12.0"}),
]


@pytest.mark.parametrize(("line", "fields"), LINES)
def test_written_headers_are_read_back(line: Line, fields: dict[str, str]) -> None:
    written = line.written(**fields)
    assert line.read(f"{written} \r") == fields
    assert line.first_in(["# mine", written]) == fields


def test_other_lines_are_ignored() -> None:
    assert [line.read("# mine") for line, _ in LINES] == [None] * len(LINES)
    assert NEEDS.first_in(["# mine"]) == {}


def test_unknown_values_are_left_out() -> None:
    assert FOR.written(platform="win-64", machines="") == "# For: win-64"
    assert RESOLVED_FOR.written(python=None, assumed="x") == "# Resolved for: x"
