"""``envsolve validate`` on simulated machines, with a PyTorch that behaves as configured."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.binary.device_library import device_library
from tests.conftest import Envsolve
from tests.fake_driver.builder import Device, FakeDriver
from tests.json_documents import require_documented
from tests.scripts.fat_binary import fat_binary
from tests.validation.compiled import CUDART, compiled
from tests.validation.test_child import until

ROOT = Path(__file__).parents[2]
DOUBLES = ROOT / "tests/validation/doubles"
H200 = Device("NVIDIA H200", "9.0", 143771)
RTX_3090 = Device("NVIDIA GeForce RTX 3090", "8.6", 24576)


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty virtual environment."""
    prefix = tmp_path_factory.mktemp("environments") / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    return prefix


@pytest.fixture
def with_torch(bare: Path, tmp_path: Path) -> Path:
    """A virtual environment with metadata of PyTorch; the double is found on PYTHONPATH."""
    prefix = tmp_path / "environment"
    shutil.copytree(bare, prefix, symlinks=True)
    metadata = site_of(prefix) / "torch-2.13.0.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    return prefix


def site_of(prefix: Path) -> Path:
    (site,) = (prefix / "lib").glob("python*/site-packages")
    return site


def machine(fake_driver: FakeDriver, **more: Any) -> dict[str, str]:
    """The environment variables of a machine whose Python finds the doubles."""
    given: dict[str, Any] = {"devices": [RTX_3090], "PYTHONPATH": f"{DOUBLES}{os.pathsep}{ROOT}", **more}
    return fake_driver.environ(**given)


def run(environ: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "envsolve", "validate", *arguments]
    return subprocess.run(command, env=dict(environ), capture_output=True, text=True, check=False, timeout=120)


def validated(environ: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    """The output of --json; the exit code must agree with it."""
    done = run(environ, "--json", *arguments)
    require_documented(["validate", "--json"], done.stdout)
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    assert done.returncode == (0 if answer["ok"] else 1), done.stderr
    return answer


def statuses(answer: Mapping[str, Any]) -> dict[str, str]:
    return {probe["name"]: probe["status"] for probe in answer["probes"]}


@pytest.mark.thorough
def test_a_gpu_with_correct_results_passes(fake_driver: FakeDriver, with_torch: Path) -> None:
    answer = validated(machine(fake_driver), "--prefix", str(with_torch))
    assert answer["ok"]
    assert answer["device"] == "cuda"
    assert answer["host"]["gpus"][0]["compute_capability"] == "8.6"
    found = statuses(answer)
    assert (found["driver"], found["pytorch"]) == ("pass", "pass")
    operations = next(it for it in answer["probes"] if it["name"] == "pytorch")["measured"]["operations"]
    assert [it["name"] for it in operations if it["ok"]] == [
        "element-wise",
        "matmul",
        "convolution",
        "convolution-backward",
        "training",
        "run-time-compilation",
    ]


@pytest.mark.thorough
def test_a_dependent_framework_runs_its_kernel_with_the_other(fake_driver: FakeDriver, with_torch: Path) -> None:
    metadata = site_of(with_torch) / "vllm-0.33.0.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.33.0\n")
    words = ("--prefix", str(with_torch))
    right, wrong = machine(fake_driver), machine(fake_driver, ENVSOLVE_TEST_TORCH="wrong-silu")
    assert statuses(validated(right, *words))["vllm"] == "pass"
    assert {"pytorch", "vllm"} <= statuses(validated(right, *words, "-f", "vllm")).keys()
    assert "vllm on GPU 0" in statuses(validated(right, *words, "--all-gpus"))
    assert "vllm" not in statuses(validated(right, *words, "-f", "pytorch"))
    answer = validated(wrong, *words)
    assert (statuses(answer)["pytorch"], statuses(answer)["vllm"], answer["ok"]) == ("pass", "fail", False)
    assert "vllm" not in statuses(validated(right, *words, "--device", "cpu"))
    assert "SGLang is not installed" in run(right, *words, "-f", "sglang").stderr


@pytest.mark.thorough
def test_text_output_has_a_line_per_probe_and_every_finding_with_its_fix(
    fake_driver: FakeDriver, with_torch: Path
) -> None:
    done = run(machine(fake_driver, ENVSOLVE_TEST_TORCH="no-kernel"), "--prefix", str(with_torch))
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("pass  driver")
    assert any(line.startswith("fail  pytorch") for line in lines)
    assert "error: extension-without-code" in lines
    assert any(line.startswith("fix: ") for line in lines)
    assert lines[-1] == f"{with_torch}/bin/python: not proven, pytorch failed"
    assert done.stderr == ""


