"""``envsolve init`` without uv: a new project is for an installed Python that its lock supports."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.test_init import Init, init
from tests.create.test_interpreter import MINOR, program, version_script

__all__ = ["init"]

CPU = ("-f", "pytorch", "--gpu", "none")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH, on a machine without uv; the Python of envsolve is also available."""
    monkeypatch.setattr("envsolve.app.project.python_at_hand.find_uv", lambda: None)
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    for number in range(9, 20):
        program(folder, f"python3.{number}", "exit 127")
    return folder


@pytest.mark.thorough
def test_the_newest_installed_python_for_the_stack_is_written_and_reported(init: Init, programs: Path) -> None:
    program(programs, "python3.13", version_script("3.13.2"))
    program(programs, "python3.99", version_script("3.99.0"))
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


@pytest.mark.thorough
@pytest.mark.skipif(MINOR != "3.11", reason="the made-up index has wheels for Python 3.11")
def test_a_python_without_packages_is_not_chosen(init: Init, programs: Path) -> None:
    program(programs, "python3.13", version_script("3.13.2"))
    done = init(*CPU)
    assert done.code == 0, done.err
    assert "python" not in init.table
    assert "set python =" not in done.err
    assert "-cp311-cp311-" in init.read("pylock.toml")


def test_no_python_is_written_if_the_newest_is_installed(init: Init, programs: Path) -> None:
    for number in range(12, 20):
        program(programs, f"python3.{number}", version_script(f"3.{number}.1"))
    assert init(*CPU, "--no-lock").code == 0
    assert "python" not in init.table


def test_python_does_not_force_an_older_framework(init: Init, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_projects_for_other_machines_or_pythons_or_without_a_stack_have_no_python(
    words: tuple[str, ...], init: Init, programs: Path
) -> None:
    program(programs, "python3.13", version_script("3.13.2"))
    done = init(*words, "--no-lock")
    assert done.code == 0, done.err
    assert init.table.get("python") in (None, ">=3.10")


@pytest.mark.thorough
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
def test_it_satisfies_requires_python(required: str, written: str | None, init: Init, programs: Path) -> None:
    program(programs, "python3.13", version_script("3.13.2"))
    init.write("pyproject.toml", f'[project]\nname = "x"\nrequires-python = "{required}"\n')
    assert init(*CPU, "--no-lock").code == 0
    assert init.table.get("python") == written


def test_an_explicit_python_next_to_requires_python_is_unchanged(init: Init, programs: Path) -> None:
    program(programs, "python3.13", version_script("3.13.2"))
    init.write("pyproject.toml", '[project]\nname = "x"\nrequires-python = ">=3.10"\n')
    assert init(*CPU, "--python", ">=3.11", "--no-lock").code == 0
    assert init.table["python"] == ">=3.11"


def test_with_uv_the_newest_is_downloaded(init: Init, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsolve.app.project.python_at_hand.find_uv", lambda: "uv")
    program(programs, "python3.13", version_script("3.13.2"))
    assert init(*CPU, "--no-lock").code == 0
    assert "python" not in init.table
