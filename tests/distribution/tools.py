"""The tools that check published files, each run by uv in its own environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
NO_PARTS = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", "build", "tests", "benchmarks")
"""What of the checkout nothing is made of."""
SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
"""What ``shell: bash`` is (docs.github.com/actions/reference/workflow-syntax-for-github-actions, shell)."""
VERSIONS = {
    "check-wheel-contents": "0.6.3",
    "pipx": "1.18.4",
    "pre-commit": "4.7.0",
    "py-rattler-build": "0.73.0",
    "pyroma": "5.0.1",
    "twine": "7.0.0",
}


def call(*command: str | Path, cwd: Path, environ: Mapping[str, str] | None = None) -> str:
    """Run a command that must succeed; its stdout."""
    done = started(*command, cwd=cwd, environ=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def started(
    *command: str | Path, cwd: Path, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command, whatever its result."""
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=600)


def tool(name: str, program: str | None = None) -> list[str | Path]:
    """The arguments that run a program of a tool; without ``program`` it has the tool's name."""
    return [uv(), "tool", "run", "--quiet", "--from", f"{name}=={VERSIONS[name]}", program or name]


def uv() -> Path:
    """The uv of the environment that runs the tests."""
    return Path(sys.executable).with_name("uv.exe" if os.name == "nt" else "uv")
