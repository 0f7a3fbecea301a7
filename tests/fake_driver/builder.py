"""Building the fake driver and describing the machine that it simulates.

    def test_something(fake_driver: FakeDriver) -> None:
        environ = fake_driver.environ(
            driver="580.65.06",
            cuda="13.0",
            devices=[Device("NVIDIA GeForce GTX 1080 Ti", "6.1", 11264)],
        )
        subprocess.run([sys.executable, "-m", "envsolve", "detect", "--json"], env=environ)

The libraries must be on LD_LIBRARY_PATH when a process starts, so always use the fake through a child process. The
``fake_driver`` fixture is in ``tests/host/conftest.py``; a conftest elsewhere gets it with
``from tests.fake_driver.builder import fake_driver``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LIBRARIES = {
    "libcuda": ("libcuda.so.1", ("libcuda.c", "libcuda_work.c")),
    "libnvidia-ml": ("libnvidia-ml.so.1", ("libnvidia_ml.c",)),
}
"""Per part, the name of its library and its sources."""
PARTS = ("libnvidia-ml", "libcuda", "nvidia-smi")
INHERITED = (
    "HOME",
    "XDG_CACHE_HOME",
    "LANG",
    "TMPDIR",
    "PYTHONPATH",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
    "COVERAGE_PROCESS_START",
)


@dataclass(frozen=True)
class Device:
    """One GPU of the fake machine."""

    name: str
    compute_capability: str
    memory_mib: int = 8192
    mig: bool = False

    def __str__(self) -> str:
        return f"{self.name}|{self.compute_capability}|{self.memory_mib}" + ("|mig" if self.mig else "")


GTX_1080_TI = Device("NVIDIA GeForce GTX 1080 Ti", "6.1", 11264)


@dataclass(frozen=True)
class FakeDriver:
    """The built fake: one directory for each part, so that a machine may lack one."""

    root: Path

    def environ(
        self,
        *,
        driver: str = "580.65.06",
        cuda: str = "13.0",
        devices: Iterable[Device] = (GTX_1080_TI,),
        parts: Iterable[str] = PARTS,
        fail: Mapping[str, int] | None = None,
        hang: Iterable[str] = (),
        crash: Iterable[str] = (),
        kernel: str = "right",
        **more: str,
    ) -> dict[str, str]:
        """The whole environment of a child process on the described machine.

        ``parts`` are those of PARTS that are installed. ``fail`` maps calls (``cuInit``, ``nvmlInitWithFlags``,
        ``nvmlDeviceGetName@1``, ``nvidia-smi``) to error numbers; ``hang`` and ``crash`` name calls. ``kernel`` is what
        becomes of kernels, as machine.h says: ``wrong``, or ``wrong@1`` for one device. ``more`` are further variables,
        such as CUDA_VISIBLE_DEVICES or FAKE_NV_SMI_WITHOUT.
        """
        here = list(parts)
        libraries = [str(self.root / part) for part in LIBRARIES if part in here]
        programs = [str(self.root / "nvidia-smi")] if "nvidia-smi" in here else []
        return {
            **{name: os.environ[name] for name in INHERITED if name in os.environ},
            **({"LD_LIBRARY_PATH": ":".join(libraries)} if libraries else {}),
            "PATH": ":".join([*programs, os.defpath.strip(":")]),
            "FAKE_NV_DRIVER": driver,
            "FAKE_NV_CUDA": cuda,
            "FAKE_NV_DEVICES": ";".join(map(str, devices)),
            "FAKE_NV_FAIL": ",".join(f"{call}={code}" for call, code in (fail or {}).items()),
            "FAKE_NV_HANG": ",".join(hang),
            "FAKE_NV_CRASH": ",".join(crash),
            "FAKE_NV_KERNEL": kernel,
            **more,
        }

    def library(self, part: str) -> Path:
        """The built file of one library, to be copied or linked elsewhere."""
        return self.root / part / LIBRARIES[part][0]


def build(root: Path) -> FakeDriver:
    """Compile the libraries and write nvidia-smi under ``root``; skip the test if that is not possible."""
    compiler = shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("the fake NVIDIA driver needs gcc on Linux")
    for part, (soname, sources) in LIBRARIES.items():
        target = root / part / soname
        target.parent.mkdir(parents=True)
        command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden"]
        command += [f"-Wl,-soname,{soname}", "-o", str(target), *(str(HERE / source) for source in sources)]
        subprocess.run(command, check=True)
    _write_nvidia_smi(root / "nvidia-smi" / "nvidia-smi")
    return FakeDriver(root)


def _write_nvidia_smi(program: Path) -> None:
    program.parent.mkdir(parents=True)
    script = HERE / "nvidia_smi.py"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -IS '{script}' \"$@\"\n", encoding="utf-8")
    program.chmod(0o755)


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> FakeDriver:
    """The fake driver, built once for the whole session."""
    return build(tmp_path_factory.mktemp("fake-driver"))
