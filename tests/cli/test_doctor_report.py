"""``envsolve doctor --report``: Markdown for an issue, without personal data."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tests.cli.test_doctor import CPU_TORCH, doctor, environment, install
from tests.cli.test_end_to_end import RTX_3090
from tests.fake_driver.builder import FakeDriver

pytestmark = pytest.mark.thorough


@pytest.fixture
def environ(fake_driver: FakeDriver, tmp_path: Path) -> dict[str, str]:
    """A user's machine, with a token in a variable and a directory of another user in LD_LIBRARY_PATH."""
    variables = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    variables["LD_LIBRARY_PATH"] += f":{tmp_path}/home/lovelace/cuda:/home/babbage/cuda"
    secret = "--xla_dump_to=https://user:s3cr3t-t0ken@files.example.org/x"  # noqa: S105 - made up
    return {**variables, "HOME": f"{tmp_path}/home/lovelace", "USER": "lovelace", "XLA_FLAGS": secret}


def test_a_report_has_facts_and_findings(environ: dict[str, str], tmp_path: Path) -> None:
    prefix = environment(tmp_path / "home/lovelace/env", "2.8.0+cpu", CPU_TORCH)
    install(next(prefix.glob("lib/python*/site-packages")), "nvidia_cudnn_cu12", "my_secret_project")
    done = doctor(environ, "--prefix", str(prefix), "--report")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "## envsolve doctor"
    assert "| NVIDIA driver | 580.95.05 (CUDA 13.0) |" in lines
    assert "| GPU | 1 x NVIDIA GeForce RTX 3090 (8.6) |" in lines
    assert "| frameworks | pytorch 2.8.0+cpu |" in lines
    assert "#### error: cpu-build" in lines
    assert "torch 2.8.0+cpu pip" in lines
    assert "nvidia-cudnn-cu12 1.20.1" in lines
    assert "my-secret-project" not in done.stdout


def test_a_report_has_no_user_names_machine_names_or_secrets(environ: dict[str, str], tmp_path: Path) -> None:
    prefix = environment(tmp_path / "home/lovelace/env", "2.8.0+cpu", CPU_TORCH)
    report = doctor(environ, "--prefix", str(prefix), "--report").stdout
    assert "XLA_FLAGS=" in report
    for name in ("lovelace", "babbage", str(tmp_path), "s3cr3t", "files.example.org"):
        assert name not in report
    assert platform.node() not in report or len(platform.node()) < 2


def test_a_report_can_be_written_to_a_file(environ: dict[str, str], tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cpu", CPU_TORCH)
    done = doctor(environ, "--prefix", str(prefix), "--report", "-o", str(tmp_path / "report.md"))
    assert (done.returncode, done.stdout) == (1, "")
    assert (tmp_path / "report.md").read_text().startswith("## envsolve doctor\n")


def test_a_plan_in_a_file_names_that_file(environ: dict[str, str], tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cpu", CPU_TORCH)
    done = doctor(environ, "--prefix", str(prefix), "--fix-plan", "-o", str(tmp_path / "plan.txt"))
    assert (done.returncode, done.stdout) == (0, "")
    assert f"-r {tmp_path}/plan.txt" in (tmp_path / "plan.txt").read_text()
