"""``--dry-run``: the files that would be new, changed or unchanged are named, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from envsolve.cli.main import cli
from tests.cli.test_lock import Project, project
from tests.conftest import Envsolve

__all__ = ["project"]

NETWORK = ("--cache-dir", "cache")
PYTORCH = ("-f", "pytorch", "--driver", "580.65.06", "-o", "environment.yml")


def written(directory: Path) -> dict[str, bytes]:
    """The files below ``directory``, without downloads."""
    found = (it for it in directory.rglob("*") if it.is_file() and "cache" not in it.parts)
    return {it.relative_to(directory).as_posix(): it.read_bytes() for it in found}


@pytest.mark.thorough
def test_a_file_is_new_changed_or_unchanged(
    envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = envsolve(*PYTORCH, "--gpu", "8.6", "--dry-run")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("note: environment.yml would be new\n")
    assert not list(tmp_path.iterdir())
    assert envsolve(*PYTORCH, "--gpu", "8.6").code == 0
    before = written(tmp_path)
    assert "note: environment.yml is unchanged\n" in envsolve(*PYTORCH, "--gpu", "8.6", "--dry-run").err
    assert "note: environment.yml would be changed\n" in envsolve(*PYTORCH, "--gpu", "9.0", "--dry-run").err
    assert "would be" not in envsolve(*PYTORCH, "--gpu", "9.0", "--dry-run", "-q").err
    assert written(tmp_path) == before
    printed = envsolve(*PYTORCH[:-2], "--gpu", "8.6", "--dry-run")
    assert printed.out.encode() == before["environment.yml"]


def test_a_file_that_needs_force_is_refused(
    envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("environment.yml").write_text("dependencies: [python]\n")
    assert envsolve(*PYTORCH, "--gpu", "8.6", "--dry-run").code == 2
    assert "would be changed" in envsolve(*PYTORCH, "--gpu", "8.6", "--dry-run", "--force").err


def test_an_impossible_write_is_the_same_error(
    envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("-f", "pytorch", "--gpu", "8.6", "-o", "nowhere/environment.yml")
    done = envsolve(*words)
    assert (done.code, done.err.splitlines()[0]) == (2, "error: output-not-writable")
    assert envsolve(*words, "--dry-run") == done._replace(
        err=done.err.replace("environment.yml\n", "environment.yml --dry-run\n")
    )


def test_a_variable_enables_it_too(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENVSOLVE_DRY_RUN", "1")
    Path("requirements.txt").write_text("numpy==2.0\n")
    done = envsolve("export", "requirements.txt", "--format", "constraints", "-o", "constraints.txt")
    assert (done.code, "constraints.txt would be new" in done.err) == (0, True), done.err
    assert written(tmp_path).keys() == {"requirements.txt"}


@pytest.mark.thorough
def test_changes_of_lock_are_listed(project: Project) -> None:
    before = written(project.directory)
    done = project("lock", "--dry-run", *NETWORK)
    assert done.code == 0, done.err
    assert "note: requirements.txt, locks/pylock.toml: would be written\n" in done.err
    assert done.err.count("locks/pylock.toml") == 1
    assert not (project.directory / "locks").exists()
    assert written(project.directory) == before
    project("lock", *NETWORK)
    before = written(project.directory)
    project.say('python = "3.11.7"', 'python = "3.11.9"')
    done = project("lock", "--dry-run", *NETWORK)
    assert "requirements.txt would be changed" not in done.err
    assert "requirements.txt, locks/pylock.toml: would be written, Python 3.11.7 -> 3.11.9" in done.err
    files = json.loads(project("lock", "--dry-run", "--json", *NETWORK).out)["files"]
    assert [it["status"] for it in files] == ["stale", "stale"]
    project.say('python = "3.11.9"', 'python = "3.11.7"')
    assert written(project.directory) == before
    assert "would be" not in project("lock", "--dry-run", *NETWORK).err


@pytest.mark.thorough
def test_a_new_requirement_is_tried_without_writing_it(project: Project) -> None:
    project("lock", *NETWORK)
    before = written(project.directory)
    for words in (("add", "typing-extensions"), ("remove", "numpy"), ("add", "typing-extensions", "--sync")):
        done = project(*words, "--dry-run", *NETWORK)
        assert done.code == 0, done.err
        assert f"note: {project.file} would be changed\n" in done.err
        assert "note: requirements.txt, locks/pylock.toml: would be written, " in done.err
        assert "requirements.txt would be changed" not in done.err
        assert written(project.directory) == before
    assert project("add", "no-such-package", "--dry-run", *NETWORK).code == 1


COMMANDS = {"solve", "init", "lock", "add", "remove", "create", "sync", "export", "capture", "fleet import"}


def test_every_command_that_writes_locks_or_environments_has_the_option() -> None:
    found = set()
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        subs = command.commands.items() if isinstance(command, click.Group) else [("", command)]
        found |= {f"{name} {sub}".strip() for sub, it in subs if any(p.name == "dry_run" for p in it.params)}
    assert found == COMMANDS
