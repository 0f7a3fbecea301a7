"""The process that installs packages may end in any way: an unfinished installation is one error, and is removed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envsolve.conda.install_failures import failed
from envsolve.conda.installing import Installation, install, package_cache
from envsolve.errors import OutsideError
from envsolve.model.conda import CondaPackage

URL = "https://me:hunter2@host/t/tk-1/chan/linux-64/alpha-1.0-h_3.conda"
PACKAGE = CondaPackage("alpha", "1.0", "h_3", "linux-64", URL, sha256="0" * 64, channel="https://host/chan")


def running(program: str) -> Callable[[], subprocess.Popen[bytes]]:
    """Starts a program in place of the one that installs."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return lambda: subprocess.Popen([sys.executable, "-c", program], **pipes)  # type: ignore[call-overload]


def installation(directory: Path) -> Installation:
    return Installation(directory / "env", "linux-64", (PACKAGE,), directory / "cache")


@pytest.mark.parametrize(
    "program",
    [
        "import sys; sys.exit('something broke at https://me:hunter2@host/t/tk-1/chan')",
        "import os, sys; sys.stderr.write('something broke'); sys.stderr.flush(); os.abort()",
        "import sys; sys.stdout.write('100\\n{'); sys.stderr.write('something broke')",
    ],
    ids=["ends", "crashes", "breaks off"],
)
def test_a_process_that_ends_without_an_answer_is_one_error(program: str, tmp_path: Path) -> None:
    with pytest.raises(OutsideError) as raised:
        install(installation(tmp_path), lambda _: None, running(program))
    assert raised.value.code == "conda-installer-failed"
    assert "something broke" in raised.value.cause[0]
    assert "hunter2" not in raised.value.cause[0]
    assert "tk-1" not in raised.value.cause[0]


def test_progress_is_reported_and_a_crash_after_the_answer_does_not_matter(tmp_path: Path) -> None:
    program = (
        "import json, os, sys\n"
        "for it in ({'progress': '1 of 1, alpha'}, {'done': True}):\n"
        "    text = json.dumps(it); print(len(text)); sys.stdout.write(text); sys.stdout.flush()\n"
        "os.abort()\n"
    )
    reports: list[str] = []
    install(installation(tmp_path), reports.append, running(program))
    assert reports == ["1 package", "1 of 1, alpha"]


@pytest.mark.thorough
def test_a_long_installation_reports_its_time(tmp_path: Path) -> None:
    reports: list[str] = []
    with pytest.raises(OutsideError):
        install(installation(tmp_path), reports.append, running("import time; time.sleep(1.5)"))
    assert reports[0] == "1 package"
    assert reports[1].endswith(", 1 s")


def test_the_process_gets_credentials_separate_from_addresses(tmp_path: Path) -> None:
    program = (
        "import json, sys\n"
        "settings, job = (sys.stdin.buffer.read(int(sys.stdin.buffer.readline())) for _ in range(2))\n"
        f"open({str(tmp_path / 'settings')!r}, 'wb').write(settings)\n"
        f"open({str(tmp_path / 'job')!r}, 'wb').write(job)\n"
        "text = json.dumps({'done': True}); print(len(text)); sys.stdout.write(text)\n"
    )
    logins = (("https://host/chan", "https://me:hunter%212@host/t/tk-1/chan"),)
    install(installation(tmp_path)._replace(logins=logins), lambda _: None, running(program))
    job = (tmp_path / "job").read_text()
    assert '"build_number": 3' in job
    assert "https://host/chan/linux-64/alpha-1.0-h_3.conda" in job
    assert "tk-1" not in job
    assert "hunter" not in job
    assert json.loads((tmp_path / "settings").read_text())["logins"] == {
        "mirrors": {"https://host/chan/": "https://host/t/tk-1/chan/"},
        "hosts": {"host": ["me", "hunter!2"]},
    }


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("failed to fetch alpha-1.0-h_3.conda\nCaused by: hash mismatch when extracting", "checksum-mismatch"),
        ("failed to link alpha-1.0-h_3.conda\nCaused by: No space left on device (os error 28)", "disk-failed"),
        ("failed to create\nCaused by: Permission denied (os error 13)", "disk-failed"),
        ("failed to fetch alpha-1.0-h_3.conda\nCaused by: HTTP status client error (404 Not Found)", "channel-failed"),
        ("failed to fetch alpha-1.0-h_3.conda\nCaused by: error sending request", "channel-unreachable"),
    ],
)
def test_each_failure_has_its_code_and_a_hint(text: str, code: str) -> None:
    error = failed("InstallerError", text, (PACKAGE,))
    assert error.code == code
    assert error.hints
    assert error.cause


def test_packages_are_cached_where_rattler_caches_them(tmp_path: Path) -> None:
    assert package_cache({"RATTLER_CACHE_DIR": str(tmp_path)}) == tmp_path / "pkgs"
    if sys.platform == "linux":
        assert package_cache({"XDG_CACHE_HOME": "/c"}) == Path("/c/rattler/cache/pkgs")
