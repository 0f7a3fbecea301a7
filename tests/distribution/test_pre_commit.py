"""The hooks of .pre-commit-hooks.yaml, installed and run by pre-commit from a clone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.distribution.projects import locked_project, set_driver
from tests.distribution.tools import NO_PARTS, ROOT, call, started, tool

pytestmark = pytest.mark.wheel

GIT = ("git", "-c", "user.name=me", "-c", "user.email=me@example.org")
CONFIG = """\
repos:
  - repo: {clone}
    rev: {commit}
    hooks:
      - id: envsolve-lock-check
      - id: envsolve-status
"""


def committed(directory: Path) -> str:
    """The commit of all files of a directory, which becomes a repository."""
    call("git", "init", "-q", cwd=directory)
    call("git", "add", "--all", cwd=directory)
    call(*GIT, "commit", "-qm", "all", cwd=directory)
    return call("git", "rev-parse", "HEAD", cwd=directory).strip()


def test_the_manifest_is_valid(tmp_path: Path) -> None:
    call(*tool("pre-commit"), "validate-manifest", ROOT / ".pre-commit-hooks.yaml", cwd=tmp_path)


def test_the_hooks_pass_on_a_current_lock_and_fail_on_another(tmp_path: Path) -> None:
    clone = shutil.copytree(ROOT, tmp_path / "clone", ignore=NO_PARTS)
    commit = committed(clone)
    project = locked_project(tmp_path / "project")
    (project / ".pre-commit-config.yaml").write_text(CONFIG.format(clone=clone, commit=commit), encoding="utf-8")
    committed(project)
    environ = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home")}
    call(*tool("pre-commit"), "run", "--all-files", cwd=project, environ=environ)

    set_driver(project, "470.42.01")
    call("git", "add", "--all", cwd=project)
    done = started(*tool("pre-commit"), "run", cwd=project, environ=environ)
    assert done.returncode == 1
    assert done.stdout.count("Failed") == 2, done.stdout
