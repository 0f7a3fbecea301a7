"""What to do about a driver: by distribution, and never a driver that drops the machine's GPUs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from envsolve.diagnose.machine.operating_system import Distribution, Limit, family_of
from envsolve.findings.catalogue import shipped
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble, cuda_problem
from envsolve.model.host import Reading
from envsolve.validation.places import Place, facts_of
from tests.diagnose.machine.faults_driver import DRIVER_FAULTS
from tests.diagnose.machine.recorded import (
    DEVICE_FILES,
    MULTIARCH,
    NO_DRIVER,
    Case,
    Content,
    driver_libraries,
    examined,
    failed_reading,
    gpu_on_bus,
    library,
    module,
    removed,
    the_finding,
)

PASCAL = {
    **gpu_on_bus("1b06"),
    **module(is_open=False),
    "proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: GeForce GTX 1080 Ti\n",
}
NEWER = re.compile(r"update (the|NVIDIA's|the NVIDIA) driver|newer (NVIDIA )?driver", re.IGNORECASE)
FEDORA = Distribution("fedora")
ROCKY = Distribution("rocky", ("rhel", "centos", "fedora"))


def installation(distribution: Distribution | None, limit: Limit) -> tuple[str, tuple[str, ...]]:
    """The advice on installing a driver, and its commands."""
    facts = {**limit.facts, "distribution": family_of(distribution)}
    (text, commands), (bounds, _) = (shipped().step(name, facts.get) for name in ("install-driver", "driver-bounds"))
    return f"{text} {bounds}", commands


@pytest.mark.parametrize(
    ("distribution", "last", "command"),
    [
        (Distribution("ubuntu", ("debian",)), None, "sudo ubuntu-drivers install"),
        (Distribution("ubuntu", ("debian",)), 580, "sudo ubuntu-drivers install nvidia:580"),
        (Distribution("linuxmint", ("ubuntu", "debian")), None, "sudo ubuntu-drivers install"),
        (Distribution("debian"), None, 'sudo apt install "linux-headers-$(dpkg --print-architecture)" nvidia-driver'),
        (Distribution("debian"), 580, None),
        (FEDORA, None, "sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda"),
        (FEDORA, 580, None),
        (ROCKY, None, None),
        (Distribution("arch"), None, "sudo pacman -S nvidia-open nvidia-utils"),
        (Distribution("arch"), 580, None),
        (Distribution("opensuse-leap", ("suse", "opensuse")), None, None),
        (None, None, None),
    ],
)
def test_the_way_to_install_is_that_of_the_distribution(
    distribution: Distribution | None, last: int | None, command: str | None
) -> None:
    limit = Limit() if last is None else Limit(last=last, last_for="GeForce GTX 1080 (6.1)")
    text, commands = installation(distribution, limit)
    assert commands == (() if command is None else (command,))
    assert last is None or f"R{last} and nothing after it" in text


def test_gpus_that_no_driver_serves_together_are_distinguished() -> None:
    limit = Limit(470, "Tesla K80 (3.7)", 570, "GeForce RTX 5090 (12.0)")
    text, commands = installation(Distribution("ubuntu"), limit)
    assert "No driver is for both of them" in text
    assert commands == ()


def test_without_a_way_of_its_own_a_distribution_is_sent_to_the_guide() -> None:
    assert "datacenter/tesla/driver-installation-guide" in installation(ROCKY, Limit())[0]
    assert "datacenter/tesla/driver-installation-guide" in installation(None, Limit())[0]


def test_a_new_gpu_names_the_oldest_driver(tmp_path: Path) -> None:
    finding = the_finding(tmp_path, Case({**NO_DRIVER, **gpu_on_bus("2b85", None)}, cached=()), "no-driver")
    assert "Ubuntu's tool" in finding.fix
    assert "guide" not in finding.fix
    assert "GeForce RTX 5090 (12.0) needs a driver of R570 or newer" in finding.fix
    assert finding.commands == ("sudo ubuntu-drivers install",)


def test_an_old_gpu_names_the_last_driver(tmp_path: Path) -> None:
    finding = the_finding(tmp_path, Case({**NO_DRIVER, **gpu_on_bus("1b06", None)}, cached=()), "no-driver")
    assert "The last driver branch for GeForce GTX 1080 Ti (6.1) is R580" in finding.fix
    assert finding.commands == ("sudo ubuntu-drivers install nvidia:580",)


@pytest.mark.thorough
@pytest.mark.parametrize("number", sorted(shipped().numbers))
def test_no_advice_to_install_a_driver_that_drops_the_gpu(number: int, tmp_path: Path) -> None:
    """Every error that libcuda knows, on a machine whose GPU ends with R580."""
    reading = Reading(Source.LIBCUDA, problem=cuda_problem(number, "cuInit"))
    for finding in examined(tmp_path, Case(PASCAL, readings=(reading,))).findings:
        assert not NEWER.search(finding.fix), finding
    found = the_finding(tmp_path, Case(PASCAL, readings=(reading,)), shipped().numbers[number])
    if NEWER.search(
        shipped().of_number(number).words({"probed": True, **facts_of({Place.POSIX, Place.LINUX})}.get).fix
    ):
        assert "R580 and nothing after it" in found.fix


def test_a_compatibility_package_is_not_a_reason_to_update_either(tmp_path: Path) -> None:
    files = {**PASCAL, **driver_libraries("590.48.01", "usr/local/cuda-13.1/compat")}
    case = Case(files, environ={"LD_LIBRARY_PATH": "/usr/local/cuda-13.1/compat"})
    finding = the_finding(tmp_path, case, "forward-compatibility-unsupported")
    assert not NEWER.search(finding.fix)
    assert "R580 and nothing after it" in finding.fix


def test_a_new_gpu_may_need_a_newer_driver(tmp_path: Path) -> None:
    case = Case(readings=(failed_reading(Source.LIBCUDA, Trouble.OTHER_ERROR, "cuInit failed with CUDA error 36", 36),))
    finding = the_finding(tmp_path, case, "driver-too-old-for-call")
    assert "Install a newer NVIDIA driver" in finding.fix


@pytest.mark.thorough
def test_the_remedy_of_a_container_is_that_of_its_kind(tmp_path: Path) -> None:
    bare = {**removed(driver_libraries()), "dev/nvidiactl": None, "dev/nvidia0": None, "dev/nvidia-uvm": None}
    commands = {}
    for kind, files, environ in (
        ("docker", {".dockerenv": ""}, {}),
        ("podman", {"run/.containerenv": ""}, {}),
        ("apptainer", {}, {"APPTAINER_CONTAINER": "/x.sif"}),
        ("kubernetes", {".dockerenv": "", "var/run/secrets/kubernetes.io/": ""}, {}),
        ("lxc", {"run/systemd/container": "lxc\n"}, {}),
        ("unknown", {"run/systemd/container": "systemd-nspawn\n"}, {}),
        ("by its control group", {"proc/1/cgroup": "12:cpu:/docker/0123\n"}, {}),
    ):
        case = Case({**bare, **files}, cached=(), environ=environ)
        commands[kind] = the_finding(tmp_path / kind, case, "container-without-gpu").commands
    assert commands["docker"][0] == commands["by its control group"][0] == "docker run --gpus all IMAGE"
    assert commands["podman"][-1] == "podman run --device nvidia.com/gpu=all IMAGE"
    assert commands["apptainer"] == ("apptainer exec --nv IMAGE COMMAND",)
    assert commands["kubernetes"] == ("kubectl describe nodes | grep nvidia.com/gpu",)
    assert commands["lxc"]
    assert commands["unknown"] == ()


def test_a_container_with_device_files_lacks_only_the_libraries(tmp_path: Path) -> None:
    bare = {**removed(driver_libraries()), ".dockerenv": ""}
    with_files = the_finding(tmp_path / "with", Case(bare, cached=()), "container-without-gpu")
    assert "device files without the driver" in with_files.title
    assert "/dev/nvidia0 was added" in with_files.cause
    nothing = {**bare, **removed(DEVICE_FILES), **removed(module()), "sys/module/nvidia": None}
    without = the_finding(tmp_path / "without", Case(nothing, cached=()), "container-without-gpu")
    assert "started without GPUs" in without.title
    assert "the host needs the driver as well" in without.cause
    assert "the host needs" not in with_files.cause


def test_wsl_is_no_container(tmp_path: Path) -> None:
    case = Case({"run/systemd/container": "wsl\n"})
    assert examined(tmp_path, case).inventory["container"] is None


def test_the_evidence_shows_versions_and_paths(tmp_path: Path) -> None:
    files: dict[str, Content] = {
        f"{MULTIARCH}/libcuda.so.570.86.10": library(),
        f"{MULTIARCH}/libcuda.so.1@": "libcuda.so.570.86.10",
    }
    finding = the_finding(tmp_path, Case(files), "driver-version-mismatch")
    assert "580.65.06" in finding.cause
    assert "570.86.10" in finding.cause
    assert finding.evidence[0] == "kernel module 580.65.06"
    path = f"/{MULTIARCH}/libcuda.so.1"
    assert f"{path} -> /{MULTIARCH}/libcuda.so.570.86.10 (by ld.so.cache)" in finding.evidence


def _on_the_path(*directories: str, driver: str) -> Case:
    """A machine whose loader finds libcuda in ``driver`` by LD_LIBRARY_PATH alone, and CUDA 11.8 in /srv."""
    files = {
        **removed(driver_libraries()),
        **driver_libraries(directory=driver),
        "srv/cuda 11.8/lib64/libcudart.so.11.8.89": library("libcudart"),
    }
    return Case(files, cached=(), environ={"LD_LIBRARY_PATH": ":".join(directories)})


def test_a_variable_that_the_driver_does_not_need_may_be_removed(tmp_path: Path) -> None:
    case = Case({"srv/lib/libcudart.so.11.8.89": library("libcudart")}, environ={"LD_LIBRARY_PATH": "/srv/lib"})
    finding = the_finding(tmp_path, case, "cuda-on-library-path")
    assert finding.commands == ("unset LD_LIBRARY_PATH",)


@pytest.mark.thorough
@pytest.mark.parametrize("driver", ["run/opengl-driver/lib", "usr/lib/wsl/lib", "apps/modules/driver/580/lib64"])
def test_only_harmful_parts_of_a_variable_are_removed(driver: str, tmp_path: Path) -> None:
    case = _on_the_path("/srv/cuda 11.8/lib64/", f"/{driver}", "/home/me/my lib", driver=driver)
    finding = the_finding(tmp_path, case, "cuda-on-library-path")
    assert finding.commands == (f"export LD_LIBRARY_PATH='/{driver}:/home/me/my lib'",)
    assert f"keep /{driver}: the driver's library is found only there" in finding.fix


def test_a_directory_with_the_driver_and_a_toolkit_is_not_removed(tmp_path: Path) -> None:
    case = _on_the_path("/opt/both", driver="opt/both")
    case = case._replace(files={**case.files, "opt/both/libcudart.so.11.8.89": library("libcudart")})
    finding = the_finding(tmp_path, case, "cuda-on-library-path")
    assert finding.commands == ()
    assert "/opt/both is the only way to the driver's library" in finding.fix


def test_a_stub_beside_the_path_is_no_other_way_to_the_driver(tmp_path: Path) -> None:
    case = _on_the_path("/srv/cuda 11.8/lib64", "/opt/driver", driver="opt/driver")
    stub = {"opt/x/stubs/libcuda.so.1": library("libcuda.so.1")}
    case = case._replace(files={**case.files, **stub}, cached=(("libcuda.so.1", "/opt/x/stubs/libcuda.so.1"),))
    finding = the_finding(tmp_path, case, "cuda-on-library-path")
    assert finding.commands == ("export LD_LIBRARY_PATH=/opt/driver",)


def test_a_stub_is_removed_and_the_driver_behind_it_stays(tmp_path: Path) -> None:
    case = _on_the_path("/opt/x/stubs", "/opt/driver", driver="opt/driver")
    case = case._replace(files={**case.files, "opt/x/stubs/libcuda.so.1": library("libcuda.so.1")})
    assert the_finding(tmp_path, case, "stub-driver-library").commands == ("export LD_LIBRARY_PATH=/opt/driver",)


def test_a_stub_that_the_cache_leads_to_is_not_removed_from_the_library_path(tmp_path: Path) -> None:
    stub = {"opt/x/stubs/libcuda.so.1": library("libcuda.so.1")}
    case = Case({**removed(driver_libraries()), **stub}, cached=(("libcuda.so.1", "/opt/x/stubs/libcuda.so.1"),))
    finding = the_finding(tmp_path, case, "stub-driver-library")
    assert "ldconfig -p | grep libcuda" in finding.commands
    assert "unset LD_LIBRARY_PATH" not in finding.commands


def test_conda_gets_the_environment_without_its_compatibility_package(tmp_path: Path) -> None:
    prefix = "/opt/my conda"
    files = driver_libraries("550.54.15", "opt/my conda/cuda-compat")
    environ = {"CONDA_PREFIX": prefix, "LD_LIBRARY_PATH": f"{prefix}/cuda-compat"}
    finding = the_finding(tmp_path, Case(files, environ=environ), "stale-compat-library")
    assert finding.commands == ("conda remove -p '/opt/my conda' cuda-compat",)


def test_a_driver_and_a_gpu_that_cannot_be_together_are_reported_with_their_sources(tmp_path: Path) -> None:
    case, _ = DRIVER_FAULTS["the driver lists a GPU that is newer than its branch"]
    finding = the_finding(tmp_path, case, "driver-and-gpu-disagree")
    assert "one of the two facts is wrong" in finding.cause
    assert any(line.startswith("driver 510.47.03, by ") for line in finding.evidence)
    assert "NVIDIA GeForce RTX 4090 (8.9), by nvml (first branch: R520)" in finding.evidence
    assert finding.sources
