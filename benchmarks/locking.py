"""What a Python lock costs beside uv's and pip's, which answer the same requests from the same index.

    .venv-test/bin/python -m benchmarks.locking [--workloads W1 W2] [--latency 0 20 80] [--runs 5] [--minutes 20]

Without ``--index-url`` or ``--replay`` it uses the tests' recorded index. Cold: nothing is cached. Warm: the cache
was filled just before, the output is not there; measured at the first latency alone, since nothing is requested. Tools
take turns, and so do workloads: rounds that go through all of them slow down together, ratios are those of runs of one
round, and medians are shown. When the time is over, what was measured until then is shown.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.lock_indexes import Index, NamedIndex, RecordedIndex, ReplayIndex
from benchmarks.lock_tables import COLD, STACKS, WARM, Cell, every_figure, ratio_table, target_table
from benchmarks.lock_tools import KILLED, PIP, UV, Job, Run, Tool, envsolve_at, pins_in, pip_of, run, uv_at

RESOLUTIONS = Path(__file__).parent.parent / "tests" / "index" / "recorded" / "resolutions.toml"
WORKLOADS = (*STACKS, "W6", "W7", "W7b")
REFUSED = ("W7", "W7b")
PAIRS = {"W4a": ["tensorflow[and-cuda]", "jax[cuda12]"], "W4b": ["torch==2.8.0", "jax[cuda12]"]}
"""In place of W4, whose three frameworks share no CUDA among the releases that have their metadata recorded."""
FOR_PIP = STACKS
"""What pip gets, without delay; the others take it minutes. It has no output that it would keep to."""
WITHOUT_DELAY = ("W6",)
"""Only at 0 ms: three thousand requests, many of them one after another."""
PIP_ROUNDS = 2
MOST_SECONDS = 120


class Bench:
    """The tools, the index, and the runs so far."""

    def __init__(self, tools: Sequence[Tool], index: Index, directory: Path, deadline: float) -> None:
        self._tools, self._index, self._directory, self._deadline = tools, index, directory, deadline
        self.runs: dict[tuple[Cell, str], list[Run]] = {}
        self.differences: dict[str, None] = {}
        self._given_up: set[tuple[str, str]] = set()
        requirements = {it["name"]: it["requirements"] for it in tomllib.loads(RESOLUTIONS.read_text())["resolution"]}
        for name in WORKLOADS:
            lines = PAIRS.get(name) or requirements[name]
            (directory / f"{name}.in").write_text("\n".join(lines) + "\n")

    def rounds(self, workloads: Sequence[str], latencies: Sequence[int], runs: int) -> None:
        """Measure everything ``runs`` times, or until the time is over."""
        for number in range(runs):
            for latency in latencies:
                self._index.delay(latency)
                for workload in workloads:
                    states = (COLD, WARM) if latency == latencies[0] else (COLD,)
                    self._take_turns(workload, latency, states, number)
                    if time.monotonic() > self._deadline:
                        return

    def _take_turns(self, workload: str, latency: int, states: Sequence[str], number: int) -> None:
        for state in states:
            cell = Cell(workload, latency, state)
            pins = {it.name: self._measure(it, cell) for it in self._tools if self._takes_part(it, cell, number)}
            self._compare(cell, pins)

    def _takes_part(self, tool: Tool, cell: Cell, number: int) -> bool:
        if (tool.name, cell.workload) in self._given_up or (cell.latency and cell.workload in WITHOUT_DELAY):
            return False
        if tool.name != PIP:
            return True
        return number < PIP_ROUNDS and cell.latency == 0 and cell.workload in FOR_PIP and cell.state in (COLD, WARM)

    def _measure(self, tool: Tool, cell: Cell) -> dict[str, str]:
        """Run ``tool`` once and keep what it cost; what it pinned."""
        home = self._directory / tool.name
        requirements = self._directory / f"{cell.workload}.in"
        job = Job(requirements, self._index.url, home / "cache", home / f"{cell.workload}.out")
        if cell.state == COLD:
            shutil.rmtree(job.cache, ignore_errors=True)
        job.output.unlink(missing_ok=True)
        home.mkdir(exist_ok=True)
        self._index.requests()
        taken = run(tool.command(job), home, MOST_SECONDS)
        if taken.status == KILLED:
            self._given_up.add((tool.name, cell.workload))
            self.differences[f"{tool.name} was ended on {cell.workload} after {MOST_SECONDS} s"] = None
            return {}
        if taken.status != (1 if cell.workload in REFUSED else 0):
            self.differences[f"{tool.name} exits {taken.status} on {cell.workload}: {taken.complaint[-400:]}"] = None
        self.runs.setdefault((cell, tool.name), []).append(taken._replace(requests=self._index.requests()))
        return pins_in(job.output)

    def _compare(self, cell: Cell, pins: dict[str, dict[str, str]]) -> None:
        """Remember where another tool pins something else than uv."""
        right = pins.get(UV, {})
        for tool, other in pins.items():
            for name in sorted(right.keys() | other.keys()):
                if UV in pins and right.get(name) != other.get(name):
                    words = f"{name}: uv {right.get(name)}, {tool} {other.get(name)}"
                    self.differences[f"{cell.workload} {cell.state}: {words}"] = None


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="What a Python lock costs beside uv's and pip's.")
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS, choices=WORKLOADS, metavar="NAME")
    parser.add_argument("--latency", nargs="+", type=int, default=[0, 20, 80], metavar="MS")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=20, help="when to stop, however many runs were made")
    parser.add_argument("--index-url", help="an index that is there")
    parser.add_argument("--replay", type=Path, metavar="SCRIPT", help="a replay server to start, with --snapshot")
    parser.add_argument("--snapshot", type=Path, metavar="DIR", help="what the replay server replays")
    parser.add_argument("--replay-python", type=Path, default=sys.executable, help="the Python that runs it")
    here = Path(sys.executable).parent
    parser.add_argument("--envsolve", type=Path, default=here / "envsolve", help="the console script to measure")
    parser.add_argument("--uv", type=Path, default=here / "uv")
    parser.add_argument(
        "--python", type=Path, default=Path(sys.executable), help="a Python 3.11, which uv looks at and runs pip"
    )
    parser.add_argument("--without-pip", action="store_true")
    return parser.parse_args()


def index_of(arguments: argparse.Namespace) -> Index:
    """The index that the command line names, else the recorded one of the tests."""
    if arguments.index_url is not None:
        return NamedIndex(arguments.index_url)
    if arguments.replay is not None:
        return ReplayIndex(arguments.replay_python, arguments.replay, arguments.snapshot)
    return RecordedIndex()


def page(bench: Bench) -> Iterator[str]:
    """The Markdown of all that was measured."""
    yield from (*target_table(bench.runs), "", *ratio_table(bench.runs), "", *every_figure(bench.runs), "")
    yield from bench.differences or ["All tools pin the same."]


def main() -> None:
    """Measure what the command line requires and print the tables."""
    arguments = options()
    python = arguments.python.absolute()
    tools = [uv_at(arguments.uv.absolute(), python), envsolve_at(arguments.envsolve.absolute())]
    tools += [] if arguments.without_pip else [pip_of(python)]
    deadline = time.monotonic() + arguments.minutes * 60
    with tempfile.TemporaryDirectory() as directory:
        index = index_of(arguments)
        try:
            bench = Bench(tools, index, Path(directory), deadline)
            bench.rounds(arguments.workloads, arguments.latency, arguments.runs)
        finally:
            index.close()
    print("\n".join(page(bench)))


if __name__ == "__main__":
    main()
