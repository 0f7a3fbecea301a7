"""The main job in its own process, on machines simulated by the fake driver."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.fake_driver.builder import Device, FakeDriver

pytestmark = pytest.mark.thorough

RTX_3090 = Device("NVIDIA GeForce RTX 3090", "8.6", 24576)
RTX_5090 = Device("NVIDIA GeForce RTX 5090", "12.0", 32607)
GTX_1080_TI = Device("NVIDIA GeForce GTX 1080 Ti", "6.1", 11264)


def run(environ: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Envsolve on the machine that ``environ`` describes."""
    command = [sys.executable, "-m", "envsolve", *arguments]
    return subprocess.run(command, env=dict(environ), capture_output=True, text=True, check=False, timeout=60)


def test_the_main_job_reads_the_driver_and_prints_an_environment(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(driver="535.183.01", cuda="12.2", devices=[RTX_3090])
    done = run(environ, "--framework", "tensorflow", "--gpu", "auto")
    assert done.returncode == 0, done.stderr
    document = yaml.safe_load(done.stdout)
    assert document["name"] == "tensorflow-cuda12"
    assert any(spec.startswith("cudnn") for spec in document["dependencies"])
    assert "NVIDIA GeForce RTX 3090 (8.6)" in done.stdout


def test_two_kinds_of_gpus_get_one_build_for_both(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[GTX_1080_TI, RTX_5090])
    done = run(environ, "-f", "pytorch", "--format", "json")
    answer = json.loads(done.stdout)
    assert set(answer["frameworks"][0]["runs_as"]) == {"6.1", "12.0"}
    assert answer["host"]["origin"]["driver"] == "nvml"


def test_an_old_driver_is_reported_with_its_source(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(driver="550.163.01", cuda="12.4", devices=[Device("NVIDIA GeForce RTX 4090", "8.9")])
    done = run(environ, "-f", "pytorch==2.15.*")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "this machine has driver 550.163.01 (from nvml)" in done.stderr


def test_a_driver_option_overrides_detection(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(driver="550.163.01", cuda="12.4", devices=[RTX_3090])
    done = run(environ, "-f", "pytorch==2.15.*", "--driver", "580.65.06", "--format", "json")
    host = json.loads(done.stdout)["host"]
    assert (host["driver"], host["driver_cuda"], host["origin"]["driver"]) == ("580.65.06", "13.0", "--driver")


def test_a_hidden_gpu_still_counts(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(driver="580.65.06", cuda="13.0", devices=[RTX_3090], CUDA_VISIBLE_DEVICES="-1")
    done = run(environ, "-f", "pytorch", "--format", "json")
    assert json.loads(done.stdout)["cuda"] is not None
    assert "CUDA_VISIBLE_DEVICES" in done.stderr


def test_a_machine_with_a_broken_driver_needs_gpu_for_a_listing(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(fail={"nvmlInitWithFlags": 18, "cuInit": 803, "nvidia-smi": 18})
    done = run(environ, "matrix", "list", "--gpu", "auto")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: gpu-not-identified\n")
    assert "\n  envsolve matrix list --gpu 'RTX 3090'\n" in done.stderr
    assert "CPU environment" not in done.stderr


def test_a_broken_driver_never_results_in_a_cpu_environment(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(fail={"nvmlInitWithFlags": 18, "cuInit": 803, "nvidia-smi": 18})
    done = run(environ, "-f", "pytorch")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "gpu-not-identified" in done.stderr
    assert "--gpu none" in done.stderr


def test_a_named_gpu_works_with_a_broken_driver(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(fail={"nvmlInitWithFlags": 18, "cuInit": 803, "nvidia-smi": 18})
    assert run(environ, "-f", "pytorch", "--gpu", "RTX 3090").returncode == 0


def test_without_a_gpu_the_result_is_a_cpu_environment_with_one_note(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(parts=())
    if json.loads(run(environ, "detect", "--json").stdout)["status"] != "no-hardware":
        pytest.skip("this machine has an NVIDIA GPU of its own")
    done = run(environ, "-f", "tensorflow", "--gpu", "auto")
    assert done.returncode == 0
    assert yaml.safe_load(done.stdout)["name"] == "tensorflow-cpu"
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("note: no NVIDIA GPU was found")


def test_output_of_detect_is_input_for_host(fake_driver: FakeDriver, tmp_path: Path) -> None:
    environ = fake_driver.environ(driver="570.195.03", cuda="12.8", devices=[RTX_5090, RTX_5090])
    path = tmp_path / "host.json"
    assert run(environ, "detect", "-o", str(path)).returncode == 0
    here = run(environ, "-f", "pytorch", "--format", "json")
    there = run(fake_driver.environ(parts=()), "-f", "pytorch", "--host", str(path), "--format", "json")
    assert json.loads(there.stdout)["frameworks"] == json.loads(here.stdout)["frameworks"]
    assert json.loads(there.stdout)["host"]["gpus"][0]["count"] == 2


def test_detect_reports_every_fact_with_its_source(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(driver="580.65.06", cuda="13.0", devices=[RTX_3090])
    done = run(environ, "detect")
    assert done.returncode == 0
    assert "580.65.06  [nvml]" in done.stdout
    assert "NVIDIA GeForce RTX 3090 (compute capability 8.6)" in done.stdout
    assert "source libcuda" in done.stdout


def test_the_driver_of_this_machine_does_not_apply_to_another_system(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(driver="525.85.12", cuda="12.0", devices=[RTX_3090])
    done = run(environ, "-f", "pytorch", "--platform", "win-64", "--format", "json")
    assert json.loads(done.stdout)["host"]["driver"] is None
    assert "is ignored for win-64" in done.stderr


def test_a_hanging_nvml_does_not_hang_the_main_job(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(devices=[RTX_3090], hang=["nvmlInitWithFlags"], ENVSOLVE_PROBE_TIMEOUT="1")
    done = run(environ, "-f", "pytorch", "--format", "json")
    assert json.loads(done.stdout)["cuda"] is not None
