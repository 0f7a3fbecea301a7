"""What uv resolves against the recorded index, to check the recording."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from uv import find_uv_bin

from scripts.index_recorder.walk import Resolution

PYTHON = "3.11.7"
PLATFORM = "x86_64-manylinux_2_28"
_NO_SOLUTION = 1


def compile_with_uv(index_url: str, requirements: Iterable[str], *options: str) -> subprocess.CompletedProcess[str]:
    """Let uv resolve ``requirements`` with wheels only; its output is a requirements file."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "requirements.in"
        source.write_text("".join(f"{it}\n" for it in requirements), "utf-8")
        command = [find_uv_bin(), "pip", "compile", "--no-config", "--no-header", "--no-annotate", "-q"]
        command += ["--python", sys.executable, "--cache-dir", f"{scratch}/cache", "--index-url", index_url]
        command += ["--python-version", PYTHON, "--python-platform", PLATFORM, "--only-binary", ":all:"]
        command += [*options, str(source)]
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_"))}
        environ = {**ours, "NO_PROXY": "127.0.0.1"}
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=120)


def pins_of(done: subprocess.CompletedProcess[str]) -> dict[str, str] | None:
    """Versions by name; None if uv finds no solution. Raises RuntimeError if it fails otherwise."""
    if done.returncode == _NO_SOLUTION and "No solution found" in done.stderr:
        return None
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    pins = [Requirement(line) for line in done.stdout.splitlines() if line and not line.startswith((" ", "#"))]
    return {pin.name: str(pin.specifier).removeprefix("==") for pin in pins}


def write_pins(path: Path, index_url: str, resolutions: Iterable[Resolution]) -> None:
    """Write what uv resolves; a resolution for which the index lacks metadata is left out and reported."""
    answers: dict[str, dict[str, str] | None] = {}
    for it in resolutions:
        try:
            answers[it.name] = pins_of(compile_with_uv(index_url, it.requirements))
        except RuntimeError as error:
            print(f"not resolved: {it.name}: {str(error).splitlines()[0]}")
    path.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n", "utf-8")
