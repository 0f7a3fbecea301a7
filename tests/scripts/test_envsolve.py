"""``scripts/envsolve`` finds its checkout from any directory, through any links."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose environment exists already, with an envsolve that prints its arguments."""
    root = tmp_path / "a checkout"
    (root / "scripts").mkdir(parents=True)
    for name in ("envsolve", "environment.sh"):
        shutil.copy(SCRIPTS / name, root / "scripts" / name)
    (root / "pyproject.toml").write_text("")
    program = root / ".venv" / "bin" / "envsolve"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$0" "$@"\n')
    program.chmod(0o755)
    stamp = subprocess.run(["cksum", root / "pyproject.toml"], capture_output=True, text=True, check=True).stdout
    (root / ".venv" / "stamp").write_text(stamp)
    return root


def linked(place: Path, target: Path | str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
    return place


def test_it_is_found_through_links(checkout: Path, tmp_path: Path) -> None:
    absolute = linked(tmp_path / "bin" / "absolute", checkout / "scripts" / "envsolve")
    relative = linked(tmp_path / "bin" / "relative", "../a checkout/scripts/envsolve")
    twice = linked(tmp_path / "other" / "bin" / "twice", relative)
    folder = linked(tmp_path / "other" / "scripts", checkout / "scripts") / "envsolve"
    for script in (checkout / "scripts" / "envsolve", absolute, relative, twice, folder):
        done = subprocess.run([script, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stdout == f"{checkout}/.venv/bin/envsolve --version\n", (script, done.stderr)