@pytest.mark.thorough
def test_wrong_results_of_the_driver_fail_and_frameworks_are_skipped(fake_driver: FakeDriver, with_torch: Path) -> None:
    answer = validated(machine(fake_driver, kernel="wrong"), "--prefix", str(with_torch))
    assert statuses(answer)["driver"] == "fail"
    assert statuses(answer)["pytorch"] == "skip"


@pytest.mark.thorough
def test_a_failing_driver_compiler_leaves_frameworks_to_be_tested(fake_driver: FakeDriver, with_torch: Path) -> None:
    answer = validated(machine(fake_driver, fail={"cuModuleLoadDataEx": 222}), "--prefix", str(with_torch))
    assert (statuses(answer)["driver"], statuses(answer)["pytorch"]) == ("fail", "pass")
    assert not answer["ok"]


@pytest.mark.thorough
def test_without_a_driver_a_gpu_environment_does_not_pass(fake_driver: FakeDriver, with_torch: Path) -> None:
    (site_of(with_torch) / "nvidia_cublas_cu12-12.6.4.1.dist-info").mkdir()
    environ = machine(fake_driver, parts=())
    done = run(environ, "--prefix", str(with_torch))
    assert done.returncode == 1
    assert "error: driver-library-missing" in done.stdout
    assert "no NVIDIA GPU is here: there is no CUDA driver library" in done.stdout
    assert "use --device cpu to test on the CPU" in done.stderr


@pytest.mark.thorough
def test_without_nvidia_components_the_cpu_is_tested(fake_driver: FakeDriver, with_torch: Path) -> None:
    answer = validated(machine(fake_driver, parts=()), "--prefix", str(with_torch))
    assert answer["ok"]
    assert answer["device"] == "cpu"
    assert statuses(answer) == {
        "driver": "skip",
        "libraries": "skip",
        "files": "skip",
        "pytorch": "pass",
        "loaded": "skip",
    }


@pytest.mark.thorough
def test_a_cpu_build_on_a_machine_with_a_gpu_is_reported(fake_driver: FakeDriver, with_torch: Path) -> None:
    modules = site_of(with_torch) / "torch"
    modules.mkdir()
    (modules / "__init__.py").touch()
    (modules / "version.py").write_text("__version__ = '2.13.0+cpu'\ncuda = None\n")
    environ = machine(fake_driver, ENVSOLVE_TEST_TORCH="cpu-build")
    answer = validated(environ, "--prefix", str(with_torch))
    assert (statuses(answer)["files"], statuses(answer)["pytorch"]) == ("fail", "fail")
    assert [finding["id"] for finding in answer["findings"]] == ["cpu-build"]
    on_cpu = validated(environ, "--prefix", str(with_torch), "--device", "cpu")
    assert on_cpu["ok"]
    assert any("this machine has an NVIDIA GPU" in note["text"] for note in on_cpu["notes"])


@pytest.mark.thorough
def test_a_cpu_build_that_another_package_requires_is_not_held_against_the_environment(
    fake_driver: FakeDriver, with_torch: Path
) -> None:
    """faster-whisper requires onnxruntime, for a small network on the CPU."""
    site = site_of(with_torch)
    for name, needs in (("onnxruntime", ""), ("faster_whisper", "Requires-Dist: onnxruntime<2,>=1.14\n")):
        folder = site / f"{name}-1.2.3.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2.3\n{needs}")
    answer = validated(machine(fake_driver), "--prefix", str(with_torch))
    assert answer["ok"]
    assert "onnxruntime" not in statuses(answer)
    assert [note["code"] for note in answer["notes"]] == ["cpu-dependency"]
    assert "that faster-whisper requires" in answer["notes"][0]["text"]
    (site / "onnxruntime-1.2.3.dist-info/REQUESTED").touch()
    requested = validated(machine(fake_driver), "--prefix", str(with_torch))
    assert statuses(requested)["onnxruntime"] == "fail"
    assert "cpu-build" in {finding["id"] for finding in requested["findings"]}


