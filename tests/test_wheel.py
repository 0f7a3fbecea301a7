"""The wheel as users get it: built, installed in a scratch environment, run from another directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.wheel


def call(*command: str | Path, cwd: Path) -> str:
    """Run a command that must succeed; its stdout."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", directory, ROOT, cwd=directory)
    (built,) = directory.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    environment = tmp_path_factory.mktemp("scratch") / "venv"
    call(sys.executable, "-m", "venv", environment, cwd=environment.parent)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    call(scripts / "python", "-m", "pip", "install", "--quiet", wheel, cwd=environment.parent)
    return scripts


def test_it_holds_the_package_and_the_matrix_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"envsolve"}
    matrix = {Path(name).name for name in names if "/_compat_matrix/" in name}
    assert {"tensorflow.toml", "pytorch.toml", "jax.toml", "cuda.toml", "cudnn.toml", "gpus.toml"} <= matrix
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".marshal"))]
    assert "envsolve/py.typed" in names


def test_it_does_the_main_job_from_anywhere(scripts: Path, tmp_path: Path) -> None:
    text = call(
        scripts / "envsolve", "--framework", "tensorflow", "--gpu", "RTX 3090", "--driver", "535.183.01", cwd=tmp_path
    )
    assert yaml.safe_load(text)["name"] == "tensorflow-cuda12"


def test_its_matrix_keeps_its_laws(scripts: Path, tmp_path: Path) -> None:
    command = [str(scripts / "envsolve"), "matrix", "check", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)
