"""Wheels come from the lock alone, whatever else lies about on the machine."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve.create.plan import WheelFile
from envsolve.create.tools import Network
from envsolve.create.wheels import Wheels, install_wheels
from envsolve.errors import OutsideError
from envsolve.index.settings import IndexSettings
from tests.cli.creating import tree
from tests.index.packages import wheel
from tests.index.server import IndexServer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="an interpreter is put together in another way there")
MINOR = ".".join(map(str, sys.version_info[:2]))


@pytest.fixture
def index() -> Iterator[IndexServer]:
    with IndexServer(recorded=False) as server:
        yield server


def interpreter_at(prefix: Path) -> Path:
    """A Python with a library of its own and no pyvenv.cfg, as conda has them: its user site is enabled."""
    base, library = Path(sys.base_prefix), prefix / "lib" / f"python{MINOR}"
    (library / "site-packages").mkdir(parents=True)
    for path in Path(sysconfig.get_path("stdlib")).iterdir():
        if path.name not in ("site-packages", "dist-packages", "__pycache__"):
            (library / path.name).symlink_to(path)
    for path in (base / "lib").glob("libpython*"):
        (prefix / "lib" / path.name).symlink_to(path)
    (prefix / "bin").mkdir()
    return Path(shutil.copy(Path(sys.executable).resolve(), prefix / "bin" / "python"))


@pytest.mark.thorough
def test_pip_neither_counts_nor_changes_what_lies_in_the_home_directory(index: IndexServer, tmp_path: Path) -> None:
    found = wheel("alpha", "1.0")
    index.add("alpha", [found])
    python, home = interpreter_at(tmp_path / "env"), tmp_path / "home"
    planted = home / ".local" / "lib" / f"python{MINOR}" / "site-packages" / "alpha-1.0.dist-info"
    planted.mkdir(parents=True)
    (planted / "METADATA").write_text("Metadata-Version: 2.1\nName: alpha\nVersion: 1.0\n")
    (planted / "RECORD").write_text("alpha-1.0.dist-info/METADATA,,\nalpha-1.0.dist-info/RECORD,,\n")
    before = tree(home / ".local")
    lock = f"--index-url {index.index_url}\nalpha==1.0 --hash=sha256:{found.sha256}\n"
    environ = {**os.environ, "HOME": str(home), "PYTHONUSERBASE": str(home / ".local")}
    environ = {name: value for name, value in environ.items() if name != "PYTHONNOUSERSITE"}
    wheels = Wheels(WheelFile("requirements.txt", lock), None, alone=False)
    install_wheels(python, wheels, Network(IndexSettings(), no_cache=True), environ, tmp_path, lambda _: None)
    assert tree(home / ".local") == before
    assert list((tmp_path / "env").rglob("alpha-1.0.dist-info"))


def test_a_pip_that_does_not_answer_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsolve.create.wheels.PATIENCE", 1.0)
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexec sleep 600\n")
    python.chmod(0o755)
    wheels = Wheels(WheelFile("requirements.txt", ""), None, alone=False)
    started = time.monotonic()
    with pytest.raises(OutsideError):
        install_wheels(python, wheels, Network(IndexSettings()), os.environ, tmp_path, lambda _: None)
    assert time.monotonic() - started < 20
