"""The tools that read what is written, each in a process of its own: conda-lock is slow to import, and rattler may
crash where an interpreter ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

_ENVIRON = {name: locked for name, locked in os.environ.items() if not name.startswith(("CONDA", "MAMBA", "PIP_"))}
_RATTLER = """
import json, os, sys
from rattler import LockFile, MatchSpec
from rattler.explicit_environment import ExplicitEnvironmentSpec
asked = json.load(sys.stdin)
print(json.dumps({answer}))
sys.stdout.flush()
os._exit(0)
"""


def rattler(answer: str, requested: object) -> object:
    """The value of the expression ``answer`` in a process with rattler, in which ``requested`` is the argument."""
    command = [sys.executable, "-c", _RATTLER.replace("{answer}", answer)]
    done = subprocess.run(
        command, input=json.dumps(requested), env=_ENVIRON, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def conda_lock_renders(lock: str, folder: Path, platforms: tuple[str, ...]) -> dict[str, str]:
    """The output of conda-lock for a conda-lock.yml with all categories: ``linux-64`` explicit, ``linux-64.yml``."""
    path = folder / "conda-lock.yml"
    path.write_text(lock, encoding="utf-8")
    requested = [word for platform in platforms for word in ("-p", platform)]
    command = [sys.executable, "-m", "conda_lock", "render", "-k", "explicit", "-k", "env", "-e", "docs", *requested]
    done = subprocess.run(
        [*command, "--filename-template", "{platform}", path.name],
        cwd=folder,
        env=_ENVIRON,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return {it.name: it.read_text(encoding="utf-8") for it in folder.iterdir() if it != path}
