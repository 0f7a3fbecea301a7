"""Reading back what an answer holds, and staying near it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envsolve.errors import UsageError
from envsolve.lock.held import read_held
from tests.conftest import Envsolve

NEWER = ("-f", "pytorch", "-f", "tensorflow", "--gpu", "8.6", "--driver", "580.95.05")
OLDER = ("-f", "pytorch==2.9.*", "-f", "tensorflow", "--gpu", "8.6", "--driver", "580.65.06")


def picks(text: str) -> list[str]:
    """The lines of an environment file below its header, without their comments."""
    return [line.partition("#")[0].rstrip() for line in text.splitlines() if not line.startswith("#")]


def test_what_is_written_is_read_back(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    assert envsolve(*OLDER, "-o", str(path)).code == 0
    held = read_held(path)
    assert {name: version for name, version, _ in held.packages}["pytorch"] == "2.9.1"
    assert ("pytorch", "2.9.1", "cuda129*") in held.packages
    assert (held.python, held.cuda) == ("3.12", "12.9")


def test_wheels_are_read_back_too(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    assert (
        envsolve(
            "-f",
            "torch==2.14.1",
            "-f",
            "tf",
            "--gpu",
            "8.6",
            "--source",
            "pypi",
            "--source",
            "pytorch",
            "-o",
            str(path),
        ).code
        == 0
    )
    packages = {name: version for name, version, _ in read_held(path).packages}
    assert packages["torch"] == "2.14.1+cu126"
    assert packages["tensorflow"] == "2.21.0"


def test_json_is_read_back_too(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    assert envsolve(*OLDER, "-o", str(path)).code == 0
    held = read_held(path)
    assert {name for name, _, _ in held.packages} == {"torch", "tensorflow"}
    assert held.python is not None


@pytest.mark.parametrize("name", ["environment.yml", "answer.json"])
def test_locked_changes_nothing_that_still_fits(name: str, envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / name
    assert envsolve(*OLDER, "-o", str(path)).code == 0
    before = path.read_text(encoding="utf-8")
    assert envsolve(*NEWER, "--prefer", "locked", "-o", str(path)).code == 0
    after = path.read_text(encoding="utf-8")
    if name == "environment.yml":
        assert picks(after) == picks(before)
        assert "--prefer locked" in after
    else:
        assert json.loads(after)["frameworks"] == json.loads(before)["frameworks"]
    newest = envsolve(*NEWER).out
    assert picks(newest) != picks(before)


def test_locked_changes_what_no_longer_fits_and_only_that(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    assert envsolve(*OLDER, "-o", str(path)).code == 0
    assert envsolve("-f", "pytorch>=2.10", *NEWER[2:], "--prefer", "locked", "-o", str(path)).code == 0
    packages = {name: version for name, version, _ in read_held(path).packages}
    assert packages["tensorflow"] == "2.19.1"
    assert packages["pytorch"] != "2.9.1"


def test_without_an_earlier_answer_locked_takes_the_newest(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    assert envsolve(*NEWER, "--prefer", "locked", "-o", str(path)).code == 0
    assert picks(path.read_text(encoding="utf-8")) == picks(envsolve(*NEWER).out)


def test_lines_that_say_nothing_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(
        "name: x\ndependencies:\n  - python=3.12\n  - numpy\n  - pytorch>=2\n  - [strange\n", encoding="utf-8"
    )
    held = read_held(path)
    assert (held.packages, held.python, held.cuda) == ((), "3.12", None)


@pytest.mark.parametrize("content", [b"{", b'{"frameworks": 3}', b"{}", b"\xff\xfe\x00"])
def test_a_file_that_is_no_answer_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read_held(path)
    assert refused.value.code == "held-unreadable"


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        read_held(tmp_path)
    assert refused.value.code == "held-unreadable"
