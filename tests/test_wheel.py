"""The wheel as users get it: built, installed in a scratch environment, run from another directory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.wheel


NO_PARTS = shutil.ignore_patterns(
    "__pycache__", ".git", ".ci", ".venv*", ".*_cache", ".hypothesis", "tests", "benchmarks"
)
"""What of the checkout no wheel is made of, or what is no part of it."""


def call(*command: str | Path, cwd: Path, environ: Mapping[str, str] | None = None) -> str:
    """Run a command that must succeed; its stdout."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def built(source: Path, directory: Path, epoch: str | None = None) -> Path:
    """The wheel of a checkout; ``epoch`` is the value of SOURCE_DATE_EPOCH, which is not set without it."""
    environ = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    environ |= {} if epoch is None else {"SOURCE_DATE_EPOCH": epoch}
    words = ("-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", directory, source)
    call(sys.executable, *words, cwd=directory, environ=environ)
    (found,) = directory.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same checkout at another place, an hour older, written by somebody with other permissions."""
    copy = shutil.copytree(ROOT, tmp_path_factory.mktemp("elsewhere") / "checkout", ignore=NO_PARTS)
    for path in copy.rglob("*"):
        told = path.stat()
        os.utime(path, (told.st_atime, told.st_mtime - 3600))
        path.chmod(told.st_mode ^ 0o020)
    return copy


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


@pytest.mark.parametrize("epoch", [None, "1767225600"])
def test_the_same_sources_give_the_same_bytes(
    epoch: str | None, wheel: Path, elsewhere: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = wheel if epoch is None else built(ROOT, tmp_path_factory.mktemp("dist"), epoch)
    again = built(ROOT, tmp_path_factory.mktemp("dist"), epoch)
    moved = built(elsewhere, tmp_path_factory.mktemp("dist"), epoch)
    assert first.name == again.name == moved.name
    assert again.read_bytes() == first.read_bytes()
    assert moved.read_bytes() == first.read_bytes()
    years = {it.date_time[0] for it in zipfile.ZipFile(first).infolist()}
    assert years == {2020 if epoch is None else 2026}, "the time of the build, or of a file, stands in it"


def test_it_does_the_main_job_from_anywhere(scripts: Path, tmp_path: Path) -> None:
    text = call(
        scripts / "envsolve", "--framework", "tensorflow", "--gpu", "RTX 3090", "--driver", "535.183.01", cwd=tmp_path
    )
    assert yaml.safe_load(text)["name"] == "tensorflow-cuda12"


def test_its_matrix_keeps_its_laws(scripts: Path, tmp_path: Path) -> None:
    command = [str(scripts / "envsolve"), "matrix", "check", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)