@pytest.mark.thorough
def test_a_planted_library_in_front_of_that_of_the_environment_is_found(
    fake_driver: FakeDriver, with_torch: Path, tmp_path: Path
) -> None:
    compiled(site_of(with_torch) / "nvidia/cuda_runtime/lib/libcudart.so.12", CUDART.format(number=12060))
    planted = compiled(tmp_path / "planted/libcudart.so.12", CUDART.format(number=12020))
    environ = machine(fake_driver, ENVSOLVE_TEST_LOADS="libcudart.so.12")
    environ["LD_LIBRARY_PATH"] = f"{planted.parent}:{environ['LD_LIBRARY_PATH']}"
    answer = validated(environ, "--prefix", str(with_torch))
    assert statuses(answer)["loaded"] == "fail"
    (library,) = (it for it in answer["libraries"] if it["soname"] == "libcudart.so.12")
    assert library == {"soname": "libcudart.so.12", "path": str(planted), "owner": "system", "version": "12.2"}
    assert "foreign-library" in {finding["id"] for finding in answer["findings"]}


@pytest.mark.thorough
def test_a_compatibility_library_that_the_driver_refuses_is_named(
    fake_driver: FakeDriver, with_torch: Path, tmp_path: Path
) -> None:
    """As on an H200 with driver 580.159.04 and cuda-compat 580.95.05 before it."""
    library = tmp_path / "cuda-13.0/compat/libcuda.so.580.65.01"
    library.parent.mkdir(parents=True)
    shutil.copy(fake_driver.library("libcuda"), library)
    library.with_name("libcuda.so.1").symlink_to(library.name)
    environ = machine(fake_driver, fail={"cuInit": 803})
    environ["LD_LIBRARY_PATH"] = f"{library.parent}:{environ['LD_LIBRARY_PATH']}"
    answer = validated(environ, "--prefix", str(with_torch))
    (finding,) = answer["findings"]
    assert (finding["id"], finding["severity"]) == ("stale-compat-library", "error")
    assert "Remove the cuda-compat package" in finding["fix"]
    assert any("CUDA error 803" in line for line in finding["evidence"])
    assert next(it["detail"] for it in answer["probes"] if it["name"] == "pytorch") == "not tried: stale-compat-library"


@pytest.mark.thorough
def test_the_stub_of_the_toolkit_is_one_finding(fake_driver: FakeDriver, with_torch: Path, tmp_path: Path) -> None:
    stub = tmp_path / "cuda/lib64/stubs/libcuda.so.1"
    stub.parent.mkdir(parents=True)
    shutil.copy(fake_driver.library("libcuda"), stub)
    environ = machine(fake_driver, fail={"cuInit": 34})
    environ["LD_LIBRARY_PATH"] = f"{stub.parent}:{environ['LD_LIBRARY_PATH']}"
    answer = validated(environ, "--prefix", str(with_torch))
    assert [it["id"] for it in answer["findings"]] == ["stub-driver-library"]
    assert any(str(stub) in line for line in answer["findings"][0]["evidence"])


