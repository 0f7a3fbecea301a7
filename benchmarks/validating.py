"""What proving an environment costs, beside a bare process that imports the framework and multiplies two matrices.

    python -m benchmarks.validating [--rounds N] PYTHON...

Each PYTHON is the interpreter of an environment with frameworks, which run on the CPU. The two take turns, and each
round gives one ratio and one difference; what is printed are medians. The probes that need no framework (libraries,
files) are taken from what validate itself measures.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

BARE = {
    "pytorch": "import torch; (torch.ones(64, 64) @ torch.ones(64, 64)).sum().item()",
    "tensorflow": "import tensorflow as tf; tf.reduce_sum(tf.matmul(tf.ones((64, 64)), tf.ones((64, 64)))).numpy()",
    "jax": "import jax.numpy as np; (np.ones((64, 64)) @ np.ones((64, 64))).sum().item()",
    "onnxruntime": "import onnxruntime",
    "paddlepaddle": "import paddle; paddle.matmul(paddle.ones([64, 64]), paddle.ones([64, 64])).sum().item()",
}
"""A first use of each framework, as short as can be; of ONNX Runtime, which needs a model for one, its import."""


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print("| framework | validate, s | bare, s | ratio | more, s | libraries and files, s |")
    print("|---|---|---|---|---|---|")
    for python in given.pythons:
        for framework in installed(python):
            print(row(python, framework, given.rounds), flush=True)
    return 0


def installed(python: str) -> list[str]:
    """The frameworks of an environment that have a bare counterpart; a first, unmeasured run."""
    probes = validated(python)["probes"]
    return [probe["name"] for probe in probes if probe["name"] in BARE and probe["status"] == "pass"]


def row(python: str, framework: str, rounds: int) -> str:
    """One line of the table."""
    ratios, more, ours, theirs, others = [], [], [], [], []
    for _ in range(rounds):
        bare = seconds([python, "-c", BARE[framework]])
        started = time.perf_counter()
        probes = validated(python, "-f", framework)["probes"]
        whole = time.perf_counter() - started
        ours.append(whole)
        theirs.append(bare)
        ratios.append(whole / bare)
        more.append(whole - bare)
        others.append(sum(probe["seconds"] for probe in probes if probe["name"] in ("libraries", "files")))
    medians = (statistics.median(it) for it in (ours, theirs, ratios, more, others))
    return f"| {framework} | " + " | ".join(f"{it:.2f}" for it in medians) + " |"


def validated(python: str, *arguments: str) -> dict[str, Any]:
    """What envsolve validate says on the CPU."""
    command = [
        sys.executable,
        "-m",
        "envsolve",
        "validate",
        "--json",
        "--device",
        "cpu",
        "--python",
        python,
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def seconds(command: list[str]) -> float:
    """How long a command takes."""
    started = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
