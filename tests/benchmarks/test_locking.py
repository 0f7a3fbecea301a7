"""The benchmark of locks reads the output of the tools and counts correctly; people judge its figures."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import requests

from benchmarks.lock_indexes import NamedIndex, RecordedIndex
from benchmarks.lock_tables import COLD, WARM, Cell, Results, every_figure, ratio, ratio_table, target_table
from benchmarks.lock_tools import ENVSOLVE, PIP, UV, Run, pins_in, run
from tests.index.server import IndexServer

W1_COLD, W1_WARM = Cell("W1", 0, COLD), Cell("W1", 0, WARM)


def taking(seconds: float, requests: int = 10) -> Run:
    return Run(seconds, seconds, 30.0, requests, 0, "")


RUNS: Results = {
    (W1_COLD, UV): [taking(1.0), taking(2.0), taking(4.0)],
    (W1_COLD, ENVSOLVE): [taking(1.5), taking(3.0, 12), taking(40.0)],
    (W1_COLD, PIP): [taking(15.0)],
    (W1_WARM, UV): [taking(0.1, 0)],
    (W1_WARM, ENVSOLVE): [taking(0.5, 0)],
}


def test_a_ratio_is_the_median_over_all_rounds() -> None:
    assert ratio(RUNS[W1_COLD, ENVSOLVE], RUNS[W1_COLD, UV]) == 1.5
    assert ratio(RUNS[W1_COLD, PIP], RUNS[W1_COLD, ENVSOLVE]) == 10
    assert ratio([], RUNS[W1_COLD, UV]) is None


def test_targets_report_misses() -> None:
    slow = Cell("W1", 20, COLD)
    runs = {**RUNS, (slow, UV): [taking(1.0)], (slow, ENVSOLVE): [taking(1.5)]}
    rows = {row.split(" | ")[0].removeprefix("| "): row for row in target_table(runs)}
    assert rows["cold at 20 ms, times uv"] == "| cold at 20 ms, times uv | <= 1.3 | W1 1.50 | no: W1 |"
    assert rows["requests cold at 0 ms, times uv"].endswith("| W1 1.00 | yes |")
    assert rows["cold at 80 ms, times uv"].endswith("|  | not measured |")


def test_the_table_of_ratios_has_a_column_for_each_state_and_dashes_where_nothing_was_measured() -> None:
    assert list(ratio_table({**RUNS, (Cell("W2", 0, COLD), ENVSOLVE): [taking(1.0)]})) == [
        "| workload | cold, 0 ms | warm, 0 ms | pip cold, 0 ms |",
        "|---|---|---|---|",
        "| W1 | 1.50 | 5.00 | 10.00 |",
        "| W2 | - | - | - |",
    ]


def test_every_figure_shows_median_and_range() -> None:
    assert "| W1 | 0 | cold | envsolve | 3 | 3.000 | 1.50-40.00 | 3.00 | 30 | 10 | 0 |" in list(every_figure(RUNS))


def test_pins_are_read_from_a_requirements_file_and_from_a_report_of_pip(tmp_path: Path) -> None:
    locked = tmp_path / "requirements.txt"
    locked.write_text("# a==1\nJax[cuda12]==0.10.2 \\\n    --hash=sha256:00\n    # via x==2\nopt_einsum==3.4.0 ; x\n")
    report = tmp_path / "report"
    report.write_text(json.dumps({"install": [{"metadata": {"name": "opt_einsum", "version": "3.4.0"}}]}))
    assert pins_in(locked) == {"jax": "0.10.2", "opt-einsum": "3.4.0"}
    assert pins_in(report) == {"opt-einsum": "3.4.0"}
    assert pins_in(tmp_path / "not there") == {}


def test_a_run_reports_its_status_and_last_output_and_stops_at_its_time_limit(tmp_path: Path) -> None:
    failed = run(["/bin/sh", "-c", "echo so it is >&2; exit 3"], tmp_path, 10)
    assert (failed.status, failed.complaint) == (3, "so it is")
    assert run(["/bin/sh", "-c", "exec sleep 10"], tmp_path, 0.05).status < 0


def test_the_recorded_index_counts_requests_since_the_last_time() -> None:
    with closing(RecordedIndex()) as index:
        index.delay(1)
        for _ in range(2):
            assert requests.get(f"{index.url}jax/", timeout=5).status_code == 200
        assert index.requests() == 2
        assert index.requests() == 0


def test_an_index_without_a_counter_reports_no_requests() -> None:
    with IndexServer(recorded=False) as server, closing(NamedIndex(server.index_url)) as index:
        assert index.requests() is None
