"""An nvidia-smi that prints endlessly, hangs or prints control characters: envsolve ends soon, with clean output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_driver.builder import FakeDriver
from tests.host.child_detection import REPOSITORY, ran

pytestmark = pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a real driver")

DETECT = ("detect", "--json")
SOLVE = ("-f", "pytorch", "--json")
DOCTOR = ("doctor", "--json", "--python", sys.executable)


def with_nvidia_smi(driver: FakeDriver, tmp_path: Path, script: str) -> dict[str, str]:
    """A machine with nothing from NVIDIA but an nvidia-smi, which is this shell script."""
    program = tmp_path / "programs" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    environ = driver.environ(parts=[])
    return {**environ, "PATH": f"{program.parent}:{environ['PATH']}"}


@pytest.mark.thorough
@pytest.mark.parametrize("command", [DETECT, SOLVE, DOCTOR], ids=["detect", "solve", "doctor"])
@pytest.mark.parametrize("script", ["exec yes AAAAAAAAAAAAAAAA", "exec cat /dev/zero"])
def test_an_nvidia_smi_that_never_stops_printing_is_stopped(
    script: str, command: tuple[str, ...], fake_driver: FakeDriver, tmp_path: Path
) -> None:
    found = ran(with_nvidia_smi(fake_driver, tmp_path, script), tmp_path, *command)
    assert json.loads(found.out)
    assert "nvidia-smi printed more than 1 MB" in found.out + found.err
    assert found.memory < 256


@pytest.mark.thorough
def test_an_nvidia_smi_that_hangs_is_stopped(fake_driver: FakeDriver, tmp_path: Path) -> None:
    found = ran(with_nvidia_smi(fake_driver, tmp_path, "sleep 3600"), tmp_path, *DETECT)
    assert "nvidia-smi did not answer in time" in found.err


HEADER = "| NVIDIA-SMI 580.65.06  Driver Version: 580.65.06  CUDA Version: 13.0 |"
NAMES = {
    r"RED\033]0;t\007": r"RED\u001b]0;t\u0007",
    r"RTX \342\200\256 0903": r"RTX \u202e 0903",
    r"A\000B": r"A\u0000B",
}
"""Names as printf writes them, and what becomes of them."""


def smi_that_names(name: str) -> str:
    return f"[ $# = 0 ] && echo '{HEADER}' || printf '{name}, 8.6, 24576, [N/A]\\n'"


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_a_name_printed_by_nvidia_smi_is_cleaned(name: str, fake_driver: FakeDriver, tmp_path: Path) -> None:
    environ = with_nvidia_smi(fake_driver, tmp_path, smi_that_names(name))
    assert NAMES[name] in ran(environ, tmp_path, "detect").out
    assert json.loads(ran(environ, tmp_path, *DETECT).out)["gpus"][0]["name"] == NAMES[name]


def test_a_name_cannot_control_the_terminal(fake_driver: FakeDriver, tmp_path: Path) -> None:
    environ = with_nvidia_smi(fake_driver, tmp_path, smi_that_names(r"RED\033]0;t\007"))
    terminal, end = os.openpty()
    with os.fdopen(end, "wb") as output:
        subprocess.run(
            [sys.executable, "-m", "envsolve", "detect"],
            env={**environ, "PYTHONPATH": str(REPOSITORY), "TERM": "xterm"},
            stdout=output,
            stderr=output,
            check=True,
            timeout=60,
        )
        shown = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert "RED" in shown
    assert "\x1b" not in re.sub(r"\x1b\[[0-9;]*m", "", shown)


@pytest.mark.thorough
def test_a_long_name_is_cut(fake_driver: FakeDriver, tmp_path: Path) -> None:
    environ = with_nvidia_smi(fake_driver, tmp_path, smi_that_names("A" * 50_000))
    assert len(json.loads(ran(environ, tmp_path, *DETECT).out)["gpus"][0]["name"]) == 256
