"""The cost of detection: imports, processes, and children that do not end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envsolve.boundary.programs import run_program
from envsolve.errors import UsageError
from envsolve.host.loader import missing
from envsolve.host.machine import Machine, this_glibc, this_platform
from envsolve.host.trouble import Trouble
from envsolve.model.host import Platform
from tests.host.child_detection import REPOSITORY
from tests.host.tree import NO_PCI_GPU, pci_gpu, write_tree

HEAVY = "{'subprocess', 'ctypes', 'pynvml', 'json', 'socket', 'asyncio', 'platform', 'winreg'}"


def heavy_modules(code: str, *arguments: str) -> str:
    """The heavy modules that a fresh interpreter has imported after ``code``."""
    script = f"import sys; {code}; print(sorted({HEAVY} & set(sys.modules)))"
    environ = {"PYTHONPATH": str(REPOSITORY), "PATH": os.defpath}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert heavy_modules("import envsolve.host") == "[]"


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a real driver")
def test_quick_detection_without_a_gpu_starts_no_program(tree: Path) -> None:
    write_tree(tree, NO_PCI_GPU)
    code = (
        "from pathlib import Path; from envsolve.host.detection import examine; "
        "from envsolve.host.machine import Machine; "
        "from envsolve.model.host import Platform; "
        "examine(Machine(Platform.LINUX_64, {}, Path(sys.argv[1])), thorough=False)"
    )
    assert heavy_modules(code, str(tree)) == "[]"


@pytest.mark.skipif(sys.platform != "linux", reason="the loader of glibc")
@pytest.mark.parametrize("name", ["libc.so.6", "libnowhere.so.1", "/nowhere/libcuda.so.1", "libm.so.6"])
def test_a_library_is_only_reported_missing_if_it_does_not_load(name: str) -> None:
    import ctypes

    try:
        loads = bool(ctypes.CDLL(name))
    except OSError:
        loads = False
    assert not (loads and missing([name], os.environ))
    assert missing([name, "libc.so.6"], os.environ) is None
    if Path("/etc/ld.so.cache").exists() and not Path("/proc/driver/nvidia").exists():
        problem = missing([name], os.environ)
        assert (problem is None) is loads
        assert problem is None or problem.code == Trouble.LIBRARY_MISSING


def test_a_library_on_the_library_path_is_tried(tmp_path: Path) -> None:
    (tmp_path / "libnowhere.so.1").touch()
    assert missing(["libnowhere.so.1"], {"LD_LIBRARY_PATH": f"/other:{tmp_path}"}) is None
    assert missing(["libnowhere.so.1"], {"LD_LIBRARY_PATH": "$ORIGIN/../lib"}) is None


def alive(process: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through procfs")
def test_a_hanging_child_is_killed_with_its_own_children(tmp_path: Path) -> None:
    note = tmp_path / "grandchild"
    script = f"sleep 600 & echo $! > '{note}'; wait"
    start = time.monotonic()
    finished = run_program(["/bin/sh", "-c", script], {"PATH": os.defpath}, 0.5)
    assert finished.hung
    assert time.monotonic() - start < 5
    grandchild = int(note.read_text(encoding="utf-8"))
    for _ in range(50):
        if not alive(grandchild):
            break
        time.sleep(0.02)
    assert not alive(grandchild)


def test_a_child_runs_in_the_root_directory_with_the_given_variables_only() -> None:
    finished = run_program(["/bin/sh", "-c", "pwd; echo $GIVEN-$HOME"], {"GIVEN": "yes"}, 5)
    assert (finished.exit_code, finished.output) == (0, "/\nyes-\n")


def test_the_driver_has_time_to_start_every_gpu(tmp_path: Path) -> None:
    for bus in range(8):
        write_tree(tmp_path, pci_gpu("2335", address=f"0000:0{bus}:00.0"))
    assert Machine(Platform.LINUX_64, {}, tmp_path).timeout == 34
    assert Machine(Platform.LINUX_64, {"ENVSOLVE_PROBE_TIMEOUT": "5"}, tmp_path).timeout == 5
    assert Machine(Platform.LINUX_64, {}, tmp_path / "nothing").timeout == 10


@pytest.mark.parametrize("text", ["soon", "-1", "0", "nan", "inf"])
def test_an_invalid_time_limit_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        _ = Machine(Platform.LINUX_64, {"ENVSOLVE_PROBE_TIMEOUT": text}).timeout
    assert raised.value.code == "invalid-environment-variable"


def test_this_machine_has_a_platform_and_a_c_library() -> None:
    assert this_platform() in Platform
    glibc = this_glibc()
    assert glibc is None or glibc.major == 2


@pytest.mark.parametrize(
    ("system", "processor", "platform"),
    [
        ("linux", "x86_64", Platform.LINUX_64),
        ("linux", "aarch64", Platform.LINUX_AARCH64),
        ("darwin", "arm64", Platform.OSX_ARM64),
        ("darwin", "x86_64", Platform.OSX_64),
    ],
)
def test_platforms_are_spelled_as_conda_spells_them(
    system: str, processor: str, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((system, "host", "1", "1", processor)))
    assert this_platform() == platform


def test_a_platform_without_builds_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "host", "1", "1", "riscv64")))
    with pytest.raises(UsageError) as raised:
        this_platform()
    assert raised.value.code == "unsupported-platform"
