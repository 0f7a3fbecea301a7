"""What a conda lock costs beside a bare solve of py-rattler and beside conda-lock: the same lock from one channel.

    .venv-test/bin/python -m benchmarks.conda_locking [--channel DIRECTORY] [--conda EXE] [--runs 5]

Without ``--channel`` the recorded channel of the tests is served; without ``--conda`` conda-lock is ignored. Cold:
nothing is kept. Warm: the same command again, the output taken away before. conda-lock keeps nothing of a channel, so
that both cost it the same. Tools take turns after a round that does not count, ratios are those of runs of one round,
and medians are shown.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import yaml

from benchmarks.conda_channels import ChannelDirectory
from benchmarks.conda_tools import (
    CONDA_LOCK,
    GPU,
    RATTLER,
    CondaJob,
    CondaTool,
    Package,
    beside,
    conda_lock_with,
    envsolve_at,
    packages_in,
    rattler_of,
)
from benchmarks.lock_tables import COLD, WARM, Cell, Results, Target, megabytes, ratio, row, seconds, target_table
from benchmarks.lock_tools import ENVSOLVE, Run, run

RECORDED = Path(__file__).parent.parent / "tests" / "conda" / "channel"
TENSORFLOW, THREE, TWO_PLATFORMS, ENVIRONMENT = "TensorFlow", "three frameworks", "two platforms", "environment file"
_ASKED = {
    TENSORFLOW: ("-f", "tensorflow", *GPU),
    THREE: ("-f", "tensorflow", "-f", "pytorch", "-f", "jax", *GPU),
    TWO_PLATFORMS: ("-f", "pytorch", *GPU, "--platform", "linux-64", "--platform", "win-64"),
    ENVIRONMENT: ("-f", "tensorflow", *GPU),
}
TAKE_PART = {TENSORFLOW: (RATTLER, *CONDA_LOCK.values()), THREE: (RATTLER,)}
"""Whom envsolve is measured beside; the rest is there for scale."""
TARGETS = (
    Target("warm, times a bare solve", (TENSORFLOW,), (0,), WARM, seconds, RATTLER, 1.5),
    *(
        Target(f"{state}, times as fast as {peer}", (TENSORFLOW,), (0,), state, seconds, peer, 5.0, faster=True)
        for peer in CONDA_LOCK.values()
        for state in (WARM, COLD)
    ),
)
MOST_SECONDS = 300
Locked = Mapping[tuple[str, str], Sequence[Package]]
"""What was locked, by workload and tool."""


class CondaBench:
    """The tools, the runs so far, and what they locked."""

    def __init__(self, tools: Sequence[CondaTool], directory: Path) -> None:
        self._tools, self._directory = tools, directory
        self._specs: dict[str, tuple[str, ...]] = {}
        self.runs: dict[tuple[Cell, str], list[Run]] = {}
        self.locked: dict[tuple[str, str], Sequence[Package]] = {}
        self.failures: dict[str, None] = {}

    def rounds(self, workloads: Sequence[str], runs: int) -> None:
        """Measure everything ``runs`` times, after once that does not count."""
        for workload in workloads:
            if workload in TAKE_PART:
                self._specs[workload] = self._ask_in_other_words(workload)
        for number in range(runs + 1):
            for workload in workloads:
                self._take_turns(workload, counts=number > 0)

    def _take_turns(self, workload: str, *, counts: bool) -> None:
        tools = [it for it in self._tools if it.name == ENVSOLVE or it.name in TAKE_PART.get(workload, ())]
        for state in (WARM,) if workload == ENVIRONMENT else (COLD, WARM):
            for tool in tools:
                self._measure(tool, Cell(workload, 0, state), counts=counts)

    def _measure(self, tool: CondaTool, cell: Cell, *, counts: bool) -> None:
        home = self._directory / tool.name.replace(" ", "-")
        if cell.state == COLD:
            shutil.rmtree(home, ignore_errors=True)
        home.mkdir(exist_ok=True)
        job = self._job(cell.workload, home / "conda-lock.yml")
        job.output.unlink(missing_ok=True)
        taken = run(tool.command(job), home, MOST_SECONDS, tool.variables)
        if taken.status:
            self.failures[f"{tool.name} exits {taken.status} on {cell.workload}, {cell.state}: {_end(taken)}"] = None
        elif counts:
            self.runs.setdefault((cell, tool.name), []).append(taken)
            self.locked[cell.workload, tool.name] = packages_in(job.output)

    def _job(self, workload: str, output: Path, output_format: str = "conda-lock") -> CondaJob:
        words = (*_ASKED[workload], "--format", "environment" if workload == ENVIRONMENT else output_format)
        return CondaJob(
            words, self._environment(workload), self._specs.get(workload, ()), output.parent / "cache", output
        )

    def _environment(self, workload: str) -> Path:
        return self._directory / f"{workload.replace(' ', '-')}.yml"

    def _ask_in_other_words(self, workload: str) -> tuple[str, ...]:
        """Have envsolve write its request: as an environment file, for conda-lock, and as match specs."""
        locked = self._directory / "conda-lock.yml"
        envsolve = next(it for it in self._tools if it.name == ENVSOLVE)
        for job in (self._job(workload, self._environment(workload), "environment"), self._job(workload, locked)):
            job.output.unlink(missing_ok=True)
            written = run(envsolve.command(job), self._directory, MOST_SECONDS, envsolve.variables)
            if written.status:
                raise SystemExit(f"{ENVSOLVE} has no answer on {workload}: {_end(written)}")
        metadata = yaml.load(locked.read_text("utf-8"), yaml.CSafeLoader)["metadata"]["custom_metadata"]
        return tuple(json.loads(metadata["envsolve.linux-64.request"]))


def _end(failed: Run) -> str:
    """The last line of what a process said."""
    return failed.complaint.rpartition("\n")[2]


def figures(results: Results, locked: Locked) -> Iterator[str]:
    """A row for each workload and state: what each tool takes, what it takes as a ratio, and how many it locked."""
    peers = [it for it in (RATTLER, *CONDA_LOCK.values()) if any(tool == it for _, tool in results)]
    ratios = [f"envsolve / {it}" if it == RATTLER else f"{it} / envsolve" for it in peers]
    yield row(["request", "state", *(f"{it}, s" for it in (ENVSOLVE, *peers)), *ratios, "peak MB", "packages"])
    yield "|---" * (4 + 1 + 2 * len(peers)) + "|"
    for cell in dict.fromkeys(cell for cell, _ in results):
        own = results.get((cell, ENVSOLVE), ())
        others = {it: results.get((cell, it), ()) for it in peers}
        shown = [ratio(own, runs) if it == RATTLER else ratio(runs, own) for it, runs in others.items()]
        columns = [_median(own), *map(_median, others.values()), *("-" if it is None else f"{it:.2f}" for it in shown)]
        peak = f"{max(map(megabytes, own), default=0):.0f}"
        yield row([cell.workload, cell.state, *columns, peak, _counted(cell.workload, locked)])


def _median(runs: Sequence[Run]) -> str:
    taken = [it.seconds for it in runs]
    return f"{statistics.median(taken):.2f} ({min(taken):.2f}-{max(taken):.2f})" if taken else "-"


def _counted(workload: str, locked: Locked) -> str:
    """How many packages, and whether all tools have the same names and versions."""
    own, peers = _own_and_peers(workload, locked)
    if not peers:
        return str(len(own)) if own else "-"
    same = all(sorted(it[:2] for it in other) == sorted(it[:2] for it in own) for other in peers.values())
    return f"{len(own)}, the same by all" if same else f"{len(own)}, not the same"


def differences(locked: Locked) -> Iterator[str]:
    """Where another tool locks something else than envsolve, be it another build alone."""
    for workload in dict.fromkeys(workload for workload, _ in locked):
        own, peers = _own_and_peers(workload, locked)
        for tool, other in peers.items():
            right, theirs = {it.name: it for it in own}, {it.name: it for it in other}
            for name in sorted(right.keys() | theirs.keys()):
                if right.get(name) != theirs.get(name):
                    both = f"envsolve {_shown(right.get(name))}, {tool} {_shown(theirs.get(name))}"
                    yield f"{workload}, {name}: {both}"


def _shown(package: Package | None) -> str:
    return "has none" if package is None else f"{package.version} {package.build}"


def _own_and_peers(workload: str, locked: Locked) -> tuple[Sequence[Package], Locked]:
    peers = {it: locked[workload, it] for of, it in locked if of == workload and it != ENVSOLVE}
    return locked.get((workload, ENVSOLVE), ()), peers


def page(bench: CondaBench, *, conda: str | None) -> Iterator[str]:
    """The Markdown of all that was measured; ``conda`` is the version of the client that conda-lock drives."""
    tools = [f"envsolve {version('envsolve')}", f"py-rattler {version('py-rattler')}"]
    tools += [f"conda-lock {version('conda-lock')}", conda] if conda is not None else []
    yield f"{', '.join(tools)}; {os.cpu_count()} cores, Python {sys.version.split()[0]}"
    yield from ("", *target_table(bench.runs, TARGETS), "", *figures(bench.runs, bench.locked), "")
    yield from bench.failures
    yield from list(differences(bench.locked)) or ["All tools lock the same packages, with the same builds."]
    if conda is None:
        yield "conda-lock was ignored, since no conda client was named (--conda EXE)."


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="What a conda lock costs beside a bare solve and beside conda-lock's.")
    parser.add_argument("--channel", type=Path, default=RECORDED, help="holds CHANNEL/SUBDIR/repodata.json.zst")
    parser.add_argument("--conda", type=Path, metavar="EXE", help="the conda client that conda-lock drives")
    parser.add_argument("--solvers", nargs="+", default=list(CONDA_LOCK), choices=list(CONDA_LOCK), help="of conda")
    parser.add_argument("--workloads", nargs="+", default=list(_ASKED), choices=list(_ASKED), metavar="NAME")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--envsolve", type=Path, default=beside("envsolve"), help="the console script to measure")
    parser.add_argument("--conda-lock", type=Path, default=beside("conda-lock"))
    return parser.parse_args()


def tools_of(arguments: argparse.Namespace, channels: ChannelDirectory, directory: Path) -> Sequence[CondaTool]:
    """The tools that the command line names, in the order of their turns."""
    channels.mirror(directory / "config")
    tools = [
        rattler_of(arguments.envsolve.absolute().with_name("python"), channels),
        envsolve_at(arguments.envsolve.absolute(), directory / "config"),
    ]
    if arguments.conda is not None:
        names = directory / "names.json"
        names.write_text("{}\n")
        executable, conda = arguments.conda_lock.absolute(), arguments.conda.absolute()
        tools += [conda_lock_with(it, executable, conda, channels, names) for it in arguments.solvers]
    return tools


def main() -> None:
    """Measure what the command line requires and print the tables."""
    arguments = options()
    conda = None
    if arguments.conda is not None:
        conda = subprocess.run(
            [arguments.conda.absolute(), "--version"], stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        conda = conda.strip()
    channels = ChannelDirectory(arguments.channel)
    try:
        with tempfile.TemporaryDirectory() as directory:
            bench = CondaBench(tools_of(arguments, channels, Path(directory)), Path(directory))
            bench.rounds(arguments.workloads, arguments.runs)
    finally:
        channels.close()
    print("\n".join(page(bench, conda=conda)))


if __name__ == "__main__":
    main()
