"""What probes get of an environment that is not active: what activating it would set."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from envsolve.validate.activation import activated
from envsolve.validate.inventory import Inventory

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


def test_an_active_environment_and_a_systems_python_stay_as_they_are(tmp_path: Path) -> None:
    active = {**BEFORE, "VIRTUAL_ENV": str(tmp_path)}
    assert activated(active, environment(tmp_path)).environ == active
    assert activated(BEFORE, environment(tmp_path, owns_prefix=False)).environ == BEFORE


def test_a_conda_prefix_brings_its_variables_and_runs_its_scripts(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta/state").write_text(json.dumps({"version": 1, "env_vars": {"OF_CONDA": "1"}}))
    script(tmp_path, "first.sh", 'export XLA_FLAGS="--xla_gpu_cuda_data_dir=$CONDA_PREFIX"\necho chatter')
    script(tmp_path, "second.sh", 'export SEEN="$OF_CONDA"')
    script(tmp_path, "first.fish", "exit 1")
    found = activated(BEFORE, environment(tmp_path, is_conda=True)).environ
    assert found["XLA_FLAGS"] == f"--xla_gpu_cuda_data_dir={tmp_path}"
    assert (found["CONDA_PREFIX"], found["OF_CONDA"], found["SEEN"]) == (str(tmp_path), "1", "1")
    assert "VIRTUAL_ENV" not in found


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
def test_scripts_may_be_written_for_bash_and_leave_something_running(tmp_path: Path, text: str) -> None:
    script(tmp_path, "usual.sh", text)
    assert activated(BEFORE, environment(tmp_path, is_conda=True)).environ["SEEN"] == "yes"


@pytest.mark.parametrize("text", ["exit 3", "exec cat /dev/null"])
def test_a_script_that_ends_the_shell_is_left_out_with_a_note(tmp_path: Path, text: str) -> None:
    script(tmp_path, "bad.sh", text)
    found = activated(BEFORE, environment(tmp_path, is_conda=True))
    assert found.environ["CONDA_PREFIX"] == str(tmp_path)
    assert "do not run through" in found.notes[0]


def test_directories_that_are_told_from_here_are_told_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = {**BEFORE, "PYTHONPATH": "modules:/usr/lib", "LD_LIBRARY_PATH": "/opt/lib:"}
    found = activated(given, environment(tmp_path / "env")).environ
    assert found["PYTHONPATH"] == f"{tmp_path}/modules:/usr/lib"
    assert found["LD_LIBRARY_PATH"] == f"/opt/lib:{tmp_path}"


@pytest.mark.parametrize("state", ["", "[]", '{"env_vars": []}', '{"env_vars": {"A": 1}}'])
def test_variables_that_conda_did_not_write_count_for_nothing(tmp_path: Path, state: str) -> None:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta/state").write_text(state)
    found = activated(BEFORE, environment(tmp_path, is_conda=True)).environ
    assert found == {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "CONDA_PREFIX": str(tmp_path)}