@pytest.mark.thorough
def test_a_variable_that_forces_ptx_is_the_cause_of_missing_code(fake_driver: FakeDriver, with_torch: Path) -> None:
    """As on an H200, where PyTorch, JAX and CuPy fail with it."""
    environ = machine(fake_driver, ENVSOLVE_TEST_TORCH="no-kernel", CUDA_FORCE_PTX_JIT="1")
    answer = validated(environ, "--prefix", str(with_torch))
    (finding,) = answer["findings"]
    assert (finding["id"], finding["severity"]) == ("ptx-compilation-forced", "error")
    assert finding["commands"] == ["unset CUDA_FORCE_PTX_JIT"]
    assert any("no kernel image" in line for line in finding["evidence"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("more", "expected", "times"),
    [
        pytest.param({"ENVSOLVE_TEST_TORCH": "wrong-matmul"}, "wrong-result", 0, id="that nothing can explain"),
        pytest.param({"fail": {"cuInit": 999}}, "driver-unknown-error", 1, id="that something may explain"),
        pytest.param(
            {"fail": {"nvmlInitWithFlags": 999, "cuInit": 999}}, "driver-unknown-error", 1, id="of a machine known well"
        ),
    ],
)
def test_the_machine_is_detected_thoroughly_at_most_once_and_only_for_a_failure(
    fake_driver: FakeDriver, with_torch: Path, tmp_path: Path, more: dict[str, Any], expected: str, times: int
) -> None:
    """nvidia-smi, which only a thorough detection or an incomplete one starts, counts how often it is started."""
    started = tmp_path / "started"
    counting = tmp_path / "bin/nvidia-smi"
    counting.parent.mkdir()
    environ = machine(fake_driver, **more)
    real = shutil.which("nvidia-smi", path=environ["PATH"])
    counting.write_text(f"#!/bin/sh\ntest $# -gt 0 || echo once >> '{started}'\nexec '{real}' \"$@\"\n")
    counting.chmod(0o755)
    environ["PATH"] = f"{counting.parent}:{environ['PATH']}"
    answer = validated(environ, "--prefix", str(with_torch))
    assert expected in {finding["id"] for finding in answer["findings"]}
    assert (started.read_text() if started.exists() else "").count("once") == times


@pytest.mark.thorough
def test_a_part_of_cudnn_whose_file_is_gone_names_its_package(fake_driver: FakeDriver, with_torch: Path) -> None:
    site = site_of(with_torch)
    name = "nvidia/cudnn/lib/libcudnn_cnn.so.9"
    compiled(site / name, "extern int of_the_lost_part(void); int (*call)(void) = of_the_lost_part;")
    folder = site / "nvidia_cudnn_cu12-9.10.2.21.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: nvidia-cudnn-cu12\nVersion: 9.10.2.21\n")
    (folder / "RECORD").write_text(f"{name},,\n{name.replace('cnn.so', 'ops.so')},,\n")
    environ = machine(fake_driver, ENVSOLVE_TEST_TORCH="cudnn")
    answer = validated(environ, "--prefix", str(with_torch))
    (finding,) = answer["findings"]
    assert (finding["id"], finding["severity"], finding["about"]) == (
        "package-files-missing",
        "error",
        "nvidia-cudnn-cu12",
    )
    assert {it["name"]: it["finding"] for it in answer["probes"] if it["status"] == "fail"} == {
        "libraries": "package-files-missing",
        "pytorch": "package-files-missing",
    }
    assert any("undefined symbol: of_the_lost_part" in line for line in finding["evidence"])
    (command,) = finding["commands"]
    assert command.startswith(f"uv pip install --python {with_torch}/bin/python ")


@pytest.mark.thorough
def test_a_package_without_code_for_the_gpu_fails(fake_driver: FakeDriver, with_torch: Path) -> None:
    site = site_of(with_torch)
    folder = site / "kernels-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: kernels\nVersion: 1.0\nRequires-Dist: torch\n")
    (folder / "RECORD").write_text("kernels/_C.so,,400\n")
    (site / "kernels").mkdir()
    (site / "kernels/_C.so").write_bytes(b"\x7fELF" + fat_binary((90,)))
    answer = validated(machine(fake_driver), "--prefix", str(with_torch))
    assert statuses(answer)["packages"] == "fail"
    assert ("no-code-for-gpu", "kernels") in {(it["id"], it["about"]) for it in answer["findings"]}
    assert "packages" not in statuses(validated(machine(fake_driver, devices=[H200]), "--prefix", str(with_torch)))


@pytest.mark.thorough
def test_two_cuda_majors_in_one_process_are_found(fake_driver: FakeDriver, with_torch: Path) -> None:
    nvidia = site_of(with_torch) / "nvidia"
    twelve = compiled(nvidia / "cuda_runtime/lib/libcudart.so.12", CUDART.format(number=12060))
    thirteen = compiled(nvidia / "cu13/lib/libcudart.so.13", CUDART.format(number=13000))
    environ = machine(fake_driver, ENVSOLVE_TEST_LOADS=f"{twelve} {thirteen}")
    answer = validated(environ, "--prefix", str(with_torch))
    assert "two-cuda-majors" in {finding["id"] for finding in answer["findings"]}
    assert statuses(answer)["loaded"] == "fail"


@pytest.mark.thorough
def test_every_gpu_is_tested_and_the_bad_one_named(fake_driver: FakeDriver, with_torch: Path) -> None:
    environ = machine(fake_driver, devices=[H200, H200, H200], kernel="wrong@1")
    answer = validated(environ, "--prefix", str(with_torch), "--all-gpus")
    assert statuses(answer)["driver"] == "fail"
    found = {name: status for name, status in statuses(answer).items() if name.startswith("pytorch")}
    assert found == {"pytorch on GPU 0": "pass", "pytorch on GPU 1": "skip", "pytorch on GPU 2": "pass"}


