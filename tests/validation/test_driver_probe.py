"""The driver probe with real shared libraries: it computes, and reports what failed and where."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envsolve.validation.inside.vector_add import COUNT, POISON, PTX_PAIRS, SIZE, Vectors, difference, ptx_for
from tests.fake_driver.builder import Device, FakeDriver
from tests.validation.compiled import compiled
from tests.validation.probing import probed

RTX_4090 = Device("NVIDIA GeForce RTX 4090", "8.9", 24564)
HALF_A_SECOND = 0.5
SOON = 2.0
"""Seconds after which a probe that hangs is stopped; it needs a fraction of one to get there."""


def result_of(fake_driver: FakeDriver, **arguments: Any) -> Any:
    """The result of a probe that completed."""
    outcome = probed(fake_driver, **arguments)
    assert outcome.result is not None, (outcome.error, outcome.stage, outcome.tail)
    return outcome.result


def kernels_of(fake_driver: FakeDriver, **arguments: Any) -> list[Any]:
    """The result of the kernel on each GPU."""
    return [device["kernel"] for device in result_of(fake_driver, **arguments)["devices"]]


@pytest.mark.thorough
def test_a_working_driver_is_reported_with_its_gpu(fake_driver: FakeDriver) -> None:
    result = result_of(fake_driver)
    (device,) = result["devices"]
    kernel = device.pop("kernel")
    assert (result["library"], result["version"]) == (str(fake_driver.library("libcuda")), 13000)
    assert (result["error"], result["load"]) == (None, [])
    assert device == {
        "index": 0,
        "name": "NVIDIA GeForce GTX 1080 Ti",
        "uuid": "GPU-00000000-0000-0000-0000-000000000000",
        "capability": "6.1",
        "memory": 11264 * 2**20,
    }
    assert kernel["ok"]
    assert set(kernel) == {"ok", "jit_log", "seconds"}


@pytest.mark.thorough
def test_by_default_the_first_gpu_computes_and_the_others_are_listed(fake_driver: FakeDriver) -> None:
    first, second = result_of(fake_driver, devices=[RTX_4090, RTX_4090])["devices"]
    assert first["kernel"]["ok"]
    assert second["kernel"] is None
    assert second["uuid"] == "GPU-00000000-0000-0000-0000-000000000001"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("gpus", "computing"), [("all", [True, True, True]), ([1], [False, True, False]), ([2, 0], [True, False, True])]
)
def test_the_selected_gpus_compute(fake_driver: FakeDriver, gpus: Any, computing: list[bool]) -> None:
    kernels = kernels_of(fake_driver, gpus=gpus, devices=[RTX_4090] * 3)
    assert [kernel is not None and kernel["ok"] for kernel in kernels] == computing


@pytest.mark.thorough
def test_a_bad_gpu_does_not_hide_a_good_one_after_it(fake_driver: FakeDriver) -> None:
    for trouble in ({"kernel": "wrong@0"}, {"fail": {"cuCtxSynchronize@0": 719}}, {"fail": {"cuDeviceGetName@0": 999}}):
        bad, good = kernels_of(fake_driver, gpus="all", devices=[RTX_4090] * 2, **trouble)
        assert (bad["ok"], good["ok"]) == (False, True)


def test_a_missing_gpu_is_an_error_of_the_driver(fake_driver: FakeDriver) -> None:
    good, absent = kernels_of(fake_driver, gpus=[0, 5])
    assert good["ok"]
    assert (absent["ok"], absent["stage"], absent["code"]) == (False, "cuDeviceGet", 101)


def test_cuda_visible_devices_is_respected(fake_driver: FakeDriver) -> None:
    result = result_of(fake_driver, devices=[RTX_4090, Device("Tesla T4", "7.5")], CUDA_VISIBLE_DEVICES="1")
    assert [device["name"] for device in result["devices"]] == ["Tesla T4"]
    assert result["variables"]["CUDA_VISIBLE_DEVICES"] == "1"


@pytest.mark.thorough
@pytest.mark.parametrize("capability", ["3.0", "3.2", "3.5", "3.7", "5.0", "5.3", "7.5", "8.6", "10.3", "12.1"])
def test_every_gpu_gets_ptx_that_it_can_run(fake_driver: FakeDriver, capability: str) -> None:
    (kernel,) = kernels_of(fake_driver, devices=[Device("a GPU", capability)])
    assert kernel["ok"], kernel


def test_a_gpu_older_than_all_ptx_is_refused_by_the_driver(fake_driver: FakeDriver) -> None:
    (kernel,) = kernels_of(fake_driver, devices=[Device("Tesla C2050", "2.0")])
    assert (kernel["stage"], kernel["code"]) == ("cuModuleLoadDataEx", 209)


def test_one_wrong_number_of_65536_is_found(fake_driver: FakeDriver) -> None:
    (kernel,) = kernels_of(fake_driver, kernel="wrong")
    first = kernel["first"]
    assert (kernel["ok"], kernel["stage"], kernel["mismatches"], kernel["untouched"]) == (False, "compare", 1, False)
    assert (first["index"], float(first["found"]) - first["expected"]) == (COUNT // 2, 1.0)


def test_unwritten_output_is_recognised(fake_driver: FakeDriver) -> None:
    (kernel,) = kernels_of(fake_driver, kernel="untouched")
    assert (kernel["ok"], kernel["mismatches"], kernel["untouched"]) == (False, COUNT, True)
    assert (kernel["first"]["found"], kernel["first"]["bits"]) == ("nan", "0xffffffff")


def test_memory_beyond_that_of_a_gpu_is_refused(fake_driver: FakeDriver) -> None:
    (kernel,) = kernels_of(fake_driver, devices=[Device("a full GPU", "8.6", 0)])
    assert (kernel["stage"], kernel["code"]) == ("cuMemAlloc_v2", 2)


def test_messages_of_the_drivers_compiler_are_reported(fake_driver: FakeDriver) -> None:
    (kernel,) = kernels_of(fake_driver, fail={"cuModuleLoadDataEx": 218})
    assert kernel["error"] == "CUDA_ERROR_INVALID_PTX"
    assert kernel["jit_log"] == "ptxas application ptx input, line 1; fatal : fake parsing error"


@pytest.mark.thorough
@pytest.mark.parametrize(("kernel", "stage"), [("hang", "cuCtxSynchronize@1"), ("crash", "cuLaunchKernel@1")])
def test_a_hanging_probe_has_reported_what_it_found(fake_driver: FakeDriver, kernel: str, stage: str) -> None:
    outcome = probed(fake_driver, gpus="all", devices=[RTX_4090] * 2, kernel=f"{kernel}@1", timeout=SOON)
    assert outcome.result is None
    assert outcome.stage == stage
    assert outcome.all_noted("version") == [13000]
    assert [device["kernel"]["ok"] for device in outcome.all_noted("device")] == [True]


@pytest.mark.thorough
@pytest.mark.parametrize("call", ["cuInit", "cuDevicePrimaryCtxRetain@0", "cuModuleLoadDataEx@0", "cuMemFree_v2@0"])
def test_the_call_that_ends_the_process_was_announced_last(fake_driver: FakeDriver, call: str) -> None:
    assert probed(fake_driver, crash=[call.partition("@")[0]]).stage == call


@pytest.mark.thorough
def test_burn_repeats_the_kernel_with_other_numbers(fake_driver: FakeDriver) -> None:
    (kernel,) = kernels_of(fake_driver, burn=HALF_A_SECOND)
    assert kernel["ok"]
    assert kernel["burn"]["rounds"] > 1
    assert kernel["burn"]["wrong_rounds"] == 0


@pytest.mark.thorough
def test_burn_finds_an_intermittent_fault(fake_driver: FakeDriver) -> None:
    (kernel,) = kernels_of(fake_driver, burn=HALF_A_SECOND, kernel="flaky")
    assert (kernel["ok"], kernel["mismatches"], kernel["burn"]["wrong_rounds"]) == (False, 1, 1)
    assert kernel["burn"]["rounds"] > 2


@pytest.mark.thorough
def test_burn_finds_stuck_memory(fake_driver: FakeDriver) -> None:
    (once,) = kernels_of(fake_driver, kernel="stuck")
    (burnt,) = kernels_of(fake_driver, burn=0.1, kernel="stuck")
    assert (once["ok"], burnt["ok"]) == (True, False)
    assert burnt["burn"]["wrong_rounds"] == burnt["burn"]["rounds"]


def test_a_failing_call_ends_burn_and_is_reported_with_the_rounds(fake_driver: FakeDriver) -> None:
    (kernel,) = kernels_of(fake_driver, burn=600, kernel="failing")
    assert (kernel["ok"], kernel["stage"], kernel["code"]) == (False, "cuCtxSynchronize", 719)
    assert kernel["burn"] == {"seconds": 600, "rounds": 2, "wrong_rounds": 0}


def test_a_missing_library_is_reported_with_the_message_of_the_loader(fake_driver: FakeDriver) -> None:
    result = result_of(fake_driver, libraries=["libcuda-of-nobody.so.1"])
    assert [attempt["name"] for attempt in result["load"]] == ["libcuda-of-nobody.so.1"]
    assert "No such file" in result["load"][0]["text"]


def test_the_first_library_that_loads_is_used(fake_driver: FakeDriver, tmp_path: Path) -> None:
    broken = tmp_path / "libcuda.so.1"
    broken.write_text("no library", encoding="utf-8")
    result = result_of(fake_driver, libraries=[str(broken), str(fake_driver.library("libcuda"))], parts=[])
    assert result["devices"][0]["kernel"]["ok"]


def test_a_library_without_the_driver_api_is_recognised_by_the_call(fake_driver: FakeDriver, tmp_path: Path) -> None:
    empty = compiled(tmp_path / "libcuda.so.1", "int nothing;")
    error = result_of(fake_driver, libraries=[str(empty)])["error"]
    assert (error["stage"], error["code"]) == ("cuDriverGetVersion", None)


@pytest.mark.thorough
@pytest.mark.parametrize("code", [None, 801])
def test_a_driver_without_a_uuid_still_computes(fake_driver: FakeDriver, tmp_path: Path, code: int | None) -> None:
    """Drivers before CUDA 9.2 have no such call; 801 is not supported."""
    (device,) = result_of(
        fake_driver,
        libraries=[str(_without_uuid(fake_driver, tmp_path))] if code is None else ["libcuda.so.1"],
        fail={} if code is None else {"cuDeviceGetUuid": code},
    )["devices"]
    assert device["uuid"] is None
    assert device["kernel"]["ok"]


def _without_uuid(fake_driver: FakeDriver, tmp_path: Path) -> Path:
    """The fake driver with that name overwritten in its table of symbols by another of the same length."""
    whole = fake_driver.library("libcuda").read_bytes()
    assert b"cuDeviceGetUuid" in whole
    old = tmp_path / "libcuda.so.1"
    old.write_bytes(whole.replace(b"cuDeviceGetUuid", b"cuDeviceGetXxxx"))
    return old


def _interpreter(version: str) -> Path:
    """An interpreter of that version, from PATH or pyenv; skips the test if none starts."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = [shutil.which(f"python{version}"), *map(str, pyenv.glob(f"{version}.*/bin/python{version}"))]
    for program in filter(None, found):
        if subprocess.run([program, "-c", "import ctypes"], capture_output=True, check=False).returncode == 0:
            return Path(program)
    pytest.skip(f"there is no Python {version} here")


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["3.7", "3.8", "3.13"])
def test_the_probe_runs_in_old_and_new_interpreters(fake_driver: FakeDriver, version: str) -> None:
    (kernel,) = kernels_of(fake_driver, python=_interpreter(version))
    assert kernel["ok"]


