"""The variables that probes get for an environment that is not active: those of its activation."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from envsolve.validation import activation
from envsolve.validation.activation import activated
from envsolve.validation.inventory import Inventory

BEFORE = {"PATH": "/usr/bin:/bin", "VIRTUAL_ENV": "/other", "CONDA_PREFIX": "/another"}


def environment(prefix: Path, *, is_conda: bool = False, owns_prefix: bool = True) -> Inventory:
    return Inventory("3.11.7", Path(sys.executable), prefix, (), (), is_conda=is_conda, owns_prefix=owns_prefix)


def script(prefix: Path, name: str, text: str) -> None:
    path = prefix / "etc/conda/activate.d" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_virtual_environment_is_named_and_its_programs_come_first(tmp_path: Path) -> None:
    assert activated(BEFORE, environment(tmp_path)).environ == {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "VIRTUAL_ENV": str(tmp_path),
    }


def test_active_environments_and_system_pythons_are_not_changed(tmp_path: Path) -> None:
    active = {**BEFORE, "VIRTUAL_ENV": str(tmp_path)}
    assert activated(active, environment(tmp_path)).environ == active
    assert activated(BEFORE, environment(tmp_path, owns_prefix=False)).environ == BEFORE


def test_a_conda_prefix_sets_its_variables_and_runs_its_scripts(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta/state").write_text(
        json.dumps({"version": 1, "env_vars": {"OF_CONDA": "1", "UNSET": "***unset***"}})
    )
    script(tmp_path, "first.sh", 'export XLA_FLAGS="--xla_gpu_cuda_data_dir=$CONDA_PREFIX"\necho chatter')
    script(tmp_path, "second.sh", 'export SEEN="$OF_CONDA"')
    script(tmp_path, "first.fish", "exit 1")
    found = activated(BEFORE, environment(tmp_path, is_conda=True)).environ
    assert found["XLA_FLAGS"] == f"--xla_gpu_cuda_data_dir={tmp_path}"
    assert (found["CONDA_PREFIX"], found["OF_CONDA"], found["SEEN"]) == (str(tmp_path), "1", "1")
    assert not {"VIRTUAL_ENV", "UNSET"} & set(found)


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    "text",
    [
        "function of_gcc() { export SEEN=yes; }; of_gcc",
        "parts=(yes no); export SEEN=${parts[0]}",
        "sleep 600 & export SEEN=yes",
        "export SEEN=yes; echo '{}'",
    ],
)
def test_scripts_may_use_bash_and_leave_something_running(tmp_path: Path, text: str) -> None:
    script(tmp_path, "usual.sh", text)
    assert activated(BEFORE, environment(tmp_path, is_conda=True)).environ["SEEN"] == "yes"


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("echo 'no such licence'; exit 3", "It ended the shell with exit code 3."),
        ("exec cat /dev/null", "It ended the shell with exit code 0."),
        ("kill -9 $$", "It died with signal 9 (SIGKILL)."),
        ("yes", "It printed more than 64 MiB and was stopped."),
        ('mkfifo "$envsolve_answer.pipe"; mv "$envsolve_answer.pipe" "$envsolve_answer"; exit', "it is a pipe"),
        ('printf \'\\0{"A": 3}\' >> "$envsolve_answer"; exit', "It ended the shell with exit code 0."),
        ('printf \'\\0{"A=B": ""}\' >> "$envsolve_answer"; exit', "It ended the shell with exit code 0."),
    ],
)
def test_a_failing_script_is_a_finding(tmp_path: Path, text: str, how: str) -> None:
    script(tmp_path, "a.sh", "export FIRST=1")
    script(tmp_path, "bad.sh", text)
    script(tmp_path, "late.sh", "export LATE=1")
    left, (finding,) = activated(BEFORE, environment(tmp_path, is_conda=True))
    assert left == {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "CONDA_PREFIX": str(tmp_path)}
    assert (finding.id, finding.severity) == ("activation-failed", "error")
    if "pipe" not in text:
        assert finding.title == f"The activation script {tmp_path}/etc/conda/activate.d/bad.sh does not run to its end"
    assert how in finding.cause


def test_the_last_output_of_a_script_is_evidence(tmp_path: Path) -> None:
    script(tmp_path, "bad.sh", "echo chatter; echo one; echo 'no such licence' >&2; head -c 900 /dev/zero; exit 3")
    (finding,) = activated(BEFORE, environment(tmp_path, is_conda=True)).findings
    assert finding.evidence[1:] == ("one", "no such licence", "\0" * 300)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text", ["sleep 600", "trap '' TERM; while :; do :; done", "while :; do echo; done > /dev/null"]
)
def test_an_endless_script_is_stopped_and_named(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activation, "SECONDS", 1.0)
    script(tmp_path, "bad.sh", text)
    started = time.monotonic()
    (finding,) = activated(BEFORE, environment(tmp_path, is_conda=True)).findings
    assert time.monotonic() - started < 8
    assert "activate.d/bad.sh" in finding.title
    assert "all scripts together have 1 seconds" in finding.cause


def test_relative_directories_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = {**BEFORE, "PYTHONPATH": "modules:/usr/lib", "LD_LIBRARY_PATH": "/opt/lib:"}
    found = activated(given, environment(tmp_path / "env")).environ
    assert found["PYTHONPATH"] == f"{tmp_path}/modules:/usr/lib"
    assert found["LD_LIBRARY_PATH"] == f"/opt/lib:{tmp_path}"


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (b"", "it is not JSON"),
        (b"[]", "it is no object"),
        (b"null", "it is no object"),
        (b"[" * 100_000, "it is nested too deep"),
        (b"\xff", "it is not UTF-8"),
        (b" " * (1 << 20) + b"{}", "it is longer than 1024 KiB"),
        (b'{"env_vars": []}', "it is no object"),
        (b'{"env_vars": {"A": 1}}', "'A'"),
        (b'{"env_vars": {"A": null}}', "'A'"),
        (b'{"env_vars": {"": "1"}}', "''"),
        (b'{"env_vars": {"A=B": "1"}}', "'A=B'"),
        (b'{"env_vars": {"A\\u0000": "1"}}', "'A\\x00'"),
        (b'{"env_vars": {"A": "1\\u0000"}}', "'A'"),
        (b'{"env_vars": {"A": "\\ud800"}}', "'A'"),
        (b'{"env_vars": {"\\ud800": "1"}}', "'\\ud800'"),
    ],
)
def test_variables_that_conda_did_not_write_are_a_finding(tmp_path: Path, state: bytes, why: str) -> None:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta/state").write_bytes(state)
    left, (finding,) = activated(BEFORE, environment(tmp_path, is_conda=True))
    assert left == {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "CONDA_PREFIX": str(tmp_path)}
    assert (finding.id, finding.severity) == ("file-malformed", "error")
    assert finding.title == f"{tmp_path}/conda-meta/state is malformed"
    assert why in finding.cause


def test_valid_variables_are_set_and_others_dropped(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta/state").write_text('{"env_vars": {"A": "1", "B=C": "2"}}')
    left, findings = activated(BEFORE, environment(tmp_path, is_conda=True))
    assert left["A"] == "1"
    assert len(findings) == 1


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_a_replaced_variables_file_is_not_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "conda-meta").mkdir()
    make(tmp_path / "conda-meta/state")
    (finding,) = activated(BEFORE, environment(tmp_path, is_conda=True)).findings
    assert finding.title.endswith("conda-meta/state is malformed")