@pytest.mark.thorough
def test_one_gpu_is_selected_by_its_number(fake_driver: FakeDriver, with_torch: Path) -> None:
    environ = machine(fake_driver, devices=[H200, H200], kernel="wrong@0")
    answer = validated(environ, "--prefix", str(with_torch), "--device", "cuda:1")
    assert statuses(answer)["driver"] == "pass"
    assert statuses(answer)["pytorch on GPU 1"] == "pass"


@pytest.mark.thorough
def test_a_missing_gpu_is_a_finding(fake_driver: FakeDriver, bare: Path) -> None:
    answer = validated(machine(fake_driver), "--prefix", str(bare), "--device", "cuda:5")
    assert statuses(answer)["driver"] == "fail"


@pytest.mark.thorough
def test_an_interrupt_ends_the_probes_with_a_message(fake_driver: FakeDriver, with_torch: Path, tmp_path: Path) -> None:
    environ = machine(fake_driver, hang=["cuInit"], TMPDIR=str(tmp_path))
    command = [sys.executable, "-m", "envsolve", "validate", "--prefix", str(with_torch)]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: any('"cuInit' in _text_of(it) for it in tmp_path.glob("envsolve-answer-*/answer")))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err.strip()) == (130, "", "interrupted")
    assert list(tmp_path.glob("envsolve-answer-*")) == []


