"""What the benchmark of locks shows: every figure, the ratios, and the targets with whether they are met."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.lock_tools import ENVSOLVE, PIP, UV, Run

COLD, WARM = "cold", "warm"
STATES = (COLD, WARM)
SMALL = ("W1", "W2", "W3", "W4a", "W4b")
STACKS = (*SMALL, "W5")
Figure = Callable[[Run], float]


class Cell(NamedTuple):
    """One kind of run: what is locked, how late answers come in milliseconds, and what is there before."""

    workload: str
    latency: int
    state: str


Results = Mapping[tuple[Cell, str], Sequence[Run]]
"""The runs by cell and tool, in the order of the rounds."""


class Target(NamedTuple):
    """An aim: envsolve's ``figure`` as a ratio to a peer's, or alone, in the cells of some workloads."""

    words: str
    workloads: Sequence[str]
    latencies: Sequence[int]
    state: str
    figure: Figure
    peer: str | None
    bound: float
    faster: bool = False

    def measured(self, results: Results) -> Iterator[tuple[Cell, float]]:
        """What was measured, for each cell that was."""
        for cell in dict.fromkeys(cell for cell, _ in results):
            if cell.workload in self.workloads and cell.latency in self.latencies and cell.state == self.state:
                value = self._value(cell, results)
                if value is not None:
                    yield cell, value

    def allows(self, value: float) -> bool:
        """Whether ``value``, as it is shown, is within the aim."""
        return round(value, 2) >= self.bound if self.faster else round(value, 2) <= self.bound

    def _value(self, cell: Cell, results: Results) -> float | None:
        own = results.get((cell, ENVSOLVE), ())
        if self.peer is None:
            return max(map(self.figure, own)) if own else None
        peer = results.get((cell, self.peer), ())
        return ratio(peer, own, self.figure) if self.faster else ratio(own, peer, self.figure)


def seconds(run: Run) -> float:
    """How long a run took."""
    return run.seconds


def requests(run: Run) -> float:
    """How many requests a run made."""
    return run.requests or 0


def megabytes(run: Run) -> float:
    """The largest resident set of a run."""
    return run.megabytes


TARGETS = (
    Target("cold at 20 ms, times uv", SMALL, (20,), COLD, seconds, UV, 1.3),
    Target("cold at 80 ms, times uv", SMALL, (80,), COLD, seconds, UV, 1.0),
    Target("W5 cold at 80 ms, times uv", ("W5",), (80,), COLD, seconds, UV, 0.8),
    Target("requests cold at 0 ms, times uv", (*STACKS, "W6"), (0,), COLD, requests, UV, 1.15),
)


def ratio(own: Sequence[Run], peer: Sequence[Run], figure: Figure = seconds) -> float | None:
    """The median ratio of runs of the same round; None where there are none, or the peer's figure is nothing."""
    pairs = [(figure(it), figure(other)) for it, other in zip(own, peer, strict=False)]
    ratios = [mine / theirs for mine, theirs in pairs if theirs]
    return statistics.median(ratios) if ratios else None


def every_figure(results: Results) -> Iterator[str]:
    """A row for each tool and cell."""
    yield "| workload | latency, ms | state | tool | runs | s | min-max | CPU s | peak MB | requests | exit |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for (cell, tool), runs in sorted(results.items(), key=_order):
        taken = [it.seconds for it in runs]
        requested = "-" if runs[0].requests is None else f"{statistics.median(map(requests, runs)):.0f}"
        columns = (
            *cell,
            tool,
            len(runs),
            f"{statistics.median(taken):.3f}",
            f"{min(taken):.2f}-{max(taken):.2f}",
            f"{statistics.median(it.processor_seconds for it in runs):.2f}",
            f"{max(map(megabytes, runs)):.0f}",
            requested,
            " ".join(sorted({str(it.status) for it in runs})),
        )
        yield row(columns)


def ratio_table(results: Results) -> Iterator[str]:
    """A row for each workload: envsolve's time as a ratio to uv's, then pip's as a ratio to envsolve's."""
    columns = list(dict.fromkeys((cell.state, cell.latency) for cell, _ in sorted(results, key=_column)))
    with_pip = [it for it in columns if any(tool == PIP and (cell.state, cell.latency) == it for cell, tool in results)]
    heads = [f"{state}, {latency} ms" for state, latency in columns]
    heads += [f"pip {state}, {latency} ms" for state, latency in with_pip]
    yield row(["workload", *heads])
    yield "|---" * (len(heads) + 1) + "|"
    for workload in sorted({cell.workload for cell, _ in results}):
        values = [_times(results, Cell(workload, latency, state), ENVSOLVE, UV) for state, latency in columns]
        values += [_times(results, Cell(workload, latency, state), PIP, ENVSOLVE) for state, latency in with_pip]
        yield row([workload, *values])


def target_table(results: Results, targets: Iterable[Target] = TARGETS) -> Iterator[str]:
    """A row for each target: what was measured, and where it is missed."""
    yield "| target | at | measured | met |"
    yield "|---|---|---|---|"
    for target in targets:
        found = list(target.measured(results))
        missed = [cell.workload for cell, value in found if not target.allows(value)]
        values = ", ".join(f"{cell.workload} {value:.2f}" for cell, value in found)
        bound = f"{'>=' if target.faster else '<='} {target.bound:g}"
        met = "not measured" if not found else f"no: {', '.join(missed)}" if missed else "yes"
        yield row([target.words, bound, values, met])


def _times(results: Results, cell: Cell, own: str, peer: str) -> str:
    value = ratio(results.get((cell, own), ()), results.get((cell, peer), ()))
    return "-" if value is None else f"{value:.2f}"


def _order(item: tuple[tuple[Cell, str], object]) -> tuple[str, int, int, str]:
    (cell, tool), _ = item
    return cell.workload, STATES.index(cell.state), cell.latency, tool


def _column(key: tuple[Cell, str]) -> tuple[int, int]:
    cell, _ = key
    return STATES.index(cell.state), cell.latency


def row(columns: Iterable[object]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(map(str, columns))} |"