def test_every_round_has_other_numbers_and_exact_sums() -> None:
    vectors = Vectors()
    rounds = [vectors.of_round(number) for number in (0, 1, COUNT)]
    for left, right, total in rounds:
        assert {len(left), len(right), len(total)} == {SIZE}
        floats = zip(*(memoryview(vector).cast("f") for vector in (left, right, total)), strict=True)
        assert all(x + y == z for x, y, z in floats)
    assert rounds[0][0] != rounds[1][0]
    assert all(x != y for x, y in zip(*(memoryview(it[2]).cast("f") for it in rounds[:2]), strict=True))


def test_the_first_difference_is_reported_with_its_bits() -> None:
    *_, total = Vectors().of_round(0)
    spoilt = bytearray(total)
    spoilt[400:404] = bytes([POISON]) * 4
    spoilt[800:804] = b"\0\0\0\0"
    assert difference(total, total) is None
    found = difference(bytes(spoilt), total)
    assert found is not None
    expected = memoryview(total).cast("f")[100]
    assert found["first"] == {"index": 100, "expected": expected, "found": "nan", "bits": "0xffffffff"}
    assert (found["mismatches"], found["untouched"]) == (2, False)


def _ptxas() -> list[str]:
    """Compilers of PTX: on PATH, of a toolkit, and of NVIDIA's wheels."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    roots = [Path(home) for home in (*filter(None, homes), "/usr/local/cuda")]
    wheels = importlib.util.find_spec("nvidia")
    for directory in (wheels.submodule_search_locations or ()) if wheels else ():
        roots += [*Path(directory).glob("cu*")]
    found = [shutil.which("ptxas"), *(str(root / "bin/ptxas") for root in roots)]
    return list({str(Path(program).resolve()): program for program in found if program and os.access(program, os.X_OK)})


@pytest.mark.thorough
def test_ptxas_compiles_the_kernel_for_every_gpu_it_knows(tmp_path: Path) -> None:
    compilers = _ptxas()
    if not compilers:
        pytest.skip("there is no ptxas here")
    for ptxas in compilers:
        usage = subprocess.run([ptxas, "--help"], capture_output=True, text=True, check=True).stdout
        targets = sorted({int(number) for number in re.findall(r"'sm_(\d+)'", usage)})
        assert targets
        for capability, _, least in PTX_PAIRS:
            source = tmp_path / f"{least}.ptx"
            source.write_bytes(ptx_for(capability).rstrip(b"\0"))
            for target in targets:
                if target >= int(least.removeprefix("sm_")):
                    command = [ptxas, "-Werror", "-arch", f"sm_{target}", "-o", os.devnull, str(source)]
                    made = subprocess.run(command, capture_output=True, text=True, check=False)
                    assert (made.returncode, made.stdout + made.stderr) == (0, ""), (ptxas, target)


@pytest.mark.gpu
def test_every_real_gpu_computes_correctly(tmp_path: Path) -> None:
    """Without the fake driver: the one of this machine."""
    from envsolve.validation.child import Children

    job = {"libraries": ["nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"], "gpus": "all", "burn": 2}
    with Children() as children:
        outcome = children.run(Path(sys.executable), "driver", job, os.environ, 120)
    assert outcome.result is not None, outcome
    devices: Any = outcome.result["devices"]
    assert devices
    assert all(device["kernel"]["ok"] for device in devices), devices
