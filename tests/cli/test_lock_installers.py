"""A lock alone is enough for pip and uv: they install every file it names from the indexes it names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest
import tomli
from packaging.pylock import Pylock
from packaging.utils import canonicalize_name
from packaging.version import Version
from uv import find_uv_bin

from tests.cli.locked import pins_in
from tests.conftest import Envsolve
from tests.index.server import IndexServer

pytestmark = pytest.mark.thorough  # installers judge the locks

TARGET = ("--python", "3.11.7", "--platform", "linux-64", "--no-cache")


class Case(NamedTuple):
    """A request for a GPU; ``several`` means that its packages are from several indexes."""

    arguments: tuple[str, ...]
    several: bool


CASES = {
    "one index": Case(("torch", "torchvision", "--gpu", "8.6"), several=False),
    "PyTorch's index too": Case(("torch", "torchvision", "--gpu", "6.1", "--driver", "580.65.06"), several=True),
    "PyTorch's CPU index": Case(("torch", "numpy", "--gpu", "none"), several=True),
}


@pytest.fixture(params=list(CASES.values()), ids=list(CASES))
def locks(
    request: pytest.FixtureRequest, envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> tuple[Path, Path, Case]:
    """The same lock as ``requirements.txt`` and as ``pylock.toml``."""
    case: Case = request.param
    where = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")
    paths = tmp_path / "requirements.txt", tmp_path / "pylock.toml"
    for path in paths:
        result = envsolve(*case.arguments, *TARGET, *where, "-o", str(path))
        assert result.code == 0, result.err
    return *paths, case


def pip(path: Path, *options: str) -> dict[str, str]:
    """What pip would install from a lock, without settings of this machine."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-cache-dir", *options]
    target = [f"--target={path.parent / 'target'}", "--platform=manylinux_2_28_x86_64", "--only-binary=:all:"]
    target += ["--implementation=cp", "--python-version=3.11"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environ |= {"PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [*command, *target, "-r", str(path)], env=environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("Would install ")]
    return {canonicalize_name(name): pinned for name, _, pinned in (it.rpartition("-") for it in line.split()[2:])}


def uv(path: Path, *command: str) -> dict[str, str]:
    """What uv would install from a lock, by version or address, without settings of this machine."""
    target = ["--target", str(path.parent / "target"), "--python", sys.executable, "--python-version", "3.11"]
    target += ["--python-platform", "x86_64-manylinux_2_28", "--no-config", "--no-cache", "--dry-run"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    done = subprocess.run(
        [find_uv_bin(), "pip", *command, str(path), *target],
        env={**environ, "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r"(?m)^ \+ (\S+?)(?:==| @ )(\S+?)(?: \(.*)?$", done.stderr))


def test_pip_and_uv_take_the_whole_lock_and_nothing_else(locks: tuple[Path, Path, Case]) -> None:
    requirements, pylock, case = locks
    pins = pins_in(requirements.read_text(encoding="utf-8"))
    strategy = ["--index-strategy", "unsafe-best-match"] if case.several else []
    assert pip(requirements, "--require-hashes") == pins
    assert uv(requirements, "sync", *strategy, "--require-hashes") == pins
    assert uv(requirements, "install", *strategy, "--require-hashes", "-r") == pins
    assert uv(pylock, "sync") == pins
    assert uv(pylock, "install", "-r") == pins


def test_a_lock_has_the_options_that_uv_needs(locks: tuple[Path, Path, Case]) -> None:
    requirements, _, case = locks
    assert ("--index-strategy unsafe-best-match" in requirements.read_text(encoding="utf-8")) is case.several


def test_a_pylock_is_as_the_standard_has_it(locks: tuple[Path, Path, Case]) -> None:
    requirements, path, _ = locks
    pylock = Pylock.from_dict(tomli.loads(path.read_text(encoding="utf-8")))
    pylock.validate()
    pins = pins_in(requirements.read_text(encoding="utf-8"))
    assert {it.name: str(it.version) for it in pylock.packages} == pins
    hashes = {it.hashes["sha256"] for package in pylock.packages for it in package.wheels or ()}
    assert hashes == set(re.findall(r"--hash=sha256:(\w+)", requirements.read_text(encoding="utf-8")))


@pytest.mark.skipif(Version(version("pip")) < Version("26.3"), reason="an older pip may not know pylock.toml")
@pytest.mark.skipif(sys.version_info[:2] != (3, 11) or sys.platform != "linux", reason="pip takes a pylock for itself")
def test_pip_takes_a_pylock(locks: tuple[Path, Path, Case]) -> None:
    requirements, pylock, _ = locks
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-cache-dir"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environ |= {"PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [*command, "-r", str(pylock)], env=environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    for name, pinned in pins_in(requirements.read_text(encoding="utf-8")).items():
        assert f"{name}-{pinned}" in done.stdout
