"""A project with conda files: a lock for conda-lock, one for conda itself, and the changes of a driver upgrade."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envsolve.lockfile.reading import lock_at
from envsolve.model.host import Platform
from tests.conda.conftest import channel_server, mirror, mirrored
from tests.conftest import Envsolve

pytestmark = pytest.mark.thorough

__all__ = ["channel_server", "mirror", "mirrored"]

PROJECT = """\
frameworks = ["tensorflow"]
gpus = ["8.6"]
driver = "520.61.05"
platforms = ["linux-64"]
outputs = ["conda-lock.yml", "conda-{platform}.lock", "environment.yml"]
"""


@pytest.fixture
def project(tmp_path: Path, mirrored: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "envsolve.toml"
    file.write_text(PROJECT, encoding="utf-8")
    return file


def tensorflow_in(name: str) -> str:
    found = lock_at(Path(name), Platform.LINUX_64)
    assert found is not None
    return next(f"{it.version} {it.build}" for it in found.conda if it.name == "tensorflow")


def test_conda_locks_stay_until_an_upgrade(project: Path, envsolve: Envsolve) -> None:
    def lock(*words: str) -> Any:
        done = envsolve("lock", "--cache-dir", "cache", "--json", *words)
        assert done.code == 0, done.err
        return json.loads(done.out)["files"]

    files = ("conda-lock.yml", "conda-linux-64.lock", "environment.yml")
    assert [(it["path"], it["status"]) for it in lock()] == [(name, "new") for name in files]
    assert [tensorflow_in(name).startswith("2.14.0 cuda118") for name in files] == [True, True, True]
    before = [Path(name).read_bytes() for name in files]
    project.write_text(project.read_text().replace("520.61.05", "580.65.06"))
    current = lock()
    assert {it["status"] for it in current} == {"current"}
    assert "tensorflow 2.19.1" in current[0]["possible"]["stack"]
    assert [Path(name).read_bytes() for name in files] == before
    upgraded = lock("-U")
    assert {it["status"] for it in upgraded} == {"stale"}
    assert [tensorflow_in(name).startswith("2.19.1 cuda128") for name in files] == [True, True, True]
    assert envsolve("lock", "--check", "--cache-dir", "cache").code == 0
    assert {it["status"] for it in json.loads(envsolve("status", "--json").out)["files"]} == {"fits"}


def test_the_project_is_recorded_as_the_requester(project: Path, envsolve: Envsolve) -> None:
    locks = PROJECT.replace(', "environment.yml"', "")
    project.write_text(f'requirements = ["numpy"]\n{locks}', encoding="utf-8")
    assert envsolve("lock", "--cache-dir", "cache").code == 0
    lock = Path("conda-lock.yml")
    assert "  sources:\n  - envsolve.toml\n" in lock.read_text()
    lock.write_text(lock.read_text().replace("  - envsolve.toml\n", "  - 'the command line'\n"))
    assert envsolve("lock", "--check", "--cache-dir", "cache").code == 0


LOCKS = PROJECT.replace('"environment.yml"', "")
OFF = ("--check", "--offline", "--no-cache")
"""Nothing is there to ask: what answers is the lock."""


@pytest.fixture
def locked(project: Path, envsolve: Envsolve) -> Path:
    """A project with only conda locks, whose requirements are in an environment.yml."""
    Path("more.yml").write_text("channels: [conda-forge]\ndependencies: [numpy]\n")
    project.write_text(f'requirement-files = ["more.yml"]\n{LOCKS}', encoding="utf-8")
    assert envsolve("lock", "--cache-dir", "cache").code == 0
    return project


def test_matching_conda_locks_query_no_channel(locked: Path, envsolve: Envsolve) -> None:
    done = envsolve("lock", *OFF)
    assert done.code == 0, done.err
    assert "conda-lock.yml, conda-linux-64.lock: up to date" in done.err
    locked.write_text(locked.read_text().replace("520.61.05", "580.65.06"))
    assert envsolve("lock", *OFF).code == 0


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("more.yml", "[numpy]", "[numpy, six]", "six is new"),
        ("more.yml", "[numpy]", "[numpy >=1]", "numpy >=1 instead of numpy"),
        (
            "more.yml",
            "[conda-forge]",
            "[conda-forge, nvidia]",
            "channels conda-forge nvidia instead of conda-forge",
        ),
        ("envsolve.toml", '"8.6"', '"8.9"', "compute capability 8.9 instead of 8.6"),
        (
            "envsolve.toml",
            '["tensorflow"]',
            '["tensorflow", "pytorch"]',
            "pytorch is new and not in the lock file",
        ),
        (
            "conda-lock.yml",
            "- name: numpy\n  version: ",
            "- name: numpy\n  version: 0",
            "packages or digests were changed",
        ),
        ("conda-linux-64.lock", "/linux-64/numpy-", "/linux-64/numpy-0", "packages or digests were changed"),
    ],
)
def test_changed_requirements_are_reported_without_the_channels(
    name: str, old: str, new: str, reason: str, locked: Path, envsolve: Envsolve
) -> None:
    text = Path(name).read_text()
    assert old in text
    Path(name).write_text(text.replace(old, new))
    done = envsolve("lock", *OFF)
    assert (done.code, reason in done.err) == (1, True), done.err
    assert reason in envsolve("status").out
    assert "up to date" not in done.err


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("more.yml", "[numpy]", "[numpy >=1]", "numpy >=1 instead of numpy"),
        ("more.yml", "[numpy]", "[numpy, zlib]", "zlib is new"),
        ("envsolve.toml", '["tensorflow"]', '["tensorflow>=2.10"]', "tensorflow>=2.10 instead of tensorflow"),
        ("envsolve.toml", "requirement-files", 'requirements = ["numpy<99"]\nrequirement-files', "numpy<99 is new"),
        ("envsolve.toml", '"8.6"', '"8.6", "8.9"', "compute capability 8.9 is new"),
    ],
)
def test_changes_that_conda_locks_satisfy_are_recorded_without_the_channels(
    name: str, old: str, new: str, reason: str, locked: Path, envsolve: Envsolve
) -> None:
    files = [Path("conda-lock.yml"), Path("conda-linux-64.lock")]
    packages = [lock_at(it, Platform.LINUX_64).packages_digest for it in files]  # type: ignore[union-attr]
    text = Path(name).read_text()
    assert old in text
    Path(name).write_text(text.replace(old, new))
    done = envsolve("lock", "--offline", "--no-cache")
    assert (done.code, reason in done.err, "written, same packages" in done.err) == (0, True, True), done.err
    assert [lock_at(it, Platform.LINUX_64).packages_digest for it in files] == packages  # type: ignore[union-attr]
    assert envsolve("lock", *OFF).code == 0
    assert envsolve("status").code == 0
    written = [it.read_text() for it in files]
    assert envsolve("lock", "--cache-dir", "cache", "-P", "nothing").code == 0
    assert [it.read_text() for it in files] == written, "with the network it is the same"


def test_the_channels_decide_about_a_driver_for_an_older_cuda(locked: Path, envsolve: Envsolve) -> None:
    """Any package may depend on the CUDA of the driver, which an explicit file does not state."""
    locked.write_text(locked.read_text().replace("520.61.05", "470.256.02"))
    assert envsolve("lock", *OFF).code == 3


def test_the_order_of_conda_requirements_does_not_matter(locked: Path, envsolve: Envsolve) -> None:
    Path("more.yml").write_text("channels: [conda-forge]\ndependencies: [python, numpy]\n")
    assert envsolve("lock", "--cache-dir", "cache").code == 0
    Path("more.yml").write_text("channels: [conda-forge]\ndependencies: [numpy, python]\n")
    assert envsolve("lock", *OFF).code == 0
    assert envsolve("status").code == 0
