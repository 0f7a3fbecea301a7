"""The benchmark of real projects: both tools lock, the locks are judged and the verdicts counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.lock_judge import Judge, Project, Uv
from benchmarks.lock_tools import ENVSOLVE, UV
from benchmarks.real_projects import (
    GOOD,
    NO_ANSWER,
    REFUSED,
    RIGHTLY,
    STALE,
    WRONG,
    Answer,
    Bench,
    Row,
    Runner,
    tables,
    time_table,
)
from envsolve.matrix import Matrix
from tests.cli.worlds import releases
from tests.index.server import IndexServer

uv = pytest.importorskip("uv")
ROWS = [
    Row("vllm", "T1", ENVSOLVE, "2.15.0", GOOD, 2.0, "", ""),
    Row("vllm", "T1", UV, "2.15.0", STALE, 1.0, "vllm 0.2.2, 0.32.0 was possible on Python 3.12", ""),
    Row("comfyui", "T1", ENVSOLVE, None, NO_ANSWER, 180.0, "no answer within 180 s", ""),
    Row("comfyui", "T1", UV, None, WRONG, 3.0, "pytorch is not in the lock", ""),
]
JUDGED = [
    {"project": "vllm", "target": "T1", "tool": ENVSOLVE, "framework": "2.15.0", "verdict": "GOOD", "why": ""},
    {"project": "vllm", "target": "T1", "tool": UV, "framework": "2.15.0", "verdict": "GOOD", "why": ""},
    {"project": "comfyui", "target": "T1", "tool": UV, "framework": "2.15.0", "verdict": "GOOD", "why": ""},
    {"project": "other", "target": "T1", "tool": UV, "framework": "2.15.0", "verdict": "WRONG", "why": ""},
]


def test_tables_count_verdicts_and_mark_disagreements() -> None:
    lines = list(tables(ROWS, JUDGED))
    assert "| envsolve | T1 | 2 | 1 | 0 | 0 | 0 | 0 | 1 | 91.0 | 180.0 |" in lines
    assert "| vllm | T1 | good | 2.0 | stale | 1.0 |" in lines
    assert "- comfyui T1 uv: wrong. pytorch is not in the lock" in lines
    assert "\nOf 2 answers like those that people judged the judge says the same of 1." in lines
    assert lines[-1].startswith("- vllm T1 uv: stale (vllm 0.2.2")


def test_times_are_summed_next_to_their_ratio() -> None:
    times = [
        ("vllm", Answer(0, 6.0, "", 2.5), Answer(0, 2.0, "", 1.0)),
        ("roop", Answer(1, 1.0, ""), Answer(0, 3.0, "")),
    ]
    lines = list(time_table(times))
    assert "| vllm | 6.0 | 2.5 | 0 | 2.0 | 1.0 | 0 | 3.00 |" in lines
    assert lines[-1] == "| all | 7.0 | 2.5 | - | 5.0 | 1.0 | - | 1.40 |"


@pytest.mark.thorough
def test_both_tools_run_once_and_are_judged_for_each_machine(tmp_path: Path, matrix: Matrix) -> None:
    (tmp_path / "wrong_together.json").write_text("[]")
    (tmp_path / "demo.in").write_text("# pytorch, made up\ntorch\n")
    (tmp_path / "never.in").write_text("# pytorch, made up\ntorch>=3\n")
    demo, never = (Project.read(tmp_path / f"{name}.in") for name in ("demo", "never"))
    here = Path(sys.executable).parent
    with IndexServer(recorded=False) as server:
        server.add("torch", releases("torch", ["2.10.0", "2.15.0"]))
        options = ("--index-url", server.index_url)
        uv_tool = Uv(Path(uv.find_uv_bin()), Path(sys.executable), tmp_path, 60, options)
        judge = Judge(tmp_path, matrix, uv_tool, tmp_path)
        bench = Bench(Runner(here / "envsolve", uv_tool, tmp_path, 60, options), judge, tmp_path)
        assert bench.row(demo, "T2", ENVSOLVE)[:5] == ("demo", "T2", ENVSOLVE, "2.10.0", GOOD)
        assert bench.row(never, "T2", ENVSOLVE).verdict == RIGHTLY
        wrong = bench.row(demo, "T2", UV)
        assert (wrong.verdict, "does not run on RTX 3090" in wrong.why) == (WRONG, True)
    assert bench.row(demo, "T1", UV).verdict == GOOD  # the lock of T2


def test_a_refusal_of_a_solvable_request_is_reported_with_its_message(tmp_path: Path, matrix: Matrix) -> None:
    known = {"project": "demo", "target": "T1", "tool": UV, "verdict": "GOOD", "framework": "2.15.0", "why": ""}
    (tmp_path / "wrong_together.json").write_text("[]")
    (tmp_path / "judged.jsonl").write_text(json.dumps(known))
    (tmp_path / "demo.in").write_text("# pytorch, made up\ntorch\n")
    (tmp_path / "demo.T1.envsolve.json").write_text(json.dumps({"status": 1, "seconds": 2.5, "said": "error: no"}))
    uv_tool = Uv(Path(uv.find_uv_bin()), Path(sys.executable), tmp_path, 60)
    tool = Runner(Path("not run"), uv_tool, tmp_path, 60)
    bench = Bench(tool, Judge(tmp_path, matrix, uv_tool, tmp_path), tmp_path)
    row = bench.row(Project.read(tmp_path / "demo.in"), "T1", ENVSOLVE)
    assert row == Row("demo", "T1", ENVSOLVE, None, REFUSED, 2.5, "uv has pytorch 2.15.0", "error: no")
