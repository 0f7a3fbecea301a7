"""The steps of action.yml, run like a runner does: each script by bash, with the variables of the step."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.distribution.projects import locked_project, set_driver
from tests.distribution.tools import ROOT, SHELL, started

pytestmark = [pytest.mark.wheel, pytest.mark.skipif(os.name == "nt", reason="bash here may be that of WSL")]

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of a runner on Linux after the action's first script, which installs envsolve."""
    temporary = tmp_path_factory.mktemp("runner")
    own = {"GITHUB_ACTION_PATH": str(ROOT), "RUNNER_TEMP": str(temporary), "RUNNER_OS": "Linux"}
    environ = {**os.environ, **own}
    done = run_step("Install envsolve", environ, temporary, {"steps.python.outputs.python-path": sys.executable})
    assert done.returncode == 0, done.stderr
    return environ


def run_step(
    name: str, environ: dict[str, str], directory: Path, values: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run one script of the action; ``values`` are those of the expressions, besides the defaults of its inputs."""
    (step,) = (step for step in ACTION["runs"]["steps"] if step.get("name") == name)
    assert "${{" not in step["run"], "a value in a script is run as code"
    known = {f"inputs.{key}": made["default"] for key, made in ACTION["inputs"].items()} | values
    known["inputs.conda == 'true' && '[conda]' || ''"] = "[conda]" if known["inputs.conda"] == "true" else ""
    variables = {key: re.sub(r"\$\{\{ (.*?) \}\}", lambda it: known[it[1]], text) for key, text in step["env"].items()}
    return started(*SHELL, step["run"], cwd=directory, environ={**environ, **variables})


def test_a_current_lock_passes(runner: dict[str, str], tmp_path: Path) -> None:
    done = run_step("Run envsolve", runner, locked_project(tmp_path / "project"), {})
    assert done.returncode == 0, done.stderr


def test_a_lock_that_is_not_current_fails_with_an_annotation_at_its_file(
    runner: dict[str, str], tmp_path: Path
) -> None:
    project = locked_project(tmp_path / "project")
    set_driver(project, "470.42.01")
    done = run_step("Run envsolve", runner, project, {})
    assert done.returncode == 1
    assert done.stdout.startswith("::error file=environment.yml,")


def test_other_arguments_are_not_executed(runner: dict[str, str], tmp_path: Path) -> None:
    values = {"inputs.args": "matrix show  pytorch==2.14.1", "inputs.output-format": "text"}
    assert "2.14.1" in run_step("Run envsolve", runner, tmp_path, values).stdout
    (tmp_path / "a file").touch()
    done = run_step("Run envsolve", runner, tmp_path, {"inputs.args": "explain $(touch$IFS$9new) * ; touch newer"})
    assert done.returncode != 0
    assert [path.name for path in tmp_path.iterdir()] == ["a file"]


def test_every_value_that_the_steps_use_is_an_input_with_a_default() -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(ACTION["inputs"])
    assert all("default" in made for made in ACTION["inputs"].values())
