"""Detection and whole command lines in a child process, where a library path can point at the fake driver."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

import envsolve
from envsolve.host.host_file import read_host_file
from envsolve.model.host import Host
from tests.fake_driver.builder import PARTS

SCRIPT = """
import json, os, sys
from pathlib import Path
from envsolve.host.host_file import host_as_json
from envsolve.host.detection import examine
from envsolve.host.machine import Machine
from envsolve.model.host import Platform
from tests.host.tree import PCI_TABLE
asked = json.loads(sys.argv[1])
machine = Machine(Platform(asked["platform"]), dict(os.environ), Path(asked["root"]))
print(json.dumps(host_as_json(examine(machine, thorough=asked["thorough"], pci_table=PCI_TABLE.get))))
"""
REPOSITORY = Path(envsolve.__file__).parents[1]


def detected(
    environ: Mapping[str, str],
    root: Path,
    *,
    thorough: bool = True,
    platform: str = "linux-64",
    directory: Path | None = None,
) -> Host:
    """The host that a child process with ``environ`` detects, with the files of the tree at ``root``.

    A machine with a real driver cannot play one where a part of it is missing.
    """
    lacking = [part for part in PARTS if f"/{part}" not in environ.get("LD_LIBRARY_PATH", "") + environ["PATH"]]
    if lacking and Path("/dev/nvidiactl").exists():
        pytest.skip(f"this machine has a real driver, so {', '.join(lacking)} cannot be missing")
    parameters = json.dumps({"root": str(root), "thorough": thorough, "platform": platform})
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, parameters],
        env={**environ, "PYTHONPATH": str(REPOSITORY)},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    written = root.parent / "detected.json"
    written.write_text(result.stdout, encoding="utf-8")
    return read_host_file(written)


_MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""
"""Between the tests and the command: a process counts the memory of the one that started it as its own, until exec."""


class Ran(NamedTuple):
    """The output of a command line, and the peak memory of its largest process in MiB."""

    code: int
    out: str
    err: str
    memory: int


def ran(environ: dict[str, str], tmp_path: Path, *command: str) -> Ran:
    """Run envsolve. It must end soon, regularly, and print nothing that controls a terminal."""
    peak = tmp_path / "peak"
    result = subprocess.run(
        [sys.executable, "-S", "-c", _MEASURED, str(peak), sys.executable, "-m", "envsolve", *command],
        env={"ENVSOLVE_PROBE_TIMEOUT": "1", **environ, "PYTHONPATH": str(REPOSITORY)},
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    found = Ran(result.returncode, result.stdout, result.stderr, int(peak.read_text("ascii")) // 1024)
    assert found.code in (0, 1), found
    assert found.memory < 1024
    for text in (found.out, found.err):
        assert text.replace("\n", "").isprintable()
        assert "Traceback" not in text
        assert "GARBAGE" not in text
    return found
