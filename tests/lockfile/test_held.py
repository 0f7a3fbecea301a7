"""Reading back what an answer holds, and staying near it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envsolve.errors import UsageError
from envsolve.lockfile.held import read_held
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


def test_each_platform_keeps_what_its_own_file_holds(envsolve: Envsolve, tmp_path: Path) -> None:
    both = ("--gpu", "8.6", "--platform", "linux-64", "--platform", "win-64", "-o", str(tmp_path / "p.{platform}.yml"))
    assert envsolve("-f", "pytorch<2.10", *both).code == 0
    before = {path.name: picks(path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()}
    assert envsolve("-f", "pytorch", "--prefer", "locked", *both).code == 0
    assert {path.name: picks(path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()} == before


def test_of_an_answer_for_several_platforms_each_keeps_its_own_part(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    both = ("--gpu", "8.6", "--platform", "linux-64", "--platform", "win-64", "-o", str(path))
    assert envsolve("-f", "pytorch<2.10", *both).code == 0
    before = json.loads(path.read_text(encoding="utf-8"))["platforms"]
    builds = [(part["frameworks"][0]["package"], part["frameworks"][0]["build"]) for part in before]
    assert [read_held(path, name).packages[0][::2] for name in ("linux-64", "win-64")] == [
        (package, f"{build}*") for package, build in builds
    ]
    assert envsolve("-f", "pytorch", "--prefer", "locked", *both).code == 0
    after = json.loads(path.read_text(encoding="utf-8"))["platforms"]
    assert [part["frameworks"] for part in after] == [part["frameworks"] for part in before]


def test_a_conda_build_of_a_json_answer_is_kept_by_its_build(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    older = ("-f", "pytorch==2.10.0", "--gpu", "8.6", "--source", "conda-forge", "--cuda", "12", "-o", str(path))
    assert envsolve(*older).code == 0
    build = json.loads(path.read_text(encoding="utf-8"))["frameworks"][0]["build"]
    again = ("-f", "pytorch", "--gpu", "8.6", "--source", "conda-forge", "--prefer", "locked", "-o", str(path))
    assert envsolve(*again).code == 0
    kept = json.loads(path.read_text(encoding="utf-8"))["frameworks"][0]
    assert (kept["version"], kept["build"]) == ("2.10.0", build)


@pytest.mark.parametrize(
    "part",
    [
        {"frameworks": [{"package": 5, "version": 7, "build": None}], "python": 3.11, "cuda": "abc"},
        {"frameworks": [{"package": "torch", "version": "2.9.1", "build": "cu126"}], "python": "3.12", "cuda": 12},
        {"frameworks": 3, "python": "3.12", "cuda": None},
    ],
)
def test_json_of_another_shape_is_no_answer_and_stays(
    part: dict[str, object], envsolve: Envsolve, tmp_path: Path
) -> None:
    path = tmp_path / "answer.json"
    part = {"envsolve_version": "1.0", **part}
    path.write_text(json.dumps(part), encoding="utf-8")
    result = envsolve("-f", "pytorch", "--gpu", "8.6", "--prefer", "locked", "-o", str(path))
    assert result.code == 2
    assert result.err.startswith("error: held-unreadable\n  the file of -o is JSON, but no answer of envsolve\n")
    assert json.loads(path.read_text(encoding="utf-8")) == part


@pytest.mark.parametrize(
    ("line", "pin"),
    [
        ("  - pytorch=2.9.1=cuda129*   # sm_86 runs on 8.6", ("pytorch", "2.9.1", "cuda129*")),
        ('  - "pytorch=2.9.1=cuda129*"', ("pytorch", "2.9.1", "cuda129*")),
        ("  - 'pytorch=2.9.1'  # mine", ("pytorch", "2.9.1", "")),
        ("- pytorch =2.9.1", ("pytorch", "2.9.1", "")),
        ("    - torch==2.14.0+cu126", ("torch", "2.14.0+cu126", "")),
        ("    - tensorflow[and-cuda]==2.21.0       # sm_80", ("tensorflow", "2.21.0", "")),
        ("  - pytorch>=2.9", None),
        ("  - cudnn>=9.10.2.21,<10", None),
        ("  - --extra-index-url https://download.pytorch.org/whl/cu126", None),
        ("  - torch @ https://download.pytorch.org/whl/cu100/torch-1.1.0-cp37-cp37m-linux_x86_64.whl", None),
        ("# - pytorch=2.9.1", None),
        ("  pytorch=2.9.1", None),
    ],
)
def test_an_entry_that_pins_one_version_is_held(line: str, pin: tuple[str, str, str] | None, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(f"dependencies:\n{line}\n", encoding="utf-8")
    assert read_held(path).packages == (() if pin is None else (pin,))
