"""Files of a machine: links stay inside the tree, nothing hangs, and unreadable files are reported."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from envsolve.diagnose.machine import Limits, Survey, examine_machine
from envsolve.diagnose.machine.files import MachineFiles
from envsolve.host.detection import examine
from envsolve.host.machine import Machine, this_platform
from envsolve.model.finding import Severity
from tests.diagnose.machine.recorded import MATRIX, MULTIARCH, Case, examined, library, survey_of, the_finding, write

LONG = "x" * 300
"""Longer than a name may be: a real error of the file system, for root too."""


def files_of(root: Path, limits: Limits = Limits()) -> MachineFiles:  # noqa: B008 - a value
    return MachineFiles(root, windows=False, limits=limits, clock=time.monotonic)


def test_absolute_links_lead_inside_the_tree(tmp_path: Path) -> None:
    write(tmp_path, {"usr/local/cuda-12.4/version.txt": "CUDA", "etc/alternatives/cuda@": "/usr/local/cuda-12.4"})
    write(tmp_path, {"usr/local/cuda@": "/etc/alternatives/cuda", "usr/local/up@": "../../usr/local/./cuda/"})
    files = files_of(tmp_path)
    assert files.real("/usr/local/cuda/version.txt") == "/usr/local/cuda-12.4/version.txt"
    assert files.real("/usr/local/up/version.txt") == "/usr/local/cuda-12.4/version.txt"
    assert files.text("/usr/local/cuda/version.txt") == "CUDA"


def test_a_link_cannot_leave_the_tree(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (tmp_path / "secret").write_text("outside", encoding="utf-8")
    write(root, {"a@": "../../../secret", "b@": str(tmp_path / "secret")})
    assert files_of(root).text("/a") is None
    assert files_of(root).text("/b") is None


def test_circles_of_links_lead_to_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"a@": "b", "b@": "/a", "d/e@": "../d"})
    files = files_of(tmp_path)
    assert files.real("/a") is None
    assert files.real("/d/e/e/e") == "/d"
    assert files.names("/a") == ()


def test_the_real_root_is_followed_as_the_system_does() -> None:
    files = files_of(Path("/"))
    for path in ("/bin/sh", "/proc/self", "/usr/lib/../bin", os.__file__):
        if not path.startswith("/proc"):
            assert files.real(path) == os.path.realpath(path)
    assert files.text("/proc/sys/kernel/osrelease") == os.uname().release


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert files_of(tmp_path).text("/pipe") is None


def test_a_large_directory_is_read_in_part_with_a_note(tmp_path: Path) -> None:
    write(tmp_path, {f"d/{number}": "" for number in range(8)})
    files = files_of(tmp_path, Limits(entries=5))
    assert len(files.names("/d")) == 5
    assert files.gaps == {"/d": "it holds more than 5 entries, and only so many were looked at"}


def test_no_directory_is_read_after_the_time_limit(tmp_path: Path) -> None:
    write(tmp_path, {"d/a": ""})
    ticks = iter(range(0, 1000, 60))
    files = MachineFiles(tmp_path, windows=False, limits=Limits(), clock=lambda: next(ticks))
    assert files.names("/d") == ()
    assert files.gaps == {"/d": "no time was left for it after 10 seconds"}


def test_a_large_file_is_read_in_part_with_a_note(tmp_path: Path) -> None:
    write(tmp_path, {"a": "x" * 100})
    files = files_of(tmp_path, Limits(size=10))
    assert files.text("/a") == "x" * 10
    assert files.gaps == {"/a": "only its first 10 bytes were read"}


def test_a_directory_that_cannot_be_listed_becomes_a_finding(tmp_path: Path) -> None:
    finding = the_finding(tmp_path, Case(environ={"LD_LIBRARY_PATH": f"/usr/{LONG}/lib"}), "check-not-made")
    assert finding.severity is Severity.INFO
    assert f"/usr/{LONG}" in finding.cause
    assert "File name too long" in finding.cause


def test_a_variable_that_is_no_path_harms_nothing(tmp_path: Path) -> None:
    environ = {
        "CUDA_HOME": "a\0b",
        "LD_LIBRARY_PATH": "/a\0b:\udcff:/x\udcff",
        "XLA_FLAGS": "--xla_gpu_cuda_data_dir=\0",
    }
    ids = {it.id for it in examined(tmp_path, Case(environ=environ)).findings}
    assert ids == {"cuda-home-wrong", "library-path-empty-entry", "libdevice-missing"}


@pytest.mark.thorough
def test_an_unreadable_directory_becomes_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = survey_of(tmp_path, Case({"opt/a/libcudart.so.12": library()}, environ={"LD_LIBRARY_PATH": "/opt/a"}))
    scandir = os.scandir

    def refused(path: Path) -> object:
        if Path(path).name == "a":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    (finding,) = examine_machine(given).findings
    assert finding.id == "check-not-made"
    assert "/opt/a could not be looked at: Permission denied" in finding.cause


@pytest.mark.parametrize("content", [b"", b"\xff" * 200, b"glibc-ld.so.cache1.1" + b"\xff" * 90])
def test_garbage_in_files_does_not_end_the_examination(content: bytes, tmp_path: Path) -> None:
    given = survey_of(tmp_path, Case())
    garbage = (
        *("etc/ld.so.cache", "etc/os-release", "proc/driver/nvidia/version", "sys/module/nvidia/version"),
        *("usr/local/cuda-12.4/version.json", "proc/sys/kernel/osrelease", "proc/1/cgroup", "var/lib/dpkg/status"),
        *(f"{MULTIARCH}/libcuda.so.580.65.06", "etc/nv_tegra_release", "sys/bus/pci/devices/0000:01:00.0/vendor"),
    )
    write(tmp_path, dict.fromkeys(garbage, content))
    report = examine_machine(given)
    assert [it for it in report.findings if it.id == "check-not-made"] == []


@pytest.mark.thorough
def test_the_machine_of_the_tests_can_be_examined() -> None:
    machine = Machine(this_platform(), dict(os.environ))
    report = examine_machine(Survey(machine, examine(machine, thorough=False), MATRIX))
    assert report.inventory["driver"]
