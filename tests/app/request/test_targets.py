"""From options, host files and variables to the machines that a stack must run on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.app.request.targets import Target, target_of
from envsolve.errors import EnvsolveError
from envsolve.host.machine import this_glibc
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Machine
from envsolve.model.versions import DriverVersion, LibcVersion
from tests.conftest import Envsolve

PYTORCH = (FrameworkRequest("pytorch", SpecifierSet()),)
HOST = {"schema_version": 1, "platform": "linux-64", "glibc": "2.35", "gpus": [{"compute_capability": "8.6"}]}


def target(matrix: Matrix, environ: dict[str, str] | None = None, **wishes: object) -> Target:
    """The target of a request for PyTorch."""
    return target_of(Request(frameworks=PYTORCH, **wishes), matrix, environ or {})  # type: ignore[arg-type]


def machine(matrix: Matrix, environ: dict[str, str] | None = None, **wishes: object) -> Machine:
    (only,) = target(matrix, environ, **wishes).problem.machines
    return only


def host_file(directory: Path, name: str = "host.json", **changes: object) -> str:
    path = directory / name
    path.write_text(json.dumps(HOST | changes), encoding="utf-8")
    return str(path)


def test_a_gpu_named_twice_counts_twice(matrix: Matrix) -> None:
    (host,) = target(matrix, gpus=("RTX 3090", "RTX 3090", "8.9")).hosts
    assert [(str(gpu.compute_capability), gpu.count) for gpu in host.gpus] == [("8.6", 2), ("8.9", 1)]


@pytest.mark.parametrize(
    ("environ", "driver", "origin"),
    [
        (
            {"UV_CUDA_DRIVER_VERSION": "535.183.01", "CONDA_OVERRIDE_CUDA": "11.8"},
            "535.183.01",
            "UV_CUDA_DRIVER_VERSION",
        ),
        ({"CONDA_OVERRIDE_CUDA": "12.4"}, "550.54.14", "CONDA_OVERRIDE_CUDA"),
        ({"CONDA_OVERRIDE_CUDA": "12"}, "525.60.13", "CONDA_OVERRIDE_CUDA"),
        ({"CONDA_OVERRIDE_CUDA": "12.7"}, "560.28.03", "CONDA_OVERRIDE_CUDA"),
    ],
)
def test_a_variable_can_give_the_driver(matrix: Matrix, environ: dict[str, str], driver: str, origin: str) -> None:
    found = machine(matrix, environ, gpus=("8.6",))
    assert (str(found.driver), found.driver_origin) == (driver, origin)


def test_on_windows_the_variable_gives_a_windows_driver(matrix: Matrix) -> None:
    found = machine(matrix, {"CONDA_OVERRIDE_CUDA": "12.4"}, gpus=("8.6",), platforms=(Platform.WIN_64,))
    assert str(found.driver) == "551.61"
    assert found.windows_driver


def test_a_host_that_only_knows_its_cuda_has_the_driver_of_that_cuda(matrix: Matrix, tmp_path: Path) -> None:
    found = machine(matrix, hosts=(host_file(tmp_path, driver_cuda="12.2"),))
    assert str(found.driver) == "535.54.03"


def test_a_driver_implies_its_cuda(matrix: Matrix) -> None:
    (host,) = target(matrix, gpus=("8.6",), driver=DriverVersion.parse("581.80"), platforms=(Platform.WIN_64,)).hosts
    assert str(host.driver_cuda) == "13.0"


def test_a_name_in_a_host_file_is_looked_up(matrix: Matrix, tmp_path: Path) -> None:
    found = machine(matrix, hosts=(host_file(tmp_path, gpus=[{"name": "NVIDIA GeForce RTX 3090"}]),))
    assert [str(gpu) for gpu, _ in found.gpus] == ["8.6"]


def test_an_ambiguous_name_in_a_host_file_is_not_guessed(matrix: Matrix, tmp_path: Path) -> None:
    with pytest.raises(EnvsolveError) as refused:
        target(matrix, hosts=(host_file(tmp_path, driver="470.256.02", gpus=[{"name": "GeForce GT 730"}]),))
    assert refused.value.code == "gpu-not-identified"


def test_wsl_compares_its_driver_like_windows(matrix: Matrix, tmp_path: Path) -> None:
    path = host_file(tmp_path, driver="526.47", wsl=True)
    assert machine(matrix, hosts=(path,)).windows_driver


@pytest.mark.thorough
@pytest.mark.parametrize(("wsl", "code"), [(True, 1), (False, 0)])
def test_a_driver_between_the_floors_works_on_linux_and_not_on_wsl(
    wsl: bool, code: int, envsolve: Envsolve, tmp_path: Path
) -> None:
    path = host_file(tmp_path, driver="526.47", wsl=wsl)
    assert envsolve("-f", "pytorch", "--cuda", "12.*", "--host", path).code == code


def test_wsl_does_not_support_maxwell(envsolve: Envsolve, tmp_path: Path) -> None:
    path = host_file(tmp_path, driver="566.36", wsl=True, gpus=[{"name": "GTX 970", "compute_capability": "5.2"}])
    result = envsolve("-f", "pytorch", "--host", path)
    assert result.code == 1
    assert "WSL2" in result.err


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("gpu", "driver", "code"),
    [("6.1", "581.80", 0), ("6.1", "582.16", 0), ("6.1", "591.44", 1), ("3.7", "472.50", 0), ("3.7", "496.13", 1)],
)
def test_a_windows_branch_continues_under_later_numbers(gpu: str, driver: str, code: int, envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--gpu", gpu, "--driver", driver, "--platform", "win-64")
    assert result.code == code or "driver-too-new" not in result.err
    if code == 1:
        assert "driver-too-new-for-gpu" in result.err


def test_without_gpus_the_oldest_c_library_of_all_hosts_still_counts(matrix: Matrix, tmp_path: Path) -> None:
    plain: dict[str, object] = {"gpus": [], "driver": None, "status": "no-hardware"}
    one, other = host_file(tmp_path, "a.json", **plain), host_file(tmp_path, "b.json", **plain, glibc="2.12")
    found = target(matrix, hosts=(one, other))
    assert found.fell_to_cpu
    assert [str(it.glibc) for it in found.problem.machines] == ["2.35", "2.12"]


@pytest.mark.parametrize("capability", ["8.7", "11.0", "10.1"])
def test_a_jetson_gpu_exists_on_no_other_platform(matrix: Matrix, capability: str) -> None:
    with pytest.raises(EnvsolveError) as refused:
        target(matrix, gpus=(capability,), platforms=(Platform.LINUX_64,))
    assert refused.value.code == "gpu-not-on-platform"
    assert refused.value.hints[0].command == f"envsolve --framework pytorch --gpu {capability} --platform linux-aarch64"
    there = target(matrix, gpus=(capability,), platforms=(Platform.LINUX_AARCH64,))
    assert there.problem.machines[0].gpus
    assert ["JetPack" in note.text for note in there.notes] == [True]


def test_a_capability_by_variable_implies_a_gpu(matrix: Matrix) -> None:
    found = target(matrix, {"CONDA_OVERRIDE_CUDA_ARCH": "8.6", "CONDA_OVERRIDE_CUDA": "12.8"})
    assert [str(gpu) for gpu in found.problem.gpus] == ["8.6"]
    assert not found.fell_to_cpu
    assert found.hosts[0].origin["gpus"] == "CONDA_OVERRIDE_CUDA_ARCH"


@pytest.mark.parametrize("wish", [{"driver": DriverVersion.parse("535.183.01")}, {"cuda": SpecifierSet("==12.*")}])
def test_a_driver_or_a_cuda_option_implies_a_gpu_somewhere(matrix: Matrix, wish: dict[str, object]) -> None:
    assert not target(matrix, {}, **wish).fell_to_cpu


def test_an_empty_conda_override_means_no_cuda(matrix: Matrix) -> None:
    found = target(matrix, {"CONDA_OVERRIDE_CUDA": ""}, gpus=("auto",))
    assert found.fell_to_cpu
    assert [note for note in found.notes if "CONDA_OVERRIDE_CUDA is empty" in note.text]


@pytest.mark.parametrize("origin", ["UV_CUDA_DRIVER_VERSION", "CONDA_OVERRIDE_CUDA"])
def test_a_driver_by_variable_implies_the_gpu_of_a_host_file(matrix: Matrix, tmp_path: Path, origin: str) -> None:
    by_variable = host_file(tmp_path, driver="550.54.15", gpus=[], status="no-hardware", origin={"driver": origin})
    assert not target(matrix, hosts=(by_variable,)).fell_to_cpu
    unsaid = host_file(tmp_path, driver="550.54.15", gpus=[], status="no-hardware", origin={})
    assert target(matrix, hosts=(unsaid,)).fell_to_cpu


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("wishes", "glibc", "assumed"),
    [
        ({"gpus": ("8.6",)}, "2.34", True),
        ({"gpus": ("8.6",), "glibc": LibcVersion(2, 28)}, "2.28", False),
        ({"gpus": ("none",), "glibc": LibcVersion(2, 28)}, "2.28", False),
        ({"gpus": ("none",), "platforms": (Platform.LINUX_AARCH64,)}, "2.34", True),
        ({"gpus": ("8.6",), "platforms": (Platform.WIN_64,)}, "None", False),
    ],
)
def test_an_unspecified_c_library_is_assumed(wishes: dict[str, Any], glibc: str, assumed: bool, matrix: Matrix) -> None:
    found = machine(matrix, **({"platforms": (Platform.LINUX_64,)} | wishes))
    assert (str(found.glibc), found.assumed_glibc) == (glibc, assumed)


@pytest.mark.skipif(this_glibc() is None, reason="there is no glibc on this machine")
def test_without_a_gpu_the_target_is_this_machine(matrix: Matrix) -> None:
    found = machine(matrix, gpus=("none",))
    assert (found.glibc, found.assumed_glibc) == (this_glibc(), False)


def test_a_requested_c_library_overrides_that_of_the_host_file(matrix: Matrix, tmp_path: Path) -> None:
    found = machine(matrix, hosts=(host_file(tmp_path),), glibc=LibcVersion(2, 28))
    assert str(found.glibc) == "2.28"


def test_glibc_does_not_apply_to_windows(envsolve: Envsolve) -> None:
    done = envsolve("-f", "pytorch", "--gpu", "8.6", "--platform", "win-64", "--glibc", "2.28")
    assert (done.code, done.out) == (2, "")
    assert "--glibc applies only to Linux, and the target is win-64" in done.err
