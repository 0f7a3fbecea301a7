"""Adding a framework means adding files: a copy of envsolve with Lumen's files solves, locks and validates it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.binary.device_library import device_library
from tests.fake_driver.builder import Device, FakeDriver
from tests.index.packages import IndexFile, wheel
from tests.index.server import IndexServer
from tests.scripts.fat_binary import fat_binary

pytestmark = pytest.mark.thorough

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PLACES = {
    "framework.toml": "data/frameworks/lumen.toml",
    "releases.toml": "data/compat_matrix/lumen.toml",
    "probe.txt": "envsolve/validation/inside/on_lumen.py",
}
RTX_3090 = Device("NVIDIA GeForce RTX 3090", "8.6", 24576)
LINUX = "cp312-cp312-manylinux_2_17_x86_64"
FOR_GPU = ("--gpu", "8.6", "--driver", "580.65.06", "--platform", "linux-64", "--python", "3.12")
FOR_CPU = ("--gpu", "none", "--platform", "linux-64", "--python", "3.12")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with Lumen's files added and nothing else changed."""
    copy = tmp_path_factory.mktemp("added")
    for name in ("envsolve", "data"):
        shutil.copytree(ROOT / name, copy / name)
    for name, place in PLACES.items():
        assert not (copy / place).exists()
        shutil.copy(HERE / name, copy / place)
    return copy


def run(copy: Path, *words: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command line of that copy."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    given = inherited if environ is None else environ
    return subprocess.run(
        [sys.executable, "-m", "envsolve", *words],
        cwd=copy,
        env={**given, "PIP_CONFIG_FILE": os.devnull, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )


def done(copy: Path, *words: str) -> str:
    """The output of a command that must succeed."""
    result = run(copy, *words)
    assert result.returncode == 0, result.stderr
    return result.stdout


def lumen(name: str, build: str) -> IndexFile:
    """A wheel of Lumen; ``build`` is the module that states what it was built for."""
    module = (HERE / "module.txt").read_bytes()
    return wheel(name, "2.0", tags=LINUX, members={"lumen/__init__.py": module, "lumen/build.py": build.encode()})


def test_its_rows_satisfy_every_law(copy: Path) -> None:
    done(copy, "matrix", "check")
    rows = json.loads(done(copy, "matrix", "list", "-f", "lumen", "--json"))["releases"]
    assert {row["build"] for row in rows} == {"cuda12", "cpu"}


def test_it_is_solved_with_another_framework(copy: Path) -> None:
    text = done(copy, "-f", "lumen", "-f", "jax", *FOR_GPU, "--format", "environment")
    assert "lumen-gpu==2.0" in text
    assert "name: jax-lumen-cuda12" in text


@pytest.mark.parametrize(("target", "package"), [(FOR_GPU, "lumen-gpu"), (FOR_CPU, "lumen")])
def test_it_is_locked_under_any_of_its_names(copy: Path, target: tuple[str, ...], package: str) -> None:
    with IndexServer(recorded=False) as index:
        index.add("lumen-gpu", [lumen("lumen-gpu", "cuda = '12.6'\n")])
        index.add("lumen", [lumen("lumen", "cuda = None\n")])
        lock = (*target, "--format", "requirements", "--index-url", index.index_url)
        text = done(copy, "-f", "lumen", *lock)
        assert f"\n{package}==2.0 " in text
        again = done(copy, "lumen-gpu" if package == "lumen-gpu" else "lumen", *lock)
        assert f"\n{package}==2.0 " in again


def environment(directory: Path, name: str, build: str) -> Path:
    """A virtual environment with a wheel of Lumen."""
    prefix = directory / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    (site,) = prefix.glob("lib/python*/site-packages")
    archive = directory / f"{name}.zip"
    content = lumen(name, build).content
    assert content is not None
    archive.write_bytes(content)
    shutil.unpack_archive(archive, site)
    return prefix


def validated(copy: Path, prefix: Path, fake_driver: FakeDriver, *words: str) -> dict[str, Any]:
    """The report on an environment, on a machine with a GPU."""
    environ = fake_driver.environ(devices=[RTX_3090])
    answer: dict[str, Any] = json.loads(
        run(copy, "validate", "--prefix", str(prefix), "--json", *words, environ=environ).stdout
    )
    return answer


def test_its_probe_validates_it(copy: Path, tmp_path: Path, fake_driver: FakeDriver) -> None:
    prefix = environment(tmp_path, "lumen-gpu", "cuda = '12.6'\n")
    report = validated(copy, prefix, fake_driver, "--device", "cpu")
    status = {probe["name"]: probe["status"] for probe in report["probes"]}
    assert status["lumen"] == "pass", report


def test_a_build_without_cuda_is_recognised_by_its_files(copy: Path, tmp_path: Path, fake_driver: FakeDriver) -> None:
    prefix = environment(tmp_path, "lumen", "cuda = None\n")
    report = validated(copy, prefix, fake_driver, "--device", "cuda")
    (found,) = (it for it in report["findings"] if it["id"] == "cpu-build")
    assert found["about"] == "lumen"
    assert "lumen/build.py says cuda = None" in found["evidence"]


def test_missing_features_are_read_from_its_libraries(copy: Path, tmp_path: Path, fake_driver: FakeDriver) -> None:
    prefix = environment(tmp_path, "lumen-gpu", "cuda = '12.6'\n")
    (site,) = prefix.glob("lib/python*/site-packages")
    device_library(site / "lumen/liblumen.so", b"", soname="liblumen.so", needed=("libcufft.so.99",))
    device_library(site / "lumen/liblumen_cuda.so", fat_binary((90,)), soname="liblumen_cuda.so")
    report = validated(copy, prefix, fake_driver, "--device", "cuda")
    assert {it["id"]: it["title"] for it in report["findings"] if it["about"] == "lumen"} == {
        "library-missing": "Lumen does not find libcufft.so.99",
        "no-code-for-gpu": "Lumen has no code for GPUs of capability 8.6",
    }


def test_two_of_its_packages_in_one_environment_are_reported(copy: Path, tmp_path: Path) -> None:
    prefix = environment(tmp_path, "lumen-gpu", "cuda = '12.6'\n")
    (site,) = prefix.glob("lib/python*/site-packages")
    archive = tmp_path / "other.zip"
    archive.write_bytes(lumen("lumen", "cuda = None\n").content or b"")
    shutil.unpack_archive(archive, site)
    report = json.loads(run(copy, "doctor", "--prefix", str(prefix), "--json").stdout)
    assert "lumen 2.0 and lumen-gpu 2.0 both contain the module lumen" in [it["title"] for it in report["findings"]]
    assert [it["framework"] for it in report["inventory"]["frameworks"]] == ["lumen"]
