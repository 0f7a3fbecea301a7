"""What explaining a text costs: beside importing the libraries it stands on, and in seconds and memory on large logs.

    .venv-test/bin/python -m benchmarks.explaining [--rounds N] [--megabytes N]

The peer and each command take turns; medians are compared, as in ``startup.py``. The large logs are made here: ordinary
training output, lines that never repeat, a progress bar, lines that all name CUDA, lines without an end, and bytes that
are no text. Their peer is ``grep -F -i -c`` with the same words.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.startup import ENVSOLVE, PEER, seconds_and_mebibytes
from envsolve.diagnose.scan import anchors_of
from envsolve.diagnose.tables import Tables

CUDART = (
    "2022-06-09 15:50:37.711160: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load "
    "dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file: No such file "
    "or directory\n"
)
BLACKWELL = (
    "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
    "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.\n"
)
SMALL = 10_000
LARGE_ROUNDS = 3
_PIECE = b"cuda error " * 10_000
"""Written again and again: a child counts the memory of the process that started it as its own."""


def main() -> int:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--megabytes", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        small_texts(Path(scratch), given.rounds)
        large_logs(Path(scratch), given.megabytes)
    return 0


def small_texts(scratch: Path, rounds: int) -> None:
    """Texts of 10 kB, as ratios to the imports."""
    commands = {"peer: " + PEER: ["-c", PEER]}
    for name, text in (("a missing library", CUDART), ("a GPU without code, solved", BLACKWELL), ("nothing known", "")):
        path = scratch / f"{len(commands)}.log"
        lines = list(ordinary_lines(SMALL - len(text)))
        path.write_text("".join((*lines[: len(lines) // 2], text, *lines[len(lines) // 2 :])), encoding="utf-8")
        commands[f"10 kB, {name}"] = ["-c", ENVSOLVE, "explain", str(path)]
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for arguments in commands.values():
        seconds_and_mebibytes(arguments)
    for _ in range(rounds):
        for name, arguments in commands.items():
            taken[name].append(seconds_and_mebibytes(arguments))
    peer = [seconds for seconds, _ in next(iter(taken.values()))]
    print("| text | median ms | ratio to peer | peak MiB |\n|---|---|---|---|")
    for name, figures in taken.items():
        ratio = statistics.median(own / other for (own, _), other in zip(figures, peer, strict=True))
        median = statistics.median(seconds for seconds, _ in figures) * 1000
        print(f"| {name} | {median:.0f} | {ratio:.2f} | {max(it for _, it in figures):.0f} |", flush=True)


def large_logs(scratch: Path, megabytes: int) -> None:
    """Logs of many megabytes, as ratios to grep."""
    words = scratch / "words.txt"
    words.write_text("".join(f"{word}\n" for word in anchors_of(Tables())), encoding="utf-8")
    print(f"\n| log of {megabytes} MB | s | grep s | ratio to grep | peak MiB |\n|---|---|---|---|---|")
    for name, write in LOGS.items():
        path = scratch / "large.log"
        write(path, megabytes * 1_000_000)
        explain = [sys.executable, "-P", "-c", ENVSOLVE, "explain", path]
        grep = ["grep", "-F", "-i", "-c", "-a", "-f", words, path]  # -a: it stops early in a log that is no text
        rounds = [(*_cost_of(explain), _cost_of(grep)[0]) for _ in range(LARGE_ROUNDS)]
        seconds, mebibytes, of_grep = map(statistics.median, zip(*rounds, strict=True))
        ratio = statistics.median(own / other for own, _, other in rounds)
        print(f"| {name} | {seconds:.2f} | {of_grep:.2f} | {ratio:.1f} | {mebibytes:.0f} |", flush=True)
        path.unlink()


def _cost_of(command: list[str | Path]) -> tuple[float, float]:
    """Processor seconds, which other work does not change, and peak MiB of one run. Its output goes to a file.

    grep would stop at the first line that it finds if its output were discarded.
    """
    with tempfile.TemporaryFile() as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def ordinary_lines(size: int) -> Iterator[str]:
    """Lines of a training, ``size`` bytes of them."""
    draw = random.Random(1)  # noqa: S311 - the same log each time
    left = size
    while left > 0:
        line = f"Epoch {draw.randrange(100)}/100 step {draw.randrange(10**6)} loss {draw.random():.6f} lr 0.0001\n"
        left -= len(line)
        yield line


def _ordinary(path: Path, size: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(ordinary_lines(size))
        file.write(CUDART)


def _never_alike(path: Path, size: int) -> None:
    draw = random.Random(4)  # noqa: S311
    words = ("epoch", "step", "loss", "accuracy", "training", "learning", "rate", "memory", "batch", "token", "layer")
    with path.open("w", encoding="utf-8") as file:
        left = size
        while left > 0:
            line = f"{draw.getrandbits(48):012x} {' '.join(draw.choices(words, k=8))} {draw.random():.6f}\n"
            left -= len(line)
            file.write(line)
        file.write(CUDART)


def _progress(path: Path, size: int) -> None:
    draw = random.Random(5)  # noqa: S311
    with path.open("w", encoding="utf-8") as file:
        left = size
        while left > 0:
            done = draw.randrange(100)
            bar = f"{'█' * (done // 3):33}| {draw.randrange(10**4)}/10000 [00:{draw.randrange(60):02}<00:12]"
            left -= file.write(f"\r{done:3}%|{bar}") + 2 * (done // 3)
        file.write("\n" + CUDART)


def _all_of_cuda(path: Path, size: int) -> None:
    draw = random.Random(2)  # noqa: S311
    with path.open("w", encoding="utf-8") as file:
        left = size
        while left > 0:
            word = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=12))
            line = f"cuda driver error {word}: cudnn status of {word[::-1]} in torch\n"
            left -= len(line)
            file.write(line)
        file.write(CUDART)


def _no_line_ends(path: Path, size: int) -> None:
    with path.open("wb") as file:
        for _ in range(size // len(_PIECE)):
            file.write(_PIECE)


def _no_text(path: Path, size: int) -> None:
    draw = random.Random(3)  # noqa: S311
    with path.open("wb") as file:
        for _ in range(size // len(_PIECE)):
            file.write(draw.randbytes(len(_PIECE)))


LOGS: dict[str, Callable[[Path, int], None]] = {
    "ordinary training output, an error at its end": _ordinary,
    "lines that never repeat": _never_alike,
    "a progress bar": _progress,
    "unlike lines that all name CUDA": _all_of_cuda,
    "one line": _no_line_ends,
    "random bytes": _no_text,
}

if __name__ == "__main__":
    raise SystemExit(main())
