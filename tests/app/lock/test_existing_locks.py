"""The versions in an existing answer or lock, and the preference for them."""

from __future__ import annotations

import json
from pathlib import Path, PurePath

import pytest

from envsolve.app.lock.existing_locks import versions_in
from envsolve.lockfile.reading import lock_at, lock_in
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from envsolve.model.request import LockedVersions
from tests.conftest import Envsolve
from tests.lockfile.locks import rtx_3090

NEWER = ("-f", "pytorch", "-f", "tensorflow", "--gpu", "8.6", "--driver", "580.95.05")
OLDER = ("-f", "pytorch==2.9.*", "-f", "tensorflow", "--gpu", "8.6", "--driver", "580.65.06")


def versions_at(path: Path, platform: Platform = Platform.LINUX_64) -> LockedVersions:
    """The versions in the file at ``path``."""
    return versions_in(lock_at(path, platform))


def picks(text: str) -> list[str]:
    """The lines of an environment file below its header, without their comments."""
    return [line.partition("#")[0].rstrip() for line in text.splitlines() if not line.startswith("#")]


def test_a_written_answer_is_read_back(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    assert envsolve(*OLDER, "-o", str(path)).code == 0
    found = versions_at(path)
    assert {name: version for name, version, _ in found.packages}["pytorch"] == "2.9.1"
    assert ("pytorch", "2.9.1", "cuda129*") in found.packages
    assert (found.python, found.cuda) == ("3.12", "12.9")


def test_wheels_are_also_read_back(envsolve: Envsolve, tmp_path: Path) -> None:
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
    packages = {name: version for name, version, _ in versions_at(path).packages}
    assert packages["torch"] == "2.14.1+cu126"
    assert packages["tensorflow"] == "2.21.0"


@pytest.mark.thorough
def test_json_is_also_read_back(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    assert envsolve(*OLDER, "-o", str(path)).code == 0
    found = versions_at(path)
    assert {name for name, _, _ in found.packages} == {"pytorch", "tensorflow"}
    assert found.python is not None


@pytest.mark.thorough
def test_an_upgrade_changes_what_locked_keeps_and_nothing_else(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    assert envsolve(*OLDER, "-o", str(path)).code == 0
    of_stack = "note: -P pytorch has no effect: there is no existing lock whose versions are kept\n"
    assert of_stack in envsolve(*OLDER, "-P", "pytorch").err
    done = envsolve(*NEWER, "-P", "pytorch", "--prefer", "locked", "-o", str(path))
    assert (done.code, of_stack in done.err) == (0, False)
    versions = {name: version for name, version, _ in versions_at(path).packages}
    assert versions["pytorch"] != "2.9.1"


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["environment.yml", "answer.json"])
def test_locked_keeps_everything_that_still_fits(name: str, envsolve: Envsolve, tmp_path: Path) -> None:
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


@pytest.mark.thorough
def test_locked_changes_only_what_no_longer_fits(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    assert envsolve(*OLDER, "-o", str(path)).code == 0
    assert envsolve("-f", "pytorch>=2.10", *NEWER[2:], "--prefer", "locked", "-o", str(path)).code == 0
    packages = {name: version for name, version, _ in versions_at(path).packages}
    assert packages["tensorflow"] == "2.19.1"
    assert packages["pytorch"] != "2.9.1"


@pytest.mark.thorough
def test_without_an_earlier_answer_locked_takes_the_newest(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    assert envsolve(*NEWER, "--prefer", "locked", "-o", str(path)).code == 0
    assert picks(path.read_text(encoding="utf-8")) == picks(envsolve(*NEWER).out)


def test_lines_without_a_pin_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(
        "name: x\ndependencies:\n  - python=3.12\n  - numpy\n  - pytorch>=2\n  - strange one two three\n",
        encoding="utf-8",
    )
    assert versions_at(path) == LockedVersions(python="3.12")


@pytest.mark.parametrize(
    "stack",
    [
        {"frameworks": [{"package": 5, "version": 7, "build": None}], "python": 3.11, "cuda": "abc"},
        {"frameworks": 3, "python": "3.12", "cuda": None},
    ],
)
def test_json_of_another_shape_is_no_answer_and_is_not_overwritten(
    stack: dict[str, object], envsolve: Envsolve, tmp_path: Path
) -> None:
    path = tmp_path / "answer.json"
    document = {"envsolve_version": "1.0", **stack}
    path.write_text(json.dumps(document), encoding="utf-8")
    result = envsolve("-f", "pytorch", "--gpu", "8.6", "--prefer", "locked", "-o", str(path))
    assert result.code == 2
    assert result.err.startswith(f"error: held-unreadable\n  cannot read {path}: it is JSON, but not from envsolve\n")
    assert json.loads(path.read_text(encoding="utf-8")) == document


@pytest.mark.thorough
def test_each_platform_keeps_what_its_own_file_holds(envsolve: Envsolve, tmp_path: Path) -> None:
    both = ("--gpu", "8.6", "--platform", "linux-64", "--platform", "win-64", "-o", str(tmp_path / "p.{platform}.yml"))
    assert envsolve("-f", "pytorch<2.10", *both).code == 0
    before = {path.name: picks(path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()}
    assert envsolve("-f", "pytorch", "--prefer", "locked", *both).code == 0
    assert {path.name: picks(path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()} == before


@pytest.mark.thorough
def test_each_platform_reads_its_own_part_of_a_shared_answer(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    both = ("--gpu", "8.6", "--platform", "linux-64", "--platform", "win-64", "-o", str(path))
    assert envsolve("-f", "pytorch<2.10", *both).code == 0
    before = json.loads(path.read_text(encoding="utf-8"))["platforms"]
    builds = [(part["frameworks"][0]["package"], part["frameworks"][0]["build"]) for part in before]
    assert [versions_at(path, Platform(name)).packages[0][::2] for name in ("linux-64", "win-64")] == [
        (package, f"{build}*") for package, build in builds
    ]
    assert versions_at(path, Platform.OSX_64) == LockedVersions()
    assert envsolve("-f", "pytorch", "--prefer", "locked", *both).code == 0
    after = json.loads(path.read_text(encoding="utf-8"))["platforms"]
    assert [part["frameworks"] for part in after] == [part["frameworks"] for part in before]


def test_a_conda_build_in_a_json_answer_is_locked_by_its_build_string(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    older = ("-f", "pytorch==2.10.0", "--gpu", "8.6", "--source", "conda-forge", "--cuda", "12", "-o", str(path))
    assert envsolve(*older).code == 0
    build = json.loads(path.read_text(encoding="utf-8"))["frameworks"][0]["build"]
    again = ("-f", "pytorch", "--gpu", "8.6", "--source", "conda-forge", "--prefer", "locked", "-o", str(path))
    assert envsolve(*again).code == 0
    locked = json.loads(path.read_text(encoding="utf-8"))["frameworks"][0]
    assert (locked["version"], locked["build"]) == ("2.10.0", build)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("line", "pin"),
    [
        ("  - pytorch=2.9.1=cuda129*   # sm_86 runs on 8.6", ("pytorch", "2.9.1", "cuda129*")),
        ('  - "pytorch=2.9.1=cuda129*"', ("pytorch", "2.9.1", "cuda129*")),
        ("  - 'pytorch=2.9.1'  # mine", ("pytorch", "2.9.1", "")),
        ("- pytorch =2.9.1", ("pytorch", "2.9.1", "")),
        ("- pip:\n    - torch==2.14.0+cu126", ("torch", "2.14.0+cu126", "")),
        ("- pip:\n    - tensorflow[and-cuda]==2.21.0       # sm_80", ("tensorflow", "2.21.0", "")),
        ("- pip: ['torch @ https://example.org/torch-1.1.0-cp37-cp37m-linux_x86_64.whl']", ("torch", "1.1.0", "")),
        ("  - pytorch>=2.9", None),
        ("  - cudnn>=9.10.2.21,<10", None),
        ("- pip:\n    - --extra-index-url https://download.pytorch.org/whl/cu126", None),
        ("# - pytorch=2.9.1", None),
    ],
)
def test_an_entry_that_pins_one_version_is_locked(line: str, pin: tuple[str, str, str] | None, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(f"dependencies:\n{line}\n", encoding="utf-8")
    assert versions_at(path).packages == (() if pin is None else (pin,))


def test_an_upgrade_also_releases_the_python_and_the_cuda_of_its_stack() -> None:
    text = "dependencies: [python=3.12, pytorch=2.9.1=cuda129*, tensorflow=2.19.1, cuda-version=12.9, numpy=2.3]"
    lock = lock_in(PurePath("environment.yml"), text, Platform.LINUX_64)
    assert versions_in(lock, ["numpy"]).packages == versions_in(lock).packages[:1] + versions_in(lock).packages[2:]
    assert versions_in(lock, ["numpy"]).cuda == "12.9"
    assert versions_in(lock, ["PyTorch"]) == LockedVersions((("tensorflow", "2.19.1", ""),))


def test_a_wheel_is_locked_with_its_recorded_build(matrix: Matrix) -> None:
    assert ("torch", "2.14.1+cu130", "cu130*") in versions_in(rtx_3090(matrix)).packages
