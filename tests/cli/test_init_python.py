"""``envsolve init`` without uv: a new project is for a Python that is there, of which its lock can be installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.test_init import Init, init
from tests.create.test_interpreter import MINOR, program, tells

__all__ = ["init"]

CPU = ("-f", "pytorch", "--gpu", "none")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one directory of the PATH, on a machine without uv; the Python of envsolve is there beside it."""
    monkeypatch.setattr("envsolve.app.project.python_at_hand.find_uv", lambda: None)
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    for number in range(9, 20):
        program(folder, f"python3.{number}", "exit 127")
    return folder


def test_the_newest_python_that_is_there_and_takes_the_stack_is_written_and_told(init: Init, programs: Path) -> None:
    program(programs, "python3.13", tells("3.13.2"))
    program(programs, "python3.99", tells("3.99.0"))
    done = init(*CPU, "--no-lock")
    assert done.code == 0, done.err
    assert init.table["python"] == "3.13"
    assert 'note: set python = "3.13": the frameworks also support Python 3.' in done.err


@pytest.mark.skipif(MINOR != "3.11", reason="the made-up index has wheels for Python 3.11")
def test_the_lock_is_for_that_python(init: Init, programs: Path) -> None:
    done = init(*CPU)
    assert done.code == 0, done.err
    assert init.table["python"] == MINOR
    assert "-cp311-cp311-" in init.read("pylock.toml")


@pytest.mark.skipif(MINOR != "3.11", reason="the made-up index has wheels for Python 3.11")
def test_a_python_that_packages_are_not_there_for_is_not_asked_for(init: Init, programs: Path) -> None:
    program(programs, "python3.13", tells("3.13.2"))
    done = init(*CPU)
    assert done.code == 0, done.err
    assert "python" not in init.table
    assert "set python =" not in done.err
    assert "-cp311-cp311-" in init.read("pylock.toml")


def test_where_the_newest_is_there_none_is_written(init: Init, programs: Path) -> None:
    for number in range(12, 20):
        program(programs, f"python3.{number}", tells(f"3.{number}.1"))
    assert init(*CPU, "--no-lock").code == 0
    assert "python" not in init.table


def test_a_framework_does_not_become_an_older_one_for_it(
    init: Init, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envsolve.app.project.python_at_hand.pythons_here", lambda *_: ("3.9",))
    assert init(*CPU, "--no-lock").code == 0
    assert "python" not in init.table


@pytest.mark.parametrize(
    "words",
    [
        (*CPU, "--python", ">=3.10"),
        ("-f", "pytorch", "--gpu", "8.6"),
        ("-f", "pytorch", "--gpu", "none", "--platform", "win-64" if sys.platform != "win32" else "linux-64"),
        (*CPU, "-o", "environment.yml"),
        ("flask",),
    ],
)
def test_a_project_for_another_machine_or_python_and_one_without_a_stack_are_left(
    words: tuple[str, ...], init: Init, programs: Path
) -> None:
    program(programs, "python3.13", tells("3.13.2"))
    done = init(*words, "--no-lock")
    assert done.code == 0, done.err
    assert init.table.get("python") in (None, ">=3.10")


@pytest.mark.parametrize(
    ("required", "written"),
    [
        (">=3.10", "3.13"),
        (">=3.13.1", "3.13"),
        (">=3.13.3", None),
        (">=3.14", None),
        (">=3.10,<3.14", None),
    ],
)
def test_it_is_one_of_those_that_the_pyproject_requires(
    required: str, written: str | None, init: Init, programs: Path
) -> None:
    program(programs, "python3.13", tells("3.13.2"))
    init.write("pyproject.toml", f'[project]\nname = "x"\nrequires-python = "{required}"\n')
    assert init(*CPU, "--no-lock").code == 0
    assert init.table.get("python") == written


def test_a_python_that_is_named_beside_what_the_pyproject_requires_is_left(init: Init, programs: Path) -> None:
    program(programs, "python3.13", tells("3.13.2"))
    init.write("pyproject.toml", '[project]\nname = "x"\nrequires-python = ">=3.10"\n')
    assert init(*CPU, "--python", ">=3.11", "--no-lock").code == 0
    assert init.table["python"] == ">=3.11"


def test_where_uv_is_there_it_fetches_the_newest(init: Init, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsolve.app.project.python_at_hand.find_uv", lambda: "uv")
    program(programs, "python3.13", tells("3.13.2"))
    assert init(*CPU, "--no-lock").code == 0
    assert "python" not in init.table
