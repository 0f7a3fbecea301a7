"""Virtual packages depend only on what is known of the target, never on the present machine."""

from typing import Any

import pytest
from packaging.version import Version

from envsolve.app.request.virtual_packages import virtual_packages
from envsolve.errors import UsageError
from envsolve.matrix import Matrix, find_matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Host, Platform
from envsolve.model.request import Request
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion

_CUDA = Matrix(find_matrix()).cuda


def _problem(platform: Platform = Platform.LINUX_64, *, cpu: bool = False, **machine: Any) -> Problem:
    gpus = machine.pop("gpus", ())
    capabilities = tuple((ComputeCapability.parse(gpu), "") for gpu in gpus)
    machines = (Machine(driver=None, gpus=capabilities, glibc=machine.pop("glibc", LibcVersion(2, 28))),)
    return Problem((), platform, machines, cpu, None, None)


def _virtual_packages(
    problem: Problem, *hosts: Host, solution: Solution | None = None, **environ: str
) -> dict[str, str]:
    found = virtual_packages(problem, solution, hosts, _CUDA, environ)
    return {it.name: it.version if it.build == "0" else f"{it.version}={it.build}" for it in found}


def _solution(toolkit: str, minimum_driver: str) -> Solution:
    of = next(it for it in _CUDA.toolkits if str(it.version) == toolkit)
    driver = DriverVersion.parse(minimum_driver)
    return Solution(Request(()), _problem(), Version("3.12"), of, None, None, driver, (), ())


def test_a_machine_without_a_gpu_has_no_cuda() -> None:
    assert _virtual_packages(_problem(cpu=True)) == {
        "__archspec": "1=x86_64",
        "__glibc": "2.28",
        "__linux": "5.10",
        "__unix": "0",
    }


def test_the_oldest_cuda_of_the_drivers_counts() -> None:
    hosts = [Host(Platform.LINUX_64, driver_cuda=CudaVersion.parse(it)) for it in ("12.4", "11.8")]
    assert _virtual_packages(_problem(gpus=("8.6",)), *hosts)["__cuda"] == "11.8"


def test_without_a_driver_the_oldest_driver_of_the_stack_counts() -> None:
    host = Host(Platform.LINUX_64)
    assert _virtual_packages(_problem(gpus=("8.6",)), host, solution=_solution("12.9", "525.60.13"))["__cuda"] == "12.0"
    assert _virtual_packages(_problem(gpus=("8.6",)), host, solution=_solution("12.9", "575.51.03"))["__cuda"] == "12.9"


def test_one_host_without_a_known_driver_leaves_the_cuda_to_the_stack() -> None:
    hosts = [Host(Platform.LINUX_64, driver_cuda=CudaVersion.parse("13.0")), Host(Platform.LINUX_64)]
    assert (
        _virtual_packages(_problem(gpus=("8.6",)), *hosts, solution=_solution("12.9", "525.60.13"))["__cuda"] == "12.0"
    )


def test_the_oldest_gpu_gives_the_compute_capability() -> None:
    assert _virtual_packages(_problem(gpus=("6.1", "10.0")), Host(Platform.LINUX_64))["__cuda_arch"] == "6.1"


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        (Platform.WIN_64, {"__archspec": "1=x86_64", "__win": "0"}),
        (Platform.LINUX_AARCH64, {"__archspec": "1=aarch64", "__unix": "0", "__linux": "5.10", "__glibc": "2.28"}),
        (Platform.OSX_ARM64, {"__archspec": "1=m1", "__unix": "0", "__osx": "13.0"}),
    ],
)
def test_each_platform_has_its_own_virtual_packages(platform: Platform, expected: dict[str, str]) -> None:
    assert _virtual_packages(_problem(platform, cpu=True)) == expected


def test_the_oldest_of_several_c_libraries_counts() -> None:
    assert _virtual_packages(_problem(cpu=True, glibc=LibcVersion(2, 17)))["__glibc"] == "2.17"


def test_variables_of_conda_override_detection() -> None:
    packages = _virtual_packages(_problem(cpu=True), CONDA_OVERRIDE_GLIBC="2.31", CONDA_OVERRIDE_ARCHSPEC="x86_64_v3")
    assert (packages["__glibc"], packages["__archspec"]) == ("2.31", "1=x86_64_v3")
    assert "__osx" not in _virtual_packages(_problem(cpu=True), CONDA_OVERRIDE_OSX="14.0")


def test_a_variable_with_an_invalid_version_is_refused() -> None:
    with pytest.raises(UsageError, match="CONDA_OVERRIDE_GLIBC"):
        _virtual_packages(_problem(cpu=True), CONDA_OVERRIDE_GLIBC="new; rm")
