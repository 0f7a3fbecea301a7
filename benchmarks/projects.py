"""What locking a project again costs when nothing has changed, beside ``uv lock`` in a project of the same wishes.

    .venv-test/bin/python -m benchmarks.projects [ROUNDS]

Both ask the same loopback index of small made-up packages. The tools take turns, as in ``startup.py``; each has locked
the project once, which is not counted.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cli.worlds import fill
from tests.index.server import IndexServer

PROJECT = """\
[project]
name = "demo"
version = "1"
requires-python = ">=3.11,<3.12"
dependencies = ["numpy", "torch==2.8.0", "torchvision"]

[tool.uv]
index-url = "{url}/simple/"
package = false

[tool.envsolve]
project-dependencies = true
index-url = "{url}/simple/"
platforms = ["linux-64"]
gpus = ["RTX 3090"]
driver = "580.65.06"
outputs = ["requirements.txt", "pylock.toml"]
"""
BIN = Path(sys.executable).parent
COMMANDS = {
    "uv lock": (str(BIN / "uv"), "lock"),
    "uv lock --check": (str(BIN / "uv"), "lock", "--check"),
    "envsolve lock": (str(BIN / "envsolve"), "lock"),
    "envsolve lock --check": (str(BIN / "envsolve"), "lock", "--check"),
    "envsolve lock --no-cache": (str(BIN / "envsolve"), "lock", "--no-cache"),
}


def main(rounds: int) -> None:
    """Lock, then time locking again, and print a Markdown table."""
    with TemporaryDirectory() as directory, IndexServer(recorded=False) as server:
        fill(server)
        place = Path(directory)
        (place / "pyproject.toml").write_text(PROJECT.format(url=server.url), encoding="utf-8")
        environ = {
            **os.environ,
            "HOME": directory,
            "XDG_CACHE_HOME": f"{directory}/cache",
            "PIP_CONFIG_FILE": os.devnull,
        }
        taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
        for number in range(rounds + 1):
            for name, command in COMMANDS.items():
                start = time.perf_counter()
                subprocess.run(command, cwd=place, env=environ, check=True, capture_output=True)
                if number:
                    taken[name].append(time.perf_counter() - start)
    peer = taken["uv lock"]
    print("| command | median ms | ratio to uv lock |")
    print("|---|---|---|")
    for name, seconds in taken.items():
        ratio = statistics.median(own / other for own, other in zip(seconds, peer, strict=True))
        print(f"| `{name}` | {statistics.median(seconds) * 1000:.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
