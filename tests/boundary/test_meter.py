"""The bytes that a running program has written and its run time are reported every second."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from envsolve.boundary.meter import metered, packages_text
from tests.validation.test_child import until

WRITES = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_bytes(b'x' * 3_000_000); print(flush=True); input()"


@pytest.mark.thorough
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not count it")
@pytest.mark.parametrize("by", ["itself", "what it starts"])
def test_bytes_rate_and_time_are_reported(by: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", WRITES, str(tmp_path / "file")]
    if by != "itself":
        words = [sys.executable, "-c", f"import subprocess; subprocess.run({words!r})"]
    reports: list[str] = []
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with metered(process.pid, "3 packages", reports.append):
            until(lambda: any(it.startswith("3 packages, 3.0 MB written, 3.0 MB/s, 1 s") for it in reports))
            until(lambda: any(it.startswith("3 packages, 3.0 MB written, 0 bytes/s, ") for it in reports))
        process.communicate(b"\n")
    assert reports[0] == "3 packages"


def test_without_a_counter_only_the_time_is_reported() -> None:
    reports: list[str] = []
    with metered(2**30, "1 package", reports.append):
        until(lambda: "1 package, 1 s" in reports)


def test_the_size_is_reported_if_every_package_has_one() -> None:
    assert packages_text([1_000_000, 2_000_000_000]) == "2 packages of 2.0 GB"
    assert packages_text([1_000_000, None]) == "2 packages"
    assert packages_text([5]) == "1 package of 5 bytes"
