"""Ten tasks of every day, by envsolve and by uv, each as a user types them in a new directory.

    .venv-test/bin/python -m benchmarks.daily

Packages come from the default index of uv, over the network, so seconds are those of one run and rough. Each tool has
a cache of its own that is empty at first. A task that uv has no command for is empty in its column.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.lock_tools import run

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parent.parent
LIMIT = 600.0
OF_3090 = "--source pypi --gpu 'RTX 3090' --driver 550.54.15 --python 3.11"


class Task(NamedTuple):
    """What a user wants, and what is typed for it in each tool's directory ``place``."""

    name: str
    place: str
    envsolve: str
    uv: str = ""


TASKS = (
    Task(
        "install the tool",
        "tool",
        f"{BIN}/uv venv -q e && {BIN}/uv pip install -q -p e {ROOT}",
        f"{BIN}/uv venv -q u && {BIN}/uv pip install -q -p u uv",
    ),
    Task(
        "lock PyTorch for an old GPU",
        "old",
        "envsolve -f pytorch --source pypi --gpu 'GTX 1080 Ti' --driver 550.54.15 --format requirements -o gpu.txt",
        "echo torch | uv pip compile -q --generate-hashes - -o gpu.txt",
    ),
    Task(
        "start and lock a project",
        "hf",
        f"envsolve init -f pytorch transformers datasets accelerate {OF_3090}",
        "uv init -q --bare --python 3.11 && uv add -q --no-sync torch transformers datasets accelerate",
    ),
    Task(
        "lock three frameworks with one CUDA",
        "three",
        f"envsolve -f pytorch -f tensorflow -f jax {OF_3090} --format requirements -o gpu.txt",
        "printf 'torch\\ntensorflow[and-cuda]\\njax[cuda12]\\n' |"
        " uv pip compile -q --generate-hashes --python-version 3.11 - -o gpu.txt",
    ),
    Task("add a package", "hf", "envsolve add pandas", "uv add -q --no-sync pandas"),
    Task(
        "lock for the CPU",
        "cpu",
        "envsolve init -f onnxruntime pandas --gpu none --source pypi --python 3.11",
        "uv init -q --bare --python 3.11 && uv add -q --no-sync onnxruntime pandas",
    ),
    Task("make the environment", "cpu", "envsolve sync", "uv sync -q"),
    Task(
        "run a program in it", "cpu", "envsolve run -- python -c 'import pandas'", "uv run -q python -c 'import pandas'"
    ),
    Task("lock again for a new driver", "hf", "sed -i s/550.54.15/580.65.06/ pyproject.toml && envsolve lock"),
    Task("check the lock in CI", "hf", "envsolve lock --check", "uv lock -q --check"),
    Task(
        "understand an error",
        "hf",
        "envsolve explain 'ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory'",
    ),
)


def main() -> None:
    """Do all tasks and print a Markdown table."""
    print("| task | envsolve | s | uv | s |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        for task in TASKS:
            cells = [cell for tool in ("envsolve", "uv") for cell in done(task, tool, Path(directory))]
            print(f"| {task.name} | {' | '.join(cells)} |", flush=True)


def done(task: Task, tool: str, directory: Path) -> tuple[str, str]:
    """The cells for ``tool``: what is typed, and its seconds with the exit code where it is not 0."""
    typed = task.envsolve if tool == "envsolve" else task.uv
    if not typed:
        return "", ""
    place = directory / tool / task.place
    place.mkdir(parents=True, exist_ok=True)
    variables = {"PATH": f"{BIN}:/usr/bin:/bin", "XDG_CACHE_HOME": str(directory / tool / "cache")}
    ran = run(["/bin/sh", "-c", typed], place, LIMIT, variables)
    if ran.status:
        print(ran.complaint, file=sys.stderr)
    shown = typed.replace(f"{BIN}/", "").replace(str(ROOT), ".").replace("|", "\\|")
    return f"`{shown}`", f"{ran.seconds:.1f}" + (f" (exit {ran.status})" if ran.status else "")


if __name__ == "__main__":
    main()
