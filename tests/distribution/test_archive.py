"""envsolve from an archive of its repository, as generated jobs and images install it from ENVSOLVE_URL."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from envsolve.project.ci_snippet import ci_commands
from tests.distribution.tools import NO_PARTS, ROOT, call, started, uv

pytestmark = [pytest.mark.wheel, pytest.mark.skipif(os.name == "nt", reason="the commands are for Linux")]

VERSION = "envsolve, version"


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of a shell with the address of an archive, as a forge makes it: everything is in one folder."""
    directory = tmp_path_factory.mktemp("archive")
    shutil.copytree(ROOT, directory / "files" / "envsolve-1a2b3c", ignore=NO_PARTS)
    archive = shutil.make_archive(str(directory / "1a2b3c"), "zip", directory / "files")
    return {**os.environ, "ENVSOLVE_URL": Path(archive).as_uri()}


def command_to_test(snapshot: str) -> str:
    """The command of the line ``# Prove`` of an image file in the container."""
    text = (ROOT / "tests/snapshots" / snapshot).read_text(encoding="utf-8")
    found = re.search(r"^# Test:  .* (?:NAME|NAME\.sif) (sh -c .*)$", text, re.MULTILINE)
    assert found
    return found[1]


@pytest.mark.parametrize("snapshot", ["python-lock-plain.Dockerfile", "python-lock-plain.def"])
def test_the_documented_command_installs_it_in_an_image(snapshot: str, environ: dict[str, str], tmp_path: Path) -> None:
    command = command_to_test(snapshot)
    for there, here in {"/usr/local/bin/python": sys.executable, "/tmp/v": str(tmp_path / "v")}.items():  # noqa: S108
        command = command.replace(there, here)
    assert "validate --python" in command
    command = re.sub(r"validate --python [^']+", "--version", command)
    assert call("/bin/sh", "-c", command, cwd=tmp_path, environ=environ).startswith(VERSION)
    assert started("/bin/sh", "-c", command, cwd=tmp_path, environ={**environ, "ENVSOLVE_URL": ""}).returncode != 0


def test_the_first_step_of_a_job_installs_it(environ: dict[str, str], tmp_path: Path) -> None:
    call(sys.executable, "-m", "venv", "venv", cwd=tmp_path)
    programs = tmp_path / "venv" / "bin"
    step, *_ = ci_commands(["pylock.toml"])
    call("/bin/sh", "-ec", step, cwd=tmp_path, environ={**environ, "PATH": f"{programs}{os.pathsep}{environ['PATH']}"})
    assert call(programs / "envsolve", "--version", cwd=tmp_path, environ=environ).startswith(VERSION)


def test_uv_runs_it_where_the_python_of_an_image_is_too_old(environ: dict[str, str], tmp_path: Path) -> None:
    command = f"{uv()} tool run --from envsolve@$ENVSOLVE_URL envsolve --version"
    assert call("/bin/sh", "-c", command, cwd=tmp_path, environ=environ).startswith(VERSION)
