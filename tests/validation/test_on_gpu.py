"""A real GPU: every installed framework is tested on it.

    ENVSOLVE_TEST_FRAMEWORK_PYTHON=/a/bin/python:/b/bin/python scripts/test -m gpu

``scripts/record_validation.py`` writes down what is seen.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys

import pytest

from envsolve.frameworks import DEPENDENT_FRAMEWORKS

pytestmark = pytest.mark.gpu

PYTHONS = os.environ.get("ENVSOLVE_TEST_FRAMEWORK_PYTHON", sys.executable).split(os.pathsep)


@pytest.fixture(autouse=True)
def _gpu() -> None:
    """Skip without a driver, according to its library."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError as error:
        pytest.skip(f"no NVIDIA driver: {error}")
    code = driver.cuInit(0)
    if code:
        pytest.skip(f"the NVIDIA driver has no GPU for this process: cuInit says {code}")


@pytest.mark.parametrize("python", PYTHONS)
def test_an_environment_is_tested_on_every_gpu(python: str) -> None:
    command = [sys.executable, "-m", "envsolve", "validate", "--json", "--all-gpus", "--device", "cuda"]
    done = subprocess.run([*command, "--python", python], capture_output=True, text=True, check=False, timeout=1800)
    answer = json.loads(done.stdout)
    assert answer.get("ok"), json.dumps(answer.get("findings", answer), indent=2)
    assert answer["device"] == "cuda"
    assert all(library["owner"] != "system" for library in answer["libraries"])


@pytest.mark.parametrize("name", DEPENDENT_FRAMEWORKS)
@pytest.mark.parametrize("python", PYTHONS)
def test_a_dependent_framework_runs_its_own_kernel(python: str, name: str) -> None:
    command = [sys.executable, "-m", "envsolve", "validate", "--json", "-f", name, "--device", "cuda"]
    done = subprocess.run([*command, "--python", python], capture_output=True, text=True, check=False, timeout=1800)
    answer = json.loads(done.stdout)
    if answer.get("error", {}).get("code") == "framework-not-installed":
        pytest.skip(f"{python} has no {name}")
    (probe,) = [it for it in answer["probes"] if it["name"] == name]
    assert probe["status"] == "pass", json.dumps(answer["findings"], indent=2)
    assert probe["measured"]["operations"][0]["on_device"]
