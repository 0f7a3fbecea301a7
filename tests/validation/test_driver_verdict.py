"""From the end of the driver probe to a pass or to one finding: every problem has its own, none is a pass."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from envsolve.findings.catalogue import shipped
from envsolve.model.finding import Finding, Severity
from envsolve.validation.child import Ending, Outcome
from envsolve.validation.driver_verdict import detail_of, finding_of
from envsolve.validation.places import Place, facts_of, places_of
from tests.fake_driver.builder import Device, FakeDriver
from tests.validation.compiled import compiled
from tests.validation.probing import probed

pytestmark = pytest.mark.thorough  # a driver is compiled and run for each

TABLE = tomllib.loads(Path(__file__).with_name("driver_errors.toml").read_text(encoding="utf-8"))["error"]
CASES = [(row["code"], call, row["finding"]) for row in TABLE for call in row["calls"]]
RTX_4090 = Device("NVIDIA GeForce RTX 4090", "8.9", 24564)
SOON = 4.0
"""Seconds after which a probe that hangs is stopped; it needs a fraction of one to get there."""
NUMBERS = shipped().numbers
OTHERS = (
    "driver-crash",
    "driver-error",
    "driver-hang",
    "driver-library-missing",
    "driver-library-unusable",
    "gpus-hidden",
    "kernel-did-not-run",
    "probe-failed",
    "probe-without-result",
    "wrong-results",
)
SETTINGS = [
    {Place.POSIX, Place.LINUX},
    {Place.POSIX, Place.LINUX, Place.CONTAINER},
    {Place.POSIX, Place.LINUX, Place.JETSON},
    {Place.POSIX, Place.WSL},
    {Place.POSIX, Place.WSL, Place.CONTAINER},
    {Place.WINDOWS},
]


def found(fake_driver: FakeDriver, **arguments: Any) -> Finding:
    """The finding of a probe that must not pass."""
    finding = finding_of(probed(fake_driver, **arguments))
    assert finding is not None, arguments
    assert finding.severity is Severity.ERROR
    assert "Traceback" not in "\n".join((finding.cause, finding.fix, *finding.evidence))
    return finding


def ended(**how: Any) -> Outcome:
    """A probe without a result."""
    whole: dict[str, Any] = {"result": None, "error": None, "stage": "cuInit", "notes": (), "seconds": 1.0, "tail": ""}
    return Outcome(**{**whole, "ending": Ending(exit_code=0), **how})


@pytest.mark.parametrize("gpus", [None, "all"])
def test_a_working_driver_passes(fake_driver: FakeDriver, gpus: str | None) -> None:
    outcome = probed(fake_driver, gpus=gpus, devices=[RTX_4090])
    assert finding_of(outcome) is None
    assert detail_of(outcome) == "65,536 results right on GPU 0 (NVIDIA GeForce RTX 4090, 8.9), CUDA 13.0"


@pytest.mark.parametrize(("code", "call", "expected"), CASES)
def test_every_error_of_every_call_has_its_own_finding(
    fake_driver: FakeDriver, code: int, call: str, expected: str
) -> None:
    finding = found(fake_driver, fail={call: code})
    assert finding.id == expected
    assert f"{call} failed with CUDA error {code} ({shipped().of_number(code).error})" in finding.cause


def test_every_error_that_has_a_finding_is_in_the_table() -> None:
    assert [row["code"] for row in TABLE] == sorted(NUMBERS)


def test_no_two_problems_share_a_finding() -> None:
    ids = [*NUMBERS.values(), *OTHERS]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(("code", "name"), [(710, "CUDA_ERROR_ASSERT"), (12345, "without a name")])
def test_any_other_error_is_named_by_number(fake_driver: FakeDriver, code: int, name: str) -> None:
    finding = found(fake_driver, fail={"cuCtxSynchronize": code})
    assert finding.id == "driver-error"
    assert f"cuCtxSynchronize failed with CUDA error {code} ({name})" in finding.cause


def test_error_names_are_those_of_cuda_h() -> None:
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    header = next((path for home in filter(None, homes) if (path := Path(home, "include/cuda.h")).exists()), None)
    if header is None:
        pytest.skip("there is no cuda.h here")
    names = {
        int(number): name
        for name, number in re.findall(r"(CUDA_ERROR_\w+) *= *(\d+),?\n", header.read_text(encoding="utf-8"))
    }
    assert len(names) > 60
    assert {code: shipped().of_number(code).error for code in NUMBERS if code in names} == {
        code: name for code, name in names.items() if code in NUMBERS
    }


@pytest.mark.parametrize(
    ("machine", "expected", "words"),
    [
        ({"kernel": "wrong"}, "wrong-results", "1 of 65,536 results wrong, the first at 32768"),
        ({"kernel": "untouched"}, "kernel-did-not-run", "The output was untouched on GPU 0"),
        ({"kernel": "crash"}, "driver-crash", "It ended in cuLaunchKernel on GPU 0. It died with signal 6 (SIGABRT)."),
        ({"crash": ["cuInit"]}, "driver-crash", "It ended in cuInit."),
        ({"devices": []}, "no-device", "cuInit failed with CUDA error 100"),
        ({"devices": [Device("Tesla C2050", "2.0")]}, "no-kernel-image", "(Tesla C2050, 2.0)"),
        ({"devices": [Device("a full GPU", "8.6", 0)]}, "out-of-memory", "cuMemAlloc_v2"),
        ({"gpus": [3]}, "invalid-device", "on GPU 3."),
        ({"gpus": []}, "probe-without-result", "No GPU was chosen"),
        ({"burn": 1.0, "kernel": "flaky"}, "wrong-results", "1 of 65,536"),
    ],
)
def test_problems_other_than_errors_of_calls_have_a_finding_too(
    fake_driver: FakeDriver, machine: dict[str, Any], expected: str, words: str
) -> None:
    finding = found(fake_driver, **machine)
    assert finding.id == expected
    assert words in finding.cause


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ("loading libcuda.so.1", "It hangs in loading libcuda.so.1."),
        ("cuInit", "hangs in cuInit: the kernel module does not answer"),
        ("cuModuleLoadDataEx@0", "while it compiles the kernel"),
        ("cuMemAlloc_v2@1", "It hangs in cuMemAlloc_v2 on GPU 1."),
        ("burn@0", "while the kernel is repeated"),
        (None, "before it began"),
    ],
)
def test_a_hanging_driver_is_reported_with_the_call(stage: str | None, words: str) -> None:
    finding = finding_of(ended(stage=stage, ending=Ending(timeout=20)))
    assert finding is not None
    assert finding.id == "driver-hang"
    assert words in finding.cause
    assert finding.cause.endswith("It was stopped after 20 s.")


def test_the_bad_gpu_is_the_finding_and_both_are_evidence(fake_driver: FakeDriver) -> None:
    finding = found(fake_driver, gpus="all", devices=[RTX_4090] * 2, fail={"cuCtxSynchronize@1": 700})
    assert finding.id == "kernel-illegal-address"
    assert "on GPU 1 (NVIDIA GeForce RTX 4090, 8.9)" in finding.cause
    assert "GPU 0 (NVIDIA GeForce RTX 4090, 8.9): all 65,536 results right" in finding.evidence


def test_a_hanging_gpu_does_not_hide_the_result_of_the_first(fake_driver: FakeDriver) -> None:
    finding = found(fake_driver, gpus="all", devices=[RTX_4090] * 2, kernel="hang@1", timeout=SOON)
    assert finding.id == "driver-hang"
    assert finding.cause.endswith("The kernel was started and does not end. It was stopped after 4 s.")
    assert "GPU 0 (NVIDIA GeForce RTX 4090, 8.9): all 65,536 results right" in finding.evidence
    assert "last stage: cuCtxSynchronize@1" in finding.evidence


def test_a_gpu_that_is_only_listed_is_neither_tested_nor_a_problem(fake_driver: FakeDriver) -> None:
    assert finding_of(probed(fake_driver, devices=[RTX_4090] * 2, kernel="wrong@1")) is None
    assert found(fake_driver, gpus=[1], devices=[RTX_4090] * 2, kernel="wrong@1").id == "wrong-results"


@pytest.mark.parametrize("value", ["", "-1", "NoDevFiles"])
def test_gpus_hidden_by_a_variable_are_not_missing(fake_driver: FakeDriver, value: str) -> None:
    finding = found(fake_driver, CUDA_VISIBLE_DEVICES=value)
    assert finding.id == "gpus-hidden"
    assert f"CUDA_VISIBLE_DEVICES={value!r} hides every GPU" in finding.cause
    assert "unset CUDA_VISIBLE_DEVICES" in finding.commands


def test_a_variable_for_another_gpu_is_only_suspected(fake_driver: FakeDriver) -> None:
    assert "or there is none" in found(fake_driver, CUDA_VISIBLE_DEVICES="4").cause
    assert found(fake_driver, CUDA_VISIBLE_DEVICES="0", devices=[]).id == "no-device"


def test_a_missing_library_and_a_file_that_is_no_library_are_distinguished(
    fake_driver: FakeDriver, tmp_path: Path
) -> None:
    text = tmp_path / "libcuda.so.1"
    text.write_text("no library", encoding="utf-8")
    assert found(fake_driver, libraries=["libcuda-of-nobody.so.1"]).id == "driver-library-missing"
    unusable = found(fake_driver, libraries=["libcuda-of-nobody.so.1", str(text)])
    assert unusable.id == "driver-library-unusable"
    assert any(line.startswith(str(text)) for line in unusable.evidence)


def test_a_library_that_lacks_its_own_libraries_is_not_missing(fake_driver: FakeDriver, tmp_path: Path) -> None:
    needed = compiled(tmp_path / "libnvidia-part.so.1", "int part;")
    library = compiled(tmp_path / "libcuda.so.1", "extern int part; int use(void) { return part; }", str(needed))
    needed.unlink()
    finding = found(fake_driver, libraries=[str(library)])
    assert finding.id == "driver-library-unusable"
    assert "libnvidia-part.so.1: cannot open shared object file" in finding.cause


def test_a_library_other_than_the_driver_is_recognised_by_the_missing_call(
    fake_driver: FakeDriver, tmp_path: Path
) -> None:
    finding = found(fake_driver, libraries=[str(compiled(tmp_path / "libcuda.so.1", "int nothing;"))])
    assert finding.id == "driver-library-unusable"
    assert "cuDriverGetVersion is missing" in finding.cause


def test_the_library_the_variables_and_messages_of_the_compiler_are_evidence(fake_driver: FakeDriver) -> None:
    finding = found(fake_driver, fail={"cuModuleLoadDataEx": 218}, CUDA_FORCE_PTX_JIT="1")
    assert f"libcuda: {fake_driver.library('libcuda')} (CUDA 13.0)" in finding.evidence
    assert "CUDA_FORCE_PTX_JIT=1" in finding.evidence
    assert "ptxas application ptx input, line 1; fatal : fake parsing error" in finding.evidence


def test_a_python_that_cannot_run_the_probe_is_not_a_problem_of_the_driver() -> None:
    error = {"type": "ModuleNotFoundError", "text": "No module named '_ctypes'", "trace": ["driver.py:19 <module>"]}
    finding = finding_of(ended(error=error, stage=None))
    assert finding is not None
    assert finding.id == "probe-failed"
    assert finding.evidence == ("ModuleNotFoundError: No module named '_ctypes'", "driver.py:19 <module>")


@pytest.mark.parametrize(
    ("ending", "expected", "words"),
    [
        (Ending(exit_code=0), "probe-without-result", "exit code 0 in cuInit"),
        (Ending(exit_code=1), "probe-without-result", "exit code 1 in cuInit"),
        (Ending(exit_code=0xC0000005), "driver-crash", "exception 0xC0000005"),
        (Ending(exit_code=0xC0000005 - 2**32), "driver-crash", "exception 0xC0000005"),
        (Ending(signal=9), "driver-crash", "short of memory"),
        (Ending(signal=250), "driver-crash", "signal 250 (unknown)"),
        (Ending(timeout=20), "driver-hang", "stopped after 20 s"),
    ],
)
def test_a_process_without_a_result_never_passes(ending: Ending, expected: str, words: str) -> None:
    finding = finding_of(ended(ending=ending, tail="NVRM: something\n\nlast words\n"))
    assert finding is not None
    assert finding.id == expected
    assert words in finding.cause
    assert finding.evidence[-2:] == ("NVRM: something", "last words")


@pytest.mark.parametrize("places", SETTINGS, ids=lambda places: "+".join(sorted(places)))
def test_every_problem_has_advice_for_every_place(places: set[Place]) -> None:
    for identifier in (*NUMBERS.values(), *OTHERS):
        assert shipped().entry(identifier).words({"probed": True, **facts_of(places)}.get).fix, identifier


def test_advice_for_other_places_is_left_out(fake_driver: FakeDriver) -> None:
    outcome = probed(fake_driver, fail={"cuInit": 803})
    everywhere, linux, container, windows = (
        finding_of(outcome, places) for places in (None, SETTINGS[0], SETTINGS[1], {Place.WINDOWS})
    )
    assert everywhere is not None
    assert linux is not None
    assert container is not None
    assert windows is not None
    assert "sudo reboot" in linux.commands
    assert "In a container" not in linux.fix
    assert "In a container" in container.fix
    assert windows.commands == ()
    assert windows.fix == "Restart Windows."
    assert len(everywhere.fix) > len(container.fix)


@pytest.mark.parametrize(
    ("files", "places"),
    [
        ([], SETTINGS[0]),
        ([".dockerenv"], SETTINGS[1]),
        (["run/.containerenv"], SETTINGS[1]),
        (["etc/nv_tegra_release"], SETTINGS[2]),
        (["dev/dxg"], SETTINGS[3]),
        (["dev/dxg", ".dockerenv"], SETTINGS[4]),
    ],
)
def test_the_place_of_a_process_is_recognised_by_files(files: list[str], places: set[Place], tmp_path: Path) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    assert places_of(tmp_path, windows=False) == places
    assert places_of(tmp_path, windows=True) == {Place.WINDOWS}
