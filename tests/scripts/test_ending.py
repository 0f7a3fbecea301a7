"""How the scripts end if they cannot continue: an interrupt, or a full disk."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts.refresh_matrix import ROOT
from tests.matrix.tiny import tiny_matrix
from tests.scripts.served import ServedIndex
from tests.scripts.tables import component_table
from tests.scripts.wheels import torch_wheel

pytestmark = pytest.mark.thorough

EMPTY = 'schema_version = 1\nupdated = "2026-01-05"\nframework = "pytorch"\naliases = ["torch"]\n'
SCRIPTS = pytest.mark.parametrize(
    "script", ["refresh_matrix.py", pytest.param("check_matrix.py", marks=pytest.mark.thorough)]
)
"""They end by the same code; each is a process."""


@pytest.fixture
def matrix(index: ServedIndex, tmp_path: Path) -> Path:
    """A matrix without rows, and an index with many wheels."""
    index.add(*(torch_wheel(f"2.{minor}.0", cuda=None) for minor in range(12)))
    matrix = tmp_path / "matrix"
    matrix.mkdir()
    tiny_matrix(matrix)
    (matrix / "cuda_components.toml").write_text(component_table(), encoding="utf-8")
    (matrix / "pytorch.toml").write_text(EMPTY, encoding="utf-8")
    return matrix


def _command(script: str, matrix: Path, index_url: str) -> list[str]:
    place = ["--matrix", str(matrix), "--index-url", index_url]
    return [sys.executable, str(ROOT / "scripts" / script), "pytorch", *place]


def _environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}


@SCRIPTS
def test_an_interrupt_stops_it_at_once_without_a_message(
    script: str, matrix: Path, index: ServedIndex, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        index.files_at = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        process = subprocess.Popen(
            _command(script, matrix, index.endpoint),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(tmp_path),
        )
        silent.settimeout(30)
        connection, _ = silent.accept()
        with connection:
            started = time.monotonic()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert time.monotonic() - started < 5
    assert (out, [line for line in err.splitlines() if line and not line.startswith("seed ")]) == ("", [])
    assert (matrix / "pytorch.toml").read_text(encoding="utf-8") == EMPTY
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("matrix", "cache")] == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
@SCRIPTS
def test_a_full_disk_is_one_clear_error(script: str, matrix: Path, index: ServedIndex, tmp_path: Path) -> None:
    command = _command(script, matrix, index.endpoint)
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=_environment(tmp_path)
        )
        assert ran.returncode == 3
        errors = [line for line in ran.stderr.splitlines() if not line.startswith(("read ", "seed "))]
        assert errors == ["error: the output cannot be written: No space left on device"]
        assert (matrix / "pytorch.toml").read_text(encoding="utf-8") == EMPTY
        assert (
            subprocess.run(command, stdout=full, stderr=full, check=False, env=_environment(tmp_path)).returncode == 3
        )


@SCRIPTS
def test_it_is_an_executable_program(script: str, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        [ROOT / "scripts" / script, "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "--index-url" in ran.stdout


@SCRIPTS
def test_a_wrong_option_is_named(script: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / script), "--nonsense"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "No such option" in ran.stderr


def test_an_unwritable_folder_is_one_clear_error(matrix: Path, index: ServedIndex, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("", encoding="utf-8")
    command = _command("refresh_matrix.py", matrix, index.endpoint)
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment(tmp_path))
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.endswith(" cannot be written: Not a directory\n")
    assert ran.stderr.count("\n") == 1