def _text_of(path: Path) -> str:
    """What a probe has printed so far; empty if it has ended."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


@pytest.mark.thorough
def test_junit_has_a_case_for_each_probe(fake_driver: FakeDriver, with_torch: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    environ = machine(fake_driver, ENVSOLVE_TEST_TORCH="wrong-matmul")
    done = run(environ, "--prefix", str(with_torch), "--junit", str(report))
    assert done.returncode == 1
    suite = ET.parse(report).getroot()  # noqa: S314 - our own
    assert (suite.get("tests"), suite.get("failures")) == ("5", "1")
    (failed,) = (case for case in suite if case.find("failure") is not None)
    assert failed.get("name") == "pytorch"
    failure = failed.find("failure")
    assert failure is not None
    assert failure.text is not None
    assert "error: wrong-result" in failure.text


@pytest.mark.thorough
def test_failures_are_items_in_the_formats_of_ci_systems(fake_driver: FakeDriver, with_torch: Path) -> None:
    environ = machine(fake_driver, ENVSOLVE_TEST_TORCH="wrong-matmul")
    done = run(environ, "--prefix", str(with_torch), "--output-format", "sarif")
    assert done.returncode == 1
    (result,) = json.loads(done.stdout)["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("wrong-result", "error")
    assert "\ncause: " in result["message"]["text"]


@pytest.mark.thorough
def test_an_environment_without_frameworks_notes_that_nothing_was_computed(fake_driver: FakeDriver, bare: Path) -> None:
    done = run(machine(fake_driver), "--prefix", str(bare))
    assert done.returncode == 0
    assert "has no framework that envsolve knows" in done.stderr


@pytest.mark.thorough
def test_missing_frameworks_are_named(envsolve: Envsolve, bare: Path) -> None:
    done = envsolve("validate", "--prefix", str(bare), "-f", "vllm")
    assert (done.code, "PyTorch and vLLM are not installed in" in done.err) == (2, True)
    done = envsolve("validate", "--prefix", str(bare), "-f", "jax")
    assert (done.code, "JAX is not installed in" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--device", "cuda:first"), "usage"),
        (("--device", "cuda:0", "--all-gpus"), "contradictory-options"),
        (("--prefix", ".", "--python", "python3"), "contradictory-options"),
        (("--prefix", "no/such/place"), "python-not-found"),
        (("--python", "no-such-python"), "python-not-found"),
        (("-f", "keras"), "unknown-framework"),
        (("--device", "tpu"), "usage"),
        (("--burn", "-1"), "usage"),
        (("--burn", "nan"), "usage"),
        (("--timeout", "nan"), "usage"),
        (("--timeout", "inf"), "usage"),
        (("--device", "cuda:4294967296"), "usage"),
        (("--device", "cuda:0", "--device", "cpu"), "contradictory-options"),
        (("--device", "cpu:1"), "usage"),
        (("--all-gpus", "--device", "cpu"), "contradictory-options"),
        (("--junit", "-"), "usage"),
        (("--junit", "no/such/place/report.xml"), "output-not-writable"),
        (("--prefix", "x" * 300), "python-not-found"),
    ],
)
def test_a_mistake_is_one_clear_error(envsolve: Envsolve, arguments: tuple[str, ...], code: str) -> None:
    done = envsolve("validate", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert f"error: {code}" in done.err


@pytest.mark.parametrize(
    ("typed", "meant"), [("vLLM==0.30", "vllm"), ("torch>=2", "pytorch"), ("tensorflw", "tensorflow")]
)
def test_a_framework_without_a_probe_suggests_another_name(envsolve: Envsolve, typed: str, meant: str) -> None:
    done = envsolve("validate", "-f", typed)
    assert done.code == 2
    assert f"hint: did you mean {meant}?\n  envsolve validate -f {meant}\n" in done.err


@pytest.mark.thorough
def test_settings_of_other_commands_are_ignored(fake_driver: FakeDriver, with_torch: Path) -> None:
    others = {"ENVSOLVE_GPU": "8.6", "ENVSOLVE_PYTHON": "3.11", "ENVSOLVE_FRAMEWORK": "tensorflow"}
    assert validated(machine(fake_driver, **others), "--prefix", str(with_torch))["ok"]


def test_an_old_python_is_reported(envsolve: Envsolve, tmp_path: Path) -> None:
    program = tmp_path / "python"
    answers = "*version_info*) echo '[3, 6]' > \"$3\";;"
    program.write_text(f"#!/bin/sh\ncase \"$*\" in {answers} *) exec {sys.executable} -c 'x = (';; esac\n")
    program.chmod(0o755)
    done = envsolve("validate", "--python", str(program))
    assert (done.code, done.err.partition("\n")[0]) == (2, "error: python-too-old")


@pytest.mark.thorough
def test_naming_a_gpu_implies_the_gpu_device(fake_driver: FakeDriver, with_torch: Path) -> None:
    answer = validated(machine(fake_driver, parts=()), "--prefix", str(with_torch), "--device", "cuda:0")
    assert answer["device"] == "cuda"
    assert not answer["ok"]


@pytest.mark.thorough
def test_a_display_card_beside_the_tested_gpu_does_not_matter(fake_driver: FakeDriver, with_torch: Path) -> None:
    modules = site_of(with_torch) / "torch"
    (modules / "lib").mkdir(parents=True)
    (modules / "__init__.py").touch()
    (modules / "version.py").write_text("__version__ = '2.13.0+cu126'\ncuda = '12.6'\n")
    device_library(modules / "lib/libtorch_cuda.so", fat_binary((86,)))
    environ = machine(fake_driver, devices=[RTX_3090, Device("NVIDIA GeForce GT 710", "3.5", 2048)])
    answer = validated(environ, "--prefix", str(with_torch), "--device", "cuda:0")
    assert not [it for it in answer["findings"] if it["id"] == "no-code-for-gpu"]
    other = validated(environ, "--prefix", str(with_torch), "--device", "cuda:1")
    assert [it for it in other["findings"] if it["id"] == "no-code-for-gpu"]


def test_a_framework_that_is_not_installed_is_named(envsolve: Envsolve, bare: Path) -> None:
    done = envsolve("validate", "--prefix", str(bare), "-f", "torch")
    assert done.code == 2
    assert "PyTorch is not installed in" in done.err


@pytest.mark.thorough
def test_a_single_framework_can_be_tested(fake_driver: FakeDriver, with_torch: Path) -> None:
    (site_of(with_torch) / "onnxruntime").mkdir()
    (site_of(with_torch) / "onnxruntime/__init__.py").touch()
    metadata = site_of(with_torch) / "onnxruntime-1.31.1.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: onnxruntime\nVersion: 1.31.1\n")
    answer = validated(machine(fake_driver), "--prefix", str(with_torch), "-f", "torch")
    assert answer["ok"]
    assert "onnxruntime" not in statuses(answer)
    assert [it["about"] for it in answer["findings"]] == []


@pytest.mark.thorough
def test_without_a_computation_nothing_passes(fake_driver: FakeDriver, bare: Path, tmp_path: Path) -> None:
    metadata = tmp_path / "modules/cupy_cuda12x-14.0.0.dist-info/METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: cupy-cuda12x\nVersion: 14.0.0\n")
    (tmp_path / "modules/cupy.py").write_text("__version__ = '14.0.0'\n")
    environ = machine(fake_driver, PYTHONPATH=f"{tmp_path}/modules{os.pathsep}{ROOT}")
    done = run(environ, "--prefix", str(bare), "--device", "cpu")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].endswith("not proven, no operation could run")


@pytest.mark.thorough
def test_gpu_libraries_are_required_when_images_are_built_without_a_gpu(
    fake_driver: FakeDriver, bare: Path, tmp_path: Path
) -> None:
    modules = tmp_path / "modules"
    absent = compiled(tmp_path / "elsewhere/libcublas.so.12", "int here = 1;")
    needs = "extern int here; int *it = &here;"
    compiled(modules / "onnxruntime/capi/libonnxruntime_providers_cuda.so", needs, str(absent))
    (modules / "onnxruntime/__init__.py").touch()
    metadata = modules / "onnxruntime_gpu-1.31.1.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 1.31.1\n")
    environ = machine(fake_driver, parts=(), PYTHONPATH=f"{modules}{os.pathsep}{ROOT}")
    answer = validated(environ, "--prefix", str(bare), "--device", "cpu")
    (missing,) = (it for it in answer["findings"] if it["id"] == "library-missing")
    assert (missing["severity"], missing["about"]) == ("warning", "onnxruntime")
    assert "libcublas.so.12" in missing["cause"]
    assert statuses(answer)["files"] == "pass"


def package(prefix: Path, name: str, code: str, *, requested: bool = True) -> None:
    """An installed package whose module runs ``code`` when it is imported."""
    module = site_of(prefix) / name
    folder = site_of(prefix) / f"{name}-1.0.dist-info"
    module.mkdir()
    folder.mkdir()
    (module / "__init__.py").write_text(code)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (folder / "RECORD").write_text(f"{name}/__init__.py,,\n{name}-1.0.dist-info/METADATA,,\n")
    if requested:
        (folder / "REQUESTED").touch()


WANTS_A_GPU = "raise OSError('libcuda.so.1: cannot open shared object file: No such file or directory')\n"


@pytest.mark.thorough
def test_requested_modules_are_imported(fake_driver: FakeDriver, with_torch: Path) -> None:
    package(with_torch, "alpha", "")
    package(with_torch, "beta", "import os; os.environ['ALPHA_IS_HERE']\n")
    package(with_torch, "gamma", "raise RuntimeError('not requested')\n", requested=False)
    done = run(machine(fake_driver), "--prefix", str(with_torch))
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines if "import" in line[:20]] == [["pass", "imports"], ["fail", "import"]]
    assert "beta cannot be imported\n" in done.stdout
    assert "KeyError: 'ALPHA_IS_HERE'" in done.stdout
    assert "gamma" not in done.stdout
    assert lines[-1] == f"{with_torch}/bin/python: not proven, import beta failed"


@pytest.mark.thorough
def test_a_module_that_ends_its_process_is_reported(fake_driver: FakeDriver, with_torch: Path) -> None:
    package(with_torch, "alpha", "import os; os.abort()\n")
    answer = validated(machine(fake_driver), "--prefix", str(with_torch))
    (probe,) = (it for it in answer["probes"] if it["name"] == "import alpha")
    assert (probe["status"], probe["finding"]) == ("fail", "module-not-imported")
    assert "SIGABRT" in probe["detail"]


@pytest.mark.thorough
def test_a_module_that_needs_a_gpu_is_skipped_without_one(fake_driver: FakeDriver, with_torch: Path) -> None:
    code = f"try:\n    {WANTS_A_GPU}except OSError as error:\n    raise ImportError('not loaded') from error\n"
    package(with_torch, "alpha", code)
    with_gpu = validated(machine(fake_driver), "--prefix", str(with_torch))
    assert statuses(with_gpu)["import alpha"] == "fail"
    done = run(machine(fake_driver, parts=()), "--device", "cpu", "--prefix", str(with_torch))
    assert done.returncode == 0, done.stdout
    assert "not tried: it needs a GPU (OSError: libcuda.so.1" in done.stdout
    assert done.stdout.endswith("proven by pytorch; not tried: import alpha\n")


@pytest.mark.thorough
def test_a_named_framework_is_the_only_one_tested(fake_driver: FakeDriver, with_torch: Path) -> None:
    package(with_torch, "alpha", "raise RuntimeError\n")
    answer = validated(machine(fake_driver), "--prefix", str(with_torch), "-f", "pytorch")
    assert answer["ok"]
