"""Detection in a child process, which is where a library path can point at the fake driver."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

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
