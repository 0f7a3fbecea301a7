"""What conda itself does with the files, if it is installed: it solves or parses them, and downloads nothing."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conda.conftest import channel_server, mirror, mirrored
from tests.conda.server import ChannelServer
from tests.conftest import Envsolve

__all__ = ["channel_server", "mirror", "mirrored"]

_CONDA = shlex.split(os.environ.get("ENVSOLVE_TEST_CONDA") or shutil.which("conda") or "")
"""The command, which may be several words: ``python -m conda``."""
pytestmark = pytest.mark.skipif(not _CONDA, reason="no conda is installed, and ENVSOLVE_TEST_CONDA names none")
_WORDS = ("-f", "tensorflow", "--gpu", "8.6", "--driver", "550.163.01", "--platform", "linux-64")


@pytest.fixture
def settings(channel_server: ChannelServer, tmp_path: Path) -> dict[str, str]:
    """Variables that point conda to the recorded channels, for the machine that the files are for.

    The classic solver would add pip to any environment with Python.
    """
    condarc = tmp_path / "condarc"
    lines = ("channels: [conda-forge]", "default_channels: []", "add_pip_as_python_dependency: false")
    condarc.write_text("\n".join((f"channel_alias: {channel_server.url}", *lines)))
    chosen = {name: os.environ[name] for name in ("CONDA_SOLVER",) if name in os.environ}
    return {
        **chosen,
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "CONDARC": str(condarc),
        "CONDA_PKGS_DIRS": str(tmp_path / "pkgs"),
        "CONDA_ENVS_DIRS": str(tmp_path / "envs"),
        "CONDA_SUBDIR": "linux-64",
        "CONDA_OVERRIDE_CUDA": "12.4",
        "CONDA_OVERRIDE_GLIBC": "2.28",
        "CONDA_OVERRIDE_LINUX": "5.10",
    }


def test_conda_solves_an_exact_environment_to_the_same_packages(
    envsolve: Envsolve, mirrored: Path, settings: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "environment.yml"
    assert envsolve(*_WORDS, "--exact", "-o", str(file), "--no-cache").code == 0
    found = _conda(settings, "env", "create", "--dry-run", "--json", "--name", "one", "--file", str(file))
    requested = {line.strip(" -").split()[0] for line in file.read_text().splitlines() if line.startswith("  - ")}
    names = {f"{it['name']}={it['version']}={it['build_string']}" for it in found["actions"]["LINK"]}
    assert names == requested - {"conda-forge"}


def test_conda_parses_an_explicit_file(
    envsolve: Envsolve, mirrored: Path, settings: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "conda-linux-64.lock"
    assert envsolve(*_WORDS, "-o", str(file), "--no-cache").code == 0
    _conda(settings, "create", "--dry-run", "--name", "one", "--file", str(file))
    file.write_text(file.read_text().replace("#", "#not-a-digest-", 12))
    with pytest.raises(AssertionError):
        _conda(settings, "create", "--dry-run", "--name", "one", "--file", str(file))


def _conda(settings: dict[str, str], *words: str) -> Any:
    done = subprocess.run([*_CONDA, *words], env=settings, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout) if "--json" in words else None


def test_conda_doctor_runs_the_check_of_the_gpu_stack(settings: dict[str, str], tmp_path: Path) -> None:
    listed = subprocess.run([*_CONDA, "doctor", "--list"], env=settings, capture_output=True, text=True, check=True)
    if "gpu-stack" not in listed.stdout:
        pytest.skip("envsolve is not installed beside this conda")
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta" / "history").touch()
    done = subprocess.run(
        [*_CONDA, "doctor", "--prefix", str(tmp_path), "gpu-stack"],
        env=settings,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "gpu-stack: nothing is broken" in done.stdout
    assert "Error running health check" not in done.stderr
