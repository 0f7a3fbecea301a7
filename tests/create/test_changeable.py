"""Which environments ``envsolve add --prefix`` changes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from envsolve.create.changeable import require_changeable
from envsolve.errors import UsageError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the interpreter is a shell script")


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python managed by the system, on a machine that is not a container."""
    monkeypatch.setattr("envsolve.host.containers.CONTAINER_MARKS", (("docker", str(tmp_path / ".dockerenv")),))
    library = tmp_path / "lib"
    library.mkdir()
    (library / "EXTERNALLY-MANAGED").write_text("[externally-managed]\n")
    python = tmp_path / "python3"
    answer = json.dumps([str(library), str(library / "site-packages")])
    python.write_text(f"#!/bin/sh\nfor last; do :; done\necho '{answer}' > \"$last\"\n")
    python.chmod(0o755)
    return python


def test_a_python_managed_by_the_system_is_refused(system: Path) -> None:
    with pytest.raises(UsageError, match="externally-managed") as refused:
        require_changeable(system, {}, is_systems=True)
    assert refused.value.hints[0].command == "python3 -m venv --system-site-packages .venv"


@pytest.mark.parametrize("variable", ["PIP_BREAK_SYSTEM_PACKAGES", "UV_BREAK_SYSTEM_PACKAGES"])
def test_it_is_changed_if_pip_and_uv_would_change_it(system: Path, variable: str) -> None:
    require_changeable(system, {variable: "1"}, is_systems=True)
    with pytest.raises(UsageError):
        require_changeable(system, {variable: "0"}, is_systems=True)


def test_it_is_changed_in_a_container(system: Path, tmp_path: Path) -> None:
    (tmp_path / ".dockerenv").touch()
    require_changeable(system, {}, is_systems=True)


def test_a_venv_of_it_is_changed(system: Path) -> None:
    require_changeable(system, {}, is_systems=False)


def test_an_unwritable_environment_is_refused(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, _: path != system.parent / "lib")  # root may write everywhere
    with pytest.raises(UsageError, match="not-writable"):
        require_changeable(system, {}, is_systems=False)
