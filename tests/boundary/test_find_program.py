"""A program is found on PATH only, whatever the current directory contains."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from envsolve.boundary.programs import find_program, named_program

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs of the tests are for other systems")


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


@pytest.mark.parametrize("entry", ["", ".", "bin", "./bin", "../here/bin"])
def test_a_program_in_the_current_directory_is_not_found(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    program(here / "uv")
    program(here / "bin" / "uv")
    monkeypatch.chdir(here)
    assert find_program("uv", {"PATH": entry}) is None
    other = program(tmp_path / "other" / "uv")
    assert find_program("uv", {"PATH": os.pathsep.join((entry, str(other.parent)))}) == str(other)


def test_the_first_executable_counts(tmp_path: Path) -> None:
    (tmp_path / "a" / "uv").mkdir(parents=True)
    program(tmp_path / "b" / "uv", 0o644)
    found, later = program(tmp_path / "c" / "uv"), program(tmp_path / "d" / "uv")
    path = os.pathsep.join(str(tmp_path / it) for it in ("none", "a", "b", "c", "d"))
    assert find_program("uv", {"PATH": path}) == str(found)
    assert find_program("uv", {"PATH": str(later.parent)}) == str(later)
    assert find_program("pip", {"PATH": path}) is None


def test_a_program_is_named_by_a_path_or_by_what_path_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, other = program(tmp_path / "here" / "python"), program(tmp_path / "other" / "python")
    monkeypatch.chdir(here.parent)
    assert named_program("python", {"PATH": os.pathsep.join((".", "", str(other.parent)))}) == str(other)
    assert named_program("python", {"PATH": "."}) is None
    assert named_program("./python", {}) == "./python"
    assert named_program(str(other), {}) == str(other)
    assert named_program("./none", {"PATH": str(other.parent)}) is None
