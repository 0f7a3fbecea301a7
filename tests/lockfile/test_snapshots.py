"""Whole outputs, byte for byte. After an intended change: ENVSOLVE_UPDATE_SNAPSHOTS=1 scripts/test tests/lockfile."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from envsolve import __version__
from tests.conftest import Envsolve

pytestmark = pytest.mark.thorough

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
HOSTS = Path(__file__).parents[1] / "hosts"


class Case(NamedTuple):
    """A command line and the file with its complete output."""

    file: str
    arguments: tuple[str, ...]


CASES = [
    Case("tensorflow-rtx-3090.yml", ("-f", "tensorflow", "--gpu", "RTX 3090", "--driver", "535.183.01")),
    Case("pytorch-gtx-1080-ti.yml", ("-f", "pytorch", "--gpu", "GTX 1080 Ti", "--driver", "580.65.06")),
    Case("pytorch-pascal-and-blackwell.yml", ("-f", "pytorch", "--gpu", "6.1", "--gpu", "12.0", "--driver", "580")),
    Case("jax-v100-wheels.yml", ("-f", "jax", "--gpu", "V100", "--driver", "535.183.01", "--source", "pypi")),
    Case("pytorch-wheels-cu126.yml", ("-f", "torch", "--gpu", "K80", "--driver", "470.256.02", "--source", "pytorch")),
    Case("tensorflow-windows.yml", ("-f", "tf", "--gpu", "8.6", "--driver", "566.36", "--platform", "win-64")),
    Case("tensorflow-cpu.yml", ("-f", "tensorflow", "--gpu", "none", "--platform", "linux-64")),
    Case(
        "two-frameworks.yml",
        (
            "-f",
            "pytorch",
            "-f",
            "jax",
            "--gpu",
            "7.0",
            "--driver",
            "580.65.06",
            "-c",
            "https://example.org/conda-forge",
        ),
    ),
    Case("jax-cuda13-wheels.yml", ("-f", "jax", "--gpu", "12.0", "--driver", "580.65.06", "--source", "pypi")),
    Case(
        "jax-releases-cuda11.yml",
        ("-f", "jax==0.4.13", "--gpu", "7.5", "--driver", "470.256.02", "--source", "jax-releases"),
    ),
    Case(
        "tensorflow-wheel-without-cuda.yml",
        ("-f", "tensorflow==2.9.*", "--gpu", "7.5", "--driver", "470.256.02", "--source", "pypi"),
    ),
    Case("onnxruntime-wheel.yml", ("-f", "ort==1.26.*", "--gpu", "8.0", "--driver", "535.183.01", "--source", "pypi")),
    Case("paddlepaddle.yml", ("-f", "paddle==2.6.*", "--gpu", "8.6", "--driver", "535.183.01")),
    Case(
        "cupy-wheel-without-cuda.yml",
        ("-f", "cupy==13.6.0", "--gpu", "8.0", "--driver", "535.183.01", "--cuda", "12.*", "--source", "pypi"),
    ),
    Case("cupy.yml", ("-f", "cupy", "--gpu", "8.6", "--driver", "535.183.01", "--source", "conda-forge")),
    Case("cupy-wheel.yml", ("-f", "cupy", "--gpu", "9.0", "--driver", "580.65.06", "--source", "pypi")),
    Case(
        "other-indexes.yml",
        (
            *("-f", "pytorch", "--gpu", "8.6", "--driver", "535.183.01", "--source", "pytorch"),
            *("--index-url", "http://127.0.0.1:8080/simple", "--extra-index-url", "http://127.0.0.1:8081/simple"),
        ),
    ),
    Case(
        "pytorch-wheel-named-by-its-folder.yml",
        ("-f", "torch==1.1.0", "--gpu", "7.0", "--driver", "411.31", "--source", "pytorch", "--platform", "win-64"),
    ),
    Case(
        "pytorch-wheel-from-the-page-of-links.yml",
        ("-f", "torch==1.7.1", "--gpu", "8.0", "--driver", "450.80.02", "--source", "pytorch"),
    ),
    Case(
        "pytorch-channel.yml",
        ("-f", "pytorch", "--gpu", "8.6", "--driver", "535.183.01", "--source", "pytorch-channel"),
    ),
    Case(
        "pytorch-channel-cudatoolkit.yml",
        (
            *("-f", "pytorch==1.12.*", "--gpu", "8.6", "--driver", "470.256.02", "--source", "pytorch-channel"),
            *("-c", "https://example.org/conda-forge"),
        ),
    ),
    Case(
        "two-hosts.json",
        (
            *("-f", "pytorch", "--json"),
            *("--host", "tests/hosts/rtx-3090-535.183.01.json", "--host", "tests/hosts/v100-580.65.06.json"),
        ),
    ),
    Case("pytorch-gtx-1080-ti.json", ("-f", "pytorch", "--gpu", "6.1", "--driver", "580.65.06", "--format", "json")),
    Case("driver-too-old.json", ("-f", "pytorch==2.15.*", "--gpu", "8.9", "--driver", "550.163.01", "--json")),
]


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SNAPSHOTS.parents[1])


@pytest.mark.parametrize("case", CASES, ids=[case.file for case in CASES])
def test_the_output_equals_the_recorded_one(case: Case, envsolve: Envsolve) -> None:
    result = envsolve(*case.arguments)
    text = result.out.replace(__version__, "VERSION")
    path = SNAPSHOTS / case.file
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", [case for case in CASES if case.file.endswith(".yml")], ids=lambda case: case.file)
def test_an_environment_file_is_valid_yaml_of_conda(case: Case, envsolve: Envsolve) -> None:
    document = yaml.safe_load(envsolve(*case.arguments).out)
    assert list(document) == ["name", "channels", "dependencies"]
    assert all(isinstance(channel, str) for channel in document["channels"])
    specs = [spec for spec in document["dependencies"] if isinstance(spec, str)]
    assert specs[0].startswith("python=")
    assert all("#" not in spec and spec.strip() == spec for spec in specs)
    for spec in document["dependencies"]:
        if isinstance(spec, dict):
            assert "pip" in specs
            assert all(isinstance(line, str) for line in spec["pip"])


@pytest.mark.parametrize("case", CASES, ids=[case.file for case in CASES])
def test_two_runs_give_the_same_bytes(case: Case, envsolve: Envsolve) -> None:
    assert envsolve(*case.arguments).out == envsolve(*case.arguments).out


@pytest.mark.parametrize("host", sorted(HOSTS.glob("*.json")), ids=lambda path: path.stem)
@pytest.mark.parametrize("framework", ["tensorflow", "pytorch", "jax"])
def test_every_recorded_host_gets_an_environment_or_a_clear_refusal(
    host: Path, framework: str, envsolve: Envsolve
) -> None:
    result = envsolve("-f", framework, "--host", str(host))
    assert result.code in (0, 1)
    assert bool(result.out) is (result.code == 0)
    if result.code == 1:
        assert result.err.startswith("error: ")
        assert "hint: " in result.err
