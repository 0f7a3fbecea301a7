"""Judging by hand: a verdict is stored and not requested again until the answer changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from scripts.judge_explain import main

TEXT = "The NVIDIA driver on your system is too old (found version 11040)"


def judged(cases: Path, verdicts: Path, keys: str = "", *options: str) -> str:
    done = CliRunner().invoke(main, [str(cases), str(verdicts), *options], input=keys)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.thorough
def test_verdicts_are_stored_and_counted(tmp_path: Path) -> None:
    cases, verdicts = tmp_path / "cases.jsonl", tmp_path / "verdicts.jsonl"
    rows = [
        {"id": "a", "text": TEXT, "cause": "an old driver"},
        {"id": "b", "text": "hello"},
        {"id": "c", "text": TEXT},
    ]
    cases.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    shown = judged(cases, verdicts, "r\n\nm\nno error\nq\n")
    assert "error: driver-too-old" in shown
    assert "cause: an old driver" in shown
    assert [json.loads(it)["verdict"] for it in verdicts.read_text().splitlines()] == ["right", "missed"]
    assert "3 of 3: c" in judged(cases, verdicts, "w\n\n")
    figures = judged(cases, verdicts, "", "--figures")
    assert "right       1   33.3%" in figures
    assert "not judged: 0 of 3; changed since they were judged: 0" in figures


def test_a_changed_answer_is_judged_again(tmp_path: Path) -> None:
    cases, verdicts = tmp_path / "logs", tmp_path / "verdicts.jsonl"
    cases.mkdir()
    log = 'source = "https://example.org"\nfindings = ["driver-too-old"]\ntext = "{}"\n'
    (cases / "one.toml").write_text(log.format(TEXT))
    judged(cases, verdicts, "r\n\n")
    assert "1 of 1" not in judged(cases, verdicts)
    (cases / "one.toml").write_text(log.format("CUDA out of memory"))
    assert "changed since they were judged: 1" in judged(cases, verdicts, "", "--figures")
    assert "1 of 1" in judged(cases, verdicts, "h\nas a test\n")
    assert "changed since they were judged: 0" in judged(cases, verdicts, "", "--figures")
