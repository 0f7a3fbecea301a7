"""What the main job and ``--help`` cost as whole processes, as ratios to importing the libraries they stand on.

    .venv-test/bin/python benchmarks/startup.py [RUNS]

Commands take turns, so that a machine whose speed drifts slows all of them alike; medians are compared. Files are warm:
one uncounted run of each goes first. Peak memory is the largest resident set of the finished process. ``-P`` keeps the
current directory off the path: what is measured is the envsolve installed for this Python, wherever it is started.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

PEER = "import click, resolvelib, packaging.version"
ENVSOLVE = "from envsolve.cli import main; main()"

COMMANDS = {
    "peer: " + PEER: ["-c", PEER],
    "envsolve --help": ["-c", ENVSOLVE, "--help"],
    "envsolve -f tensorflow --gpu auto": ["-c", ENVSOLVE, "--framework", "tensorflow", "--gpu", "auto"],
    "envsolve -f pytorch --gpu auto": ["-c", ENVSOLVE, "--framework", "pytorch", "--gpu", "auto"],
    "envsolve -f pytorch, GTX 1080 Ti by name": [
        "-c", ENVSOLVE, "--framework", "pytorch", "--gpu", "GTX 1080 Ti", "--driver", "580.65.06",
    ],
    "envsolve -f pytorch==2.15.*, refused": [
        "-c", ENVSOLVE, "--framework", "pytorch==2.15.*", "--gpu", "8.9", "--driver", "550.163.01",
    ],
}  # fmt: skip


def seconds_and_mebibytes(arguments: list[str]) -> tuple[float, float]:
    """Run Python once with ``arguments``; wall time and peak resident memory of that process."""
    with tempfile.TemporaryFile() as sink:
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-P", *arguments], stdout=sink, stderr=sink)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        return time.perf_counter() - start, usage.ru_maxrss / 1024


def main(runs: int, show: Callable[[str], None] = print) -> None:
    """Measure every command ``runs`` times in turn and show a Markdown table."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for arguments in COMMANDS.values():
        seconds_and_mebibytes(arguments)
    for _ in range(runs):
        for name, arguments in COMMANDS.items():
            taken[name].append(seconds_and_mebibytes(arguments))
    peer = [seconds for seconds, _ in next(iter(taken.values()))]
    show("| command | median ms | ratio to peer | peak MiB |")
    show("|---|---|---|---|")
    for name, figures in taken.items():
        ratio = statistics.median(own / other for (own, _), other in zip(figures, peer, strict=True))
        median = statistics.median(seconds for seconds, _ in figures) * 1000
        show(f"| `{name}` | {median:.0f} | {ratio:.2f} | {max(memory for _, memory in figures):.0f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 21)
