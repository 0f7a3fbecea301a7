"""The source archive and the wheel as users get them: checked, installed in scratch environments, run elsewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from envsolve import __version__
from tests.distribution.tools import NO_PARTS, ROOT, call, started, tool, uv

pytestmark = pytest.mark.wheel


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
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sdist")
    call(sys.executable, "-m", "build", "--sdist", "--outdir", directory, ROOT, cwd=directory)
    (found,) = directory.glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same checkout in another directory, an hour older, with other permissions."""
    copy = shutil.copytree(ROOT, tmp_path_factory.mktemp("elsewhere") / "checkout", ignore=NO_PARTS)
    for path in copy.rglob("*"):
        status = path.stat()
        os.utime(path, (status.st_atime, status.st_mtime - 3600))
        path.chmod(status.st_mode ^ 0o020)
    return copy


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    environment = tmp_path_factory.mktemp("scratch") / "venv"
    call(sys.executable, "-m", "venv", environment, cwd=environment.parent)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    call(scripts / "python", "-m", "pip", "install", "--quiet", wheel, cwd=environment.parent)
    return scripts


def test_it_contains_the_package_and_the_matrix_only(wheel: Path) -> None:
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


def test_its_metadata_can_be_published(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    call(*tool("twine"), "check", "--strict", wheel, sdist, cwd=tmp_path)


def test_check_wheel_contents_finds_nothing(wheel: Path, tmp_path: Path) -> None:
    call(*tool("check-wheel-contents"), wheel, cwd=tmp_path)


def test_pyroma_only_misses_the_undecided_addresses(sdist: Path, tmp_path: Path) -> None:
    result = started(*tool("pyroma"), sdist, cwd=tmp_path)
    complaints = [line for line in (result.stdout + result.stderr).splitlines() if line.startswith("Your package")]
    assert [re.findall(r"author-email|'url'", it) for it in complaints] == [["author-email"], ["'url'"]], result


def test_a_wheel_of_the_source_archive_is_the_same(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    again = zipfile.ZipFile(built(sdist, tmp_path))
    first = zipfile.ZipFile(wheel)
    assert {it.filename: it.CRC for it in again.infolist()} == {it.filename: it.CRC for it in first.infolist()}


def test_uvx_and_pipx_run_it(wheel: Path, tmp_path: Path) -> None:
    program = ("envsolve", "--version")
    environ = {**os.environ, "PIPX_HOME": str(tmp_path / "pipx"), "UV_TOOL_DIR": str(tmp_path / "uv")}
    for words in ([uv(), "tool", "run", "--from", wheel], [*tool("pipx"), "run", "--spec", wheel]):
        assert call(*words, *program, cwd=tmp_path, environ=environ).startswith(f"envsolve, version {__version__}")


def test_it_does_the_main_job_from_any_directory(scripts: Path, tmp_path: Path) -> None:
    text = call(
        scripts / "envsolve", "--framework", "tensorflow", "--gpu", "RTX 3090", "--driver", "535.183.01", cwd=tmp_path
    )
    assert yaml.safe_load(text)["name"] == "tensorflow-cuda12"


def test_its_matrix_keeps_its_laws(scripts: Path, tmp_path: Path) -> None:
    command = [str(scripts / "envsolve"), "matrix", "check", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)
