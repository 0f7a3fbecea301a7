"""Tables for people: aligned columns without placeholders for missing values."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.cli.matrix_page import python_span
from envsolve.cli.table import table

CELLS = st.text(alphabet="abc.0123456789,", max_size=12)


@pytest.mark.thorough
@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=6))
def test_cells_are_aligned_with_their_column(rows: list[tuple[str, str, str]]) -> None:
    header = ("one", "two", "three")
    lines = table(header, rows).replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    assert len(lines) == len(rows) + 1
    named = [name for name in header if name in lines[0].split()]
    starts = [lines[0].index(name) for name in named]
    for line, row in zip(lines[1:], rows, strict=True):
        for name, start in zip(named, starts, strict=True):
            cell = row[header.index(name)] or "-"
            assert line[start : start + len(cell)] == cell


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
def test_on_a_terminal_no_word_is_cut(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    header = ("framework", "version", "platform", "cuDNN", "machine code", "evidence")
    rows = [
        ("paddlepaddle", "2.10.1.post112", "linux-aarch64", "9.10.2.21", "7.0,7.5,8.0,8.6,9.0,12.0", "1,2,3"),
        ("jax", "0.12.0.1", "win-64", "", "", "14"),
    ]
    text = re.sub(r"\x1b\[[0-9;]*m", "", table(header, rows))
    words = set(text.replace(",", " ").split())
    left_out = text.partition("also shows ")[2].rstrip(")\n").split(", ")
    for column, name in enumerate(header):
        if name not in left_out:
            assert {word for row in rows for word in row[column].replace(",", " ").split()} <= words
    assert {"paddlepaddle", "jax", "2.10.1.post112", "0.12.0.1"} <= words
    is_table = "\u2500" in text
    assert is_table == (width > 40)
    assert all(len(line) <= width for line in text.splitlines() if is_table and "also shows" not in line)


@pytest.mark.parametrize(("width", "is_below"), [(24, True), (60, False)])
def test_on_a_narrow_terminal_constant_columns_are_reported_once(
    width: int, is_below: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    rows = [("tensorflow", version, "linux-64") for version in ("2.20.0", "2.21.0")]
    text = re.sub(r"\x1b\[[0-9;]*m", "", table(("framework", "version", "platform"), rows))
    assert (" ".join(text.split()).endswith("(in every row: framework tensorflow, platform linux-64)")) is is_below
    assert text.count("tensorflow") == (1 if is_below else 2)
    assert all(len(line) <= width for line in text.splitlines())
    assert "every row" not in table(("framework", "version", "platform"), rows[:1])


def test_a_column_without_values_is_left_out() -> None:
    assert "two" not in table(("one", "two"), [("a", ""), ("b", "")])


@pytest.mark.parametrize(
    ("pythons", "span"),
    [
        (("3.9",), "3.9"),
        (("3.9", "3.10", "3.11"), "3.9-3.11"),
        (("3.8", "3.10", "3.11", "3.13"), "3.8,3.10-3.11,3.13"),
        (("2.7", "3.8"), "2.7,3.8"),
    ],
)
def test_consecutive_pythons_are_a_range(pythons: tuple[str, ...], span: str) -> None:
    assert python_span(pythons) == span
