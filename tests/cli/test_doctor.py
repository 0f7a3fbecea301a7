"""``envsolve doctor`` in its own process, on machines simulated by the fake driver and environments on disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from envsolve.diagnose.environment.examination import CHECKS as ENVIRONMENT_CHECKS
from envsolve.diagnose.machine.examination import CHECKS as MACHINE_CHECKS
from envsolve.index.requirement_file import read_requirement_file
from tests.cli.test_end_to_end import GTX_1080_TI, RTX_3090, RTX_5090
from tests.conftest import Envsolve
from tests.fake_driver.builder import FakeDriver
from tests.json_documents import require_documented

CPU_TORCH = {"torch/version.py": "__version__ = '2.8.0+cpu'\ncuda: Optional[str] = None\nhip = None\n"}
CUDA_TORCH = {"torch/version.py": "__version__ = '2.8.0+cu128'\ncuda: Optional[str] = '12.8'\nhip = None\n"}


def environment(directory: Path, version: str, files: Mapping[str, str], *, python: bool = True) -> Path:
    """A virtual environment with metadata of this version of PyTorch; nothing in it can be imported."""
    site = directory / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    package = site / f"torch-{version}.dist-info"
    package.mkdir(parents=True)
    listed = {**files, "torch/__init__.py": "raise SystemError('nobody may import it')\n"}
    for name, text in listed.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text)
    (package / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    (package / "INSTALLER").write_text("pip\n")
    (package / "RECORD").write_text("".join(f"{name},,\n" for name in (*listed, f"torch-{version}.dist-info/METADATA")))
    home = Path(sys.base_prefix) / "bin"
    version_here = f"{sys.version_info.major}.{sys.version_info.minor}"
    (directory / "pyvenv.cfg").write_text(
        f"home = {home}\nversion = {version_here}\ninclude-system-site-packages = false\n"
    )
    (directory / "bin").mkdir()
    (directory / "bin/python").symlink_to(home / "python3" if python else directory / "gone")
    return directory


def install(site: Path, *names: str) -> None:
    """Distributions in it, which only have metadata."""
    for name in names:
        (site / f"{name}-1.20.1.dist-info").mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.20.1\n"
        (site / f"{name}-1.20.1.dist-info" / "METADATA").write_text(metadata)


def doctor(environ: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "envsolve", "doctor", *arguments]
    return subprocess.run(command, env=dict(environ), capture_output=True, text=True, check=False, timeout=60)


def answered(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    require_documented(["doctor", "--json"], done.stdout)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.thorough
def test_the_json_matches_its_contract(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cu128", CUDA_TORCH)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    answer = answered(doctor(environ, "--prefix", str(prefix), "--json"))
    assert answer["host"]["driver"] == "580.95.05"
    assert {"libraries", "packages", "variables"} <= set(answer["inventory"])
    assert [it["name"] for it in answer["inventory"]["packages"]] == ["torch"]
    for finding in answer["findings"]:
        assert {"id", "title", "severity", "in_scope", "cause", "fix", "commands", "evidence"} <= set(finding)


@pytest.mark.thorough
def test_a_cpu_build_on_a_machine_with_a_gpu_is_an_error(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cpu", CPU_TORCH)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    done = doctor(environ, "--prefix", str(prefix), "--json")
    errors = [it["id"] for it in answered(done)["findings"] if it["severity"] == "error"]
    assert done.returncode == 1
    assert errors == ["cpu-build"]


UV_LOCK = (
    'version = 1\nrequires-python = ">=3.11"\n[[package]]\nname = "demo"\nsource = { virtual = "." }\n'
    'dependencies = [{ name = "torch" }]\n[[package]]\nname = "torch"\nversion = "2.9.1+cu130"\n'
    'source = { registry = "https://packages.example/simple" }\n'
    'wheels = [{ url = "https://packages.example/torch-2.9.1-cp312-none-any.whl", '
    f'hash = "sha256:{"a" * 64}" }}]\n'
)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="the build in the lock is one of Linux")
def test_the_uv_lock_in_the_directory_is_checked(fake_driver: FakeDriver, tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(UV_LOCK)
    prefix = environment(tmp_path / "env", "2.8.0+cu128", CUDA_TORCH)

    def findings(*words: str, **machine: Any) -> dict[str, dict[str, Any]]:
        environ = fake_driver.environ(**machine)
        command = [sys.executable, "-m", "envsolve", "doctor", "--json", *words]
        inherited = {key: it for key, it in environ.items() if key not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
        done = subprocess.run(
            command, env=inherited, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
        return {it["id"]: it for it in answered(done)["findings"]}

    old = findings(driver="570.124.06", cuda="12.8", devices=[RTX_3090])["lock-does-not-run-here"]
    assert old["severity"] == "warning"
    assert old["title"] == "What uv.lock locks does not run on this machine"
    assert "580.65.06" in old["cause"]
    assert old["fix"].startswith("Install NVIDIA driver 580.65.06 or newer")
    assert old["commands"] == ["envsolve status uv.lock"]
    pascal = findings(driver="580.95.05", cuda="13.0", devices=[GTX_1080_TI])["lock-does-not-run-here"]
    assert pascal["fix"] == "Lock builds that run on this machine."
    assert "lock-does-not-run-here" not in findings(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    named = findings("--prefix", str(prefix), driver="570.124.06", cuda="12.8", devices=[RTX_3090])
    assert "lock-does-not-run-here" not in named
    (tmp_path / "uv.lock").write_text(UV_LOCK.replace("+cu130", "+cpu"))
    alone = findings(driver="580.95.05", cuda="13.0", devices=[RTX_3090])["lock-does-not-run-here"]
    assert alone["title"] == "uv.lock runs only on the CPU"
    (tmp_path / "uv.lock").write_text("no lock")
    assert "lock-does-not-run-here" not in findings(driver="580.95.05", cuda="13.0", devices=[RTX_3090])


@pytest.mark.thorough
def test_junit_has_a_case_for_each_check(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cpu", CPU_TORCH)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    done = doctor(environ, "--prefix", str(prefix), "--output-format", "junit")
    suite = ET.fromstring(done.stdout)  # noqa: S314 - our own
    (failed,) = (case for case in suite if case.find("failure") is not None)
    assert failed.get("name") == "environment: the frameworks and the libraries they load"
    assert suite.get("tests") == str(len(MACHINE_CHECKS) + len(ENVIRONMENT_CHECKS) + 2)
    assert len({case.get("name") for case in suite}) == len(suite)


@pytest.mark.thorough
def test_a_build_without_code_for_the_gpu_is_an_error_without_running_it(
    fake_driver: FakeDriver, tmp_path: Path
) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cu128", CUDA_TORCH)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[GTX_1080_TI])
    done = doctor(environ, "--prefix", str(prefix), "--json")
    found = {it["id"]: it for it in answered(done)["findings"]}
    assert done.returncode == 1
    assert "no-code-for-gpu" in found
    assert "6.1" in found["no-code-for-gpu"]["title"]


@pytest.mark.thorough
def test_the_plan_is_an_environment_for_this_machine(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cu128", CUDA_TORCH)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[GTX_1080_TI])
    done = doctor(environ, "--prefix", str(prefix), "--fix-plan")
    assert done.returncode == 0, done.stderr
    assert "\ntorch==2.8.0+cu126 " in done.stdout
    assert "\n--extra-index-url https://download.pytorch.org/whl/cu126\n" in done.stdout
    assert "GTX 1080 Ti (6.1)" in done.stdout


@pytest.mark.thorough
def test_the_plan_for_a_conda_environment_uses_conda(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cu128", CUDA_TORCH)
    (prefix / "conda-meta").mkdir()
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[GTX_1080_TI])
    done = doctor(environ, "--prefix", str(prefix), "--fix-plan")
    assert done.returncode == 0, done.stderr
    document = yaml.safe_load(done.stdout)
    assert any(str(spec).startswith("pytorch=2.8") for spec in document["dependencies"])
    assert "GTX 1080 Ti (6.1)" in done.stdout


@pytest.mark.thorough
def test_the_plan_for_a_venv_is_valid_for_pip(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cu128", CUDA_TORCH)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[GTX_1080_TI])
    done = doctor(environ, "--prefix", str(prefix), "--fix-plan")
    assert done.stdout.splitlines()[1] == f"#   envsolve doctor --prefix {prefix} --fix-plan"
    file = tmp_path / "requirements.in"
    file.write_text(done.stdout)
    requirements = read_requirement_file(str(file))
    assert "torch==2.8.0+cu126" in [line.text for line in requirements.requirements]
    assert requirements.extra_index_urls == ("https://download.pytorch.org/whl/cu126",)


@pytest.mark.thorough
def test_packages_that_a_plan_would_overwrite_are_uninstalled_first(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cu128", CUDA_TORCH)
    (site,) = prefix.glob("lib/python*/site-packages")
    install(site, "onnxruntime", "numpy")
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    done = doctor(environ, "--prefix", str(prefix), "--fix-plan")
    assert done.returncode == 0, done.stderr
    assert f"\n#   uv pip uninstall --python {prefix}/bin/python onnxruntime\n" in done.stdout


@pytest.mark.thorough
def test_if_nothing_can_be_tested_another_way_is_suggested(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cu128", CUDA_TORCH)
    shutil.rmtree(next(prefix.glob("lib/python*/site-packages")))
    gpu = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    assert doctor(gpu, "--prefix", str(prefix)).stdout.endswith("to test the GPU\n")
    without = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[])
    (last,) = doctor(without, "--prefix", str(prefix)).stdout.splitlines()[-1:]
    assert "it has no framework to test: `envsolve --framework pytorch` prints" in last
    assert "validate" not in last


@pytest.mark.thorough
def test_a_plan_needs_a_framework(fake_driver: FakeDriver, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    (tmp_path / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    (tmp_path / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages").mkdir(parents=True)
    done = doctor(environ, "--prefix", str(tmp_path), "--fix-plan")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: nothing-to-plan\n")


def test_a_plan_and_findings_are_separate_in_json(envsolve: Envsolve) -> None:
    assert json.loads(envsolve("doctor", "--fix-plan", "--json").out)["error"]["code"] == "contradictory-options"


@pytest.mark.thorough
def test_an_environment_without_its_python_is_examined_by_its_files(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cpu", CPU_TORCH, python=False)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    done = doctor(environ, "--prefix", str(prefix), "--json")
    errors = {it["id"] for it in answered(done)["findings"] if it["severity"] == "error"}
    assert done.returncode == 1
    assert {"interpreter-broken", "cpu-build"} <= errors


@pytest.mark.thorough
def test_nothing_is_written(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cpu", CPU_TORCH)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    before = _state(prefix)
    doctor(environ, "--prefix", str(prefix))
    assert _state(prefix) == before


@pytest.mark.thorough
def test_a_hanging_driver_does_not_hang_the_doctor(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cpu", CPU_TORCH)
    environ = fake_driver.environ(
        driver="580.95.05", cuda="13.0", devices=[RTX_3090], hang=("cuInit",), ENVSOLVE_PROBE_TIMEOUT="0.7"
    )
    done = doctor(environ, "--prefix", str(prefix), "--json")
    assert answered(done)["host"]["readings"]


@pytest.mark.thorough
def test_secrets_in_variables_are_masked(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cpu", CPU_TORCH)
    flags = "--xla_dump_to=https://user:s3cr3t-t0ken@example.org"
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090], XLA_FLAGS=flags)
    done = doctor(environ, "--prefix", str(prefix), "--json")
    assert "XLA_FLAGS" in answered(done)["inventory"]["variables"]
    assert "s3cr3t" not in done.stdout


@pytest.mark.thorough
def test_a_removed_working_directory_does_not_matter(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cpu", CPU_TORCH)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    (tmp_path / "gone").mkdir()
    command = f'cd "{tmp_path}/gone" && rmdir ../gone && exec "{sys.executable}" -m envsolve doctor --prefix "{prefix}"'
    environ |= {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(["sh", "-c", command], env=environ, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("error: cpu-build\n"), done.stderr


@pytest.mark.thorough
def test_a_program_that_is_not_python_is_no_environment(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    done = doctor(environ, "--python", "/bin/ls")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: python-not-usable\n")


@pytest.mark.thorough
def test_the_text_ends_with_a_summary(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cpu", CPU_TORCH)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    done = doctor(environ, "--prefix", str(prefix))
    assert done.stdout.startswith("error: cpu-build\n")
    assert f"{prefix}: 1 error" in done.stdout.splitlines()[-1]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--prefix", "no-such-directory"), "python-not-found"),
        (("--prefix", ".", "--python", "python"), "contradictory-options"),
    ],
)
def test_unreadable_environments_are_one_clear_error(arguments: tuple[str, ...], code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "envsolve", "doctor", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {code}\n")


def _state(directory: Path) -> dict[str, tuple[int, int]]:
    paths = (path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in paths}


@pytest.mark.thorough
def test_a_plan_keeps_the_python_of_the_environment(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cu128", CUDA_TORCH)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    done = doctor(environ, "--prefix", str(prefix), "--fix-plan")
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"\n# Resolved for: Python {minor}\n" in done.stdout
    assert f"\n#   uv pip install --python {prefix}/bin/python -r THIS_FILE " in done.stdout
    assert "cannot stay" not in done.stderr


@pytest.mark.thorough
def test_a_plan_with_another_python_gives_the_reason_in_one_line(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "1.12.1+cu116", CUDA_TORCH, python=False)
    (prefix / "pyvenv.cfg").write_text("home = /nonexistent\nversion = 3.13.1\n")
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    done = doctor(environ, "--prefix", str(prefix), "--fix-plan")
    (line,) = [it for it in done.stderr.splitlines() if "cannot stay" in it]
    assert done.returncode == 0
    assert line.startswith("note: Python 3.13 cannot stay: pytorch 1.12.")
    assert "was built for Python" in line
    assert "\ntorch==1.12.1" in done.stdout


@pytest.mark.thorough
def test_a_plan_with_another_python_is_for_a_new_environment(fake_driver: FakeDriver, tmp_path: Path) -> None:
    """Nothing installed conflicts with it."""
    prefix = environment(tmp_path / "env", "1.12.1+cu116", CUDA_TORCH, python=False)
    (prefix / "pyvenv.cfg").write_text("home = /nonexistent\nversion = 3.13.1\n")
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    done = doctor(environ, "--prefix", str(prefix), "--fix-plan")
    assert "\n#   python3.10 -m venv NEW_ENV\n#   NEW_ENV/bin/python -m pip install -r THIS_FILE\n" in done.stdout
    assert "uninstall" not in done.stdout


@pytest.mark.thorough
def test_a_plan_with_another_version_gives_the_reason_and_keeps_the_python(
    fake_driver: FakeDriver, tmp_path: Path
) -> None:
    prefix = environment(tmp_path / "env", "1.12.1+cu116", CUDA_TORCH, python=False)
    (prefix / "pyvenv.cfg").write_text("home = /nonexistent\nversion = 3.12.1\n")
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_5090])
    done = doctor(environ, "--prefix", str(prefix), "--fix-plan")
    (line,) = [it for it in done.stderr.splitlines() if "cannot stay" in it]
    assert done.returncode == 0
    assert line.startswith("note: the installed versions cannot stay: pytorch 1.12.")
    assert "\n# Resolved for: Python 3.12\n" in done.stdout


@pytest.mark.thorough
def test_a_plan_covers_a_framework_known_only_from_its_files(fake_driver: FakeDriver, tmp_path: Path) -> None:
    """Some packages of conda have no Python metadata."""
    prefix = environment(tmp_path / "env", "2.8.0+cu128", CUDA_TORCH)
    (folder,) = prefix.glob("lib/python*/site-packages/torch-*.dist-info")
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    done = doctor(environ, "--prefix", str(prefix), "--fix-plan")
    assert "\ntorch==2.8.0" in done.stdout, done.stderr


@pytest.mark.thorough
def test_printed_commands_work_as_they_are(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "my env", "2.8.0+cu128", CUDA_TORCH)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[GTX_1080_TI])
    done = doctor(environ, "--prefix", str(prefix))
    plan = f"envsolve doctor --prefix '{prefix}' --fix-plan"
    assert f"  {plan}\n" in done.stdout
    assert f"`envsolve validate --prefix '{prefix}'` to test the GPU" in done.stdout.splitlines()[-1]
    planned = subprocess.run(
        ["sh", "-c", plan.replace("envsolve", f"'{sys.executable}' -m envsolve", 1)],
        env={**environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout.startswith("# Made by envsolve")


@pytest.mark.thorough
def test_nothing_can_be_tested_if_the_python_does_not_run(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cpu", CPU_TORCH, python=False)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    assert "it has no Python of its own that runs" in doctor(environ, "--prefix", str(prefix)).stdout.splitlines()[-1]


@pytest.mark.thorough
def test_a_variable_for_a_removed_environment_is_a_warning(fake_driver: FakeDriver, tmp_path: Path) -> None:
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090], VIRTUAL_ENV=f"{tmp_path}/gone")
    answer = answered(doctor(environ, "--json"))
    (found,) = [it for it in answer["findings"] if it["id"] == "stale-activation"]
    assert (found["severity"], found["commands"]) == ("warning", ["unset VIRTUAL_ENV"])
    assert answer["inventory"]["prefix"] != f"{tmp_path}/gone"


@pytest.mark.thorough
def test_sources_of_facts_are_shown_on_request(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cu128", CUDA_TORCH)
    secret = "--xla_dump_to=https://user:s3cr3t-t0ken@example.org"  # noqa: S105 - made up
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090], XLA_FLAGS=secret)
    lines = doctor(environ, "--prefix", str(prefix), "-v").stdout.splitlines()
    assert "driver: 580.95.05 [nvml]" in lines
    assert "driver CUDA: 13.0 [libcuda]" in lines
    assert "GPU: NVIDIA GeForce RTX 3090 (8.6) [nvml]" in lines
    assert f"environment: {prefix} [--prefix]" in lines
    assert any(it.startswith("Python: 3.") and it.endswith(" [its interpreter]") for it in lines)
    assert any(it.startswith("variable: XLA_FLAGS=") and it.endswith(" [the shell]") for it in lines)
    assert "variable: VIRTUAL_ENV [activating the environment]" in lines
    assert "s3cr3t" not in "".join(lines)
    plain = doctor(environ, "--prefix", str(prefix)).stdout
    assert "[nvml]" not in plain
