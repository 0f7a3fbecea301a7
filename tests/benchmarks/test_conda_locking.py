"""The benchmark of conda locks counts and compares correctly; people judge its figures."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
import requests

from benchmarks.conda_channels import ANACONDA, ChannelDirectory
from benchmarks.conda_locking import RECORDED, TARGETS, TENSORFLOW, THREE, CondaBench, differences, figures
from benchmarks.conda_tools import CONDA_LOCK, RATTLER, CondaJob, CondaTool, Package, packages_in, rattler_of
from benchmarks.lock_tables import COLD, WARM, Cell, Results, target_table
from benchmarks.lock_tools import ENVSOLVE, Run, run

CLASSIC = CONDA_LOCK["classic"]
NUMPY, OTHER_BUILD = Package("numpy", "2.2.0", "py312_0"), Package("numpy", "2.2.0", "py312_1")
LOCK = f"""\
metadata:
  custom_metadata:
    envsolve.linux-64.request: '["python=3.12", "numpy"]'
package:
- name: numpy
  url: {ANACONDA}conda-forge/linux-64/numpy-2.2.0-py312_0.conda
- name: ca-certificates
  url: {ANACONDA}conda-forge/noarch/ca-certificates-2025.1.1-h0_0.tar.bz2
"""


def taking(seconds: float) -> Run:
    return Run(seconds, seconds, 90.0, None, 0, "")


RUNS: Results = {
    (Cell(TENSORFLOW, 0, WARM), ENVSOLVE): [taking(0.3), taking(0.2), taking(0.9)],
    (Cell(TENSORFLOW, 0, WARM), RATTLER): [taking(0.2), taking(0.2), taking(0.2)],
    (Cell(TENSORFLOW, 0, WARM), CLASSIC): [taking(1.2), taking(2.0), taking(1.8)],
    (Cell(THREE, 0, COLD), ENVSOLVE): [taking(0.5)],
}


def test_targets_are_ratios_to_a_bare_solve_and_to_conda_lock() -> None:
    rows = {row.split(" | ")[0].removeprefix("| "): row for row in target_table(RUNS, TARGETS)}
    assert rows["warm, times a bare solve"] == "| warm, times a bare solve | <= 1.5 | TensorFlow 1.50 | yes |"
    assert rows[f"warm, times as fast as {CLASSIC}"].endswith("| >= 5 | TensorFlow 4.00 | no: TensorFlow |")
    assert rows[f"cold, times as fast as {CLASSIC}"].endswith("| not measured |")


def test_every_workload_has_a_row_and_a_tool_without_measurements_has_no_column() -> None:
    locked = {(TENSORFLOW, ENVSOLVE): [NUMPY], (TENSORFLOW, CLASSIC): [OTHER_BUILD], (THREE, ENVSOLVE): [NUMPY, NUMPY]}
    head, _, *rows = figures(RUNS, locked)
    assert head.removesuffix(" | peak MB | packages |") == (
        "| request | state | envsolve, s | rattler, s | conda-lock (classic), s"
        " | envsolve / rattler | conda-lock (classic) / envsolve"
    )
    times = "0.30 (0.20-0.90) | 0.20 (0.20-0.20) | 1.80 (1.20-2.00)"
    assert rows == [
        f"| TensorFlow | warm | {times} | 1.50 | 4.00 | 90 | 1, the same by all |",
        "| three frameworks | cold | 0.50 (0.50-0.50) | - | - | - | - | 90 | 2 |",
    ]


def test_the_table_separates_tools_that_locked_other_versions_and_lists_other_builds_below() -> None:
    other = Package("numpy", "2.1.0", "py312_0")
    locked = {(TENSORFLOW, ENVSOLVE): [NUMPY], (TENSORFLOW, CLASSIC): [other]}
    assert list(figures(RUNS, locked))[2].endswith("| 1, not the same |")
    assert list(differences({(TENSORFLOW, ENVSOLVE): [NUMPY], (TENSORFLOW, CLASSIC): [OTHER_BUILD]})) == [
        "TensorFlow, numpy: envsolve 2.2.0 py312_0, conda-lock (classic) 2.2.0 py312_1"
    ]
    assert list(differences({(TENSORFLOW, ENVSOLVE): [NUMPY], (TENSORFLOW, CLASSIC): []})) == [
        "TensorFlow, numpy: envsolve 2.2.0 py312_0, conda-lock (classic) has none"
    ]


def test_packages_are_identified_by_their_urls(tmp_path: Path) -> None:
    locked = tmp_path / "conda-lock.yml"
    locked.write_text(LOCK)
    assert packages_in(locked) == [NUMPY, Package("ca-certificates", "2025.1.1", "h0_0")]
    assert packages_in(tmp_path / "not there") == []


@pytest.mark.thorough
def test_tools_take_turns_and_the_first_round_is_not_counted(tmp_path: Path) -> None:
    turns, jobs = tmp_path / "turns", []

    def tool(name: str, script: str) -> CondaTool:
        def command(job: CondaJob) -> list[str]:
            jobs.append(job)
            return ["/bin/sh", "-c", f"echo {name} >> '{turns}'; {script}", LOCK, str(job.output), str(job.cache)]

        return CondaTool(name, command, {})

    once = 'test ! -e "$2" || kept=yes; mkdir -p "$2"; '
    envsolve = tool(ENVSOLVE, 'printf %s "$0" > "$1"')
    bench = CondaBench([tool(RATTLER, once + 'printf %s "$0" > "$1"; exit ${kept:+3}'), envsolve], tmp_path)
    bench.rounds([TENSORFLOW], 1)
    assert turns.read_text().split() == [ENVSOLVE] * 2 + [RATTLER, ENVSOLVE] * 4
    assert {key: len(runs) for key, runs in bench.runs.items()} == {
        (Cell(TENSORFLOW, 0, COLD), RATTLER): 1,
        (Cell(TENSORFLOW, 0, COLD), ENVSOLVE): 1,
        (Cell(TENSORFLOW, 0, WARM), ENVSOLVE): 1,
    }
    assert list(bench.failures) == ["rattler exits 3 on TensorFlow, warm: "]
    assert [job.words[-1] for job in jobs[:3]] == ["environment", "conda-lock", "conda-lock"]
    assert jobs[2].specs == ("python=3.12", "numpy")
    assert bench.locked[TENSORFLOW, ENVSOLVE][0] == NUMPY


@pytest.mark.thorough
def test_a_bare_solve_locks_packages_of_the_recorded_channel(tmp_path: Path) -> None:
    specs = ("python=3.12", "tensorflow=2.19.1=cuda128*", "cuda-version=12.9", "cudnn>=9.10.1.4,<10")
    with closing(ChannelDirectory(RECORDED)) as channels:
        tool = rattler_of(Path(sys.executable), channels)
        job = CondaJob((), tmp_path / "environment.yml", specs, tmp_path / "cache", tmp_path / "locked")
        assert run(tool.command(job), tmp_path, 60, tool.variables).status == 0
    assert _versions(packages_in(job.output)) >= {("tensorflow", "2.19.1"), ("cuda-version", "12.9")}


def test_a_directory_is_served_unchanged_and_rattler_uses_it(tmp_path: Path) -> None:
    path = "conda-forge/noarch/repodata.json.zst"
    with closing(ChannelDirectory(RECORDED)) as channels:
        channels.mirror(tmp_path)
        mirrors = tomllib.loads((tmp_path / "rattler" / "config.toml").read_text())["mirrors"]
        assert list(mirrors) == [ANACONDA]
        answer = requests.get(f"{mirrors[ANACONDA][0]}{path}", timeout=5)
        assert answer.content == (RECORDED / path).read_bytes()
        assert "max-age" in answer.headers["Cache-Control"]
        assert requests.get(f"{channels.url}/private/noarch/repodata.json.zst", timeout=5).status_code == 404


@pytest.mark.thorough
def test_a_run_has_the_variables_of_its_tool_and_none_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONDA_CHANNEL_ALIAS", "of this user")
    script = 'test "$CONDA_SOLVER" = classic && test -z "$CONDA_CHANNEL_ALIAS"'
    assert run(["/bin/sh", "-c", script], tmp_path, 10, {"CONDA_SOLVER": "classic"}).status == 0
    assert run(["/bin/sh", "-c", script], tmp_path, 10).status != 0


def _versions(packages: Sequence[Package]) -> set[tuple[str, str]]:
    return {(it.name, it.version) for it in packages}
