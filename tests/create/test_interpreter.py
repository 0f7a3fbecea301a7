"""The Python of a venv is a CPython of the right version that really runs, or one clear error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.create.interpreter import find_python, runs
from envsolve.errors import OutsideError

THIS = ".".join(map(str, sys.version_info[:3]))
MINOR = ".".join(map(str, sys.version_info[:2]))


def program(directory: Path, name: str, says: str) -> None:
    """A program of this name that answers like an interpreter."""
    path = directory / name
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)


def version_script(version: str, implementation: str = "cpython", threaded: str = "false", level: str = "final") -> str:
    parts = f"[{', '.join(version.split('.'))}]"
    return f"""echo '[{parts}, "{implementation}", "'$0'", {threaded}, "{level}"]' > "$4\""""


def test_without_uv_path_is_searched_and_unsuitable_pythons_are_skipped(tmp_path: Path) -> None:
    program(tmp_path, "python3.99", version_script("3.99.1"))
    program(tmp_path, "python3.21", "exit 127")
    program(tmp_path, "python3.22", version_script("3.22.5", "pypy"))
    program(tmp_path, "python3.23", version_script("3.23.5", threaded="true"))
    program(tmp_path, "python3.24", version_script("3.24.0", level="candidate"))
    program(tmp_path, "python3", version_script("3.25.3"))
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    found = find_python(SpecifierSet(">=3.20,<4"), None, environ, offline=True)
    assert (found.program, found.version) == (str(tmp_path / "python3"), "3.25.3")


def test_the_python_of_envsolve_is_used_if_it_fits(tmp_path: Path) -> None:
    found = find_python(SpecifierSet(f"=={MINOR}.*"), None, {"PATH": str(tmp_path)}, offline=True)
    assert found.version == THIS
    assert Path(found.program).exists()


def test_for_a_project_the_fix_is_its_key_and_a_new_lock(tmp_path: Path) -> None:
    with pytest.raises(OutsideError) as raised:
        find_python(SpecifierSet("==3.98.*"), None, {"PATH": str(tmp_path)}, offline=True, project="pyproject.toml")
    hint = raised.value.hints[1]
    assert hint.text.endswith(f'Python: python = "{MINOR}" in pyproject.toml')
    assert hint.command == "envsolve lock"


@pytest.mark.thorough
@pytest.mark.parametrize("versions", ["==3.98.*,>=3.98.2", "==3.97.1", ">=3.90"])
def test_a_missing_python_is_an_error_with_a_fix(versions: str, tmp_path: Path) -> None:
    with pytest.raises(OutsideError) as raised:
        find_python(SpecifierSet(versions), None, {"PATH": str(tmp_path)}, offline=True)
    error = raised.value
    assert error.code == "python-not-found"
    assert "uv is not installed" in error.cause[0]
    assert [hint.command for hint in error.hints] == ["pip install uv", None, None]
    assert error.hints[1].text.endswith(f"--python {MINOR}")


@pytest.mark.thorough
def test_the_patch_version_matters(tmp_path: Path) -> None:
    program(tmp_path, "python3.21", version_script("3.21.3"))
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert find_python(SpecifierSet(">=3.21.3,==3.21.*"), None, environ, offline=True).version == "3.21.3"
    with pytest.raises(OutsideError):
        find_python(SpecifierSet(">=3.21.4,==3.21.*"), None, environ, offline=True)


def test_a_python_in_a_directory_that_looks_like_a_token_is_found(tmp_path: Path) -> None:
    (tmp_path / "t" / "tools").mkdir(parents=True)
    program(tmp_path / "t" / "tools", "python3.21", version_script("3.21.3"))
    environ = {"PATH": f"{tmp_path}/t/tools:/usr/bin:/bin"}
    found = find_python(SpecifierSet("==3.21.*"), None, environ, offline=True)
    assert found.program == str(tmp_path / "t" / "tools" / "python3.21")


def test_extra_output_is_not_part_of_the_answer(tmp_path: Path) -> None:
    program(tmp_path, "python3.21", f"echo 'a banner'; {version_script('3.21.3')}; echo '[]'")
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert find_python(SpecifierSet("==3.21.*"), None, environ, offline=True).version == "3.21.3"


@pytest.mark.thorough
@pytest.mark.parametrize("answer", ["", "[" * 100_000, "[]", "{}", '[["3", "21", "3"], 1, 2, 3, 4]', "null", "\\377"])
def test_a_nonsensical_answer_is_skipped(tmp_path: Path, answer: str) -> None:
    (tmp_path / "answer").write_text(answer)
    program(tmp_path, "python3.21", f'cat {tmp_path}/answer > "$4"')
    program(tmp_path, "python3", version_script("3.21.4"))
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert find_python(SpecifierSet("==3.21.*"), None, environ, offline=True).version == "3.21.4"


def test_an_interpreter_runs_or_does_not(tmp_path: Path) -> None:
    program(tmp_path, "broken", "exit 127")
    assert runs(Path(sys.executable), {})
    assert not runs(tmp_path / "broken", {})
    assert not runs(tmp_path / "none", {})
