"""Detection and whole command lines in a child process, where a library path can point at the fake driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
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
    asked = json.dumps({"root": str(root), "thorough": thorough, "platform": platform})
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, asked],
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


class Ran(NamedTuple):
    """What a command line printed, and the largest of its processes in MiB."""

    code: int
    out: str
    err: str
    memory: int


def ran(environ: dict[str, str], tmp_path: Path, *command: str) -> Ran:
    """Run envsolve. It must end soon, in its own way, and print nothing that steers a terminal."""
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "envsolve", *command],
            env={"ENVSOLVE_PROBE_TIMEOUT": "1", **environ, "PYTHONPATH": str(REPOSITORY)},
            cwd=tmp_path,
            stdout=stdout,
            stderr=stderr,
        )
    timer = threading.Timer(60, process.kill)
    timer.start()
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    found = Ran(process.returncode, out.read_text("utf-8"), err.read_text("utf-8"), usage.ru_maxrss // 1024)
    assert found.code in (0, 1), found
    assert found.memory < 1024
    for text in (found.out, found.err):
        assert text.replace("\n", "").isprintable()
        assert "Traceback" not in text
        assert "GARBAGE" not in text
    return found
