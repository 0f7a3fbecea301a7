"""Installers get the settings of the machine, and none that would install something else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from envsolve.create.tools import InstallerNetwork, find_uv, tool_environ
from envsolve.index.settings import IndexSettings

MIRROR = "https://me:p%40ss@mirror.example/simple"


def test_supported_options_pass_and_others_do_not(tmp_path: Path) -> None:
    environ = {
        "UV_CACHE_DIR": "/c",
        "UV_INDEX": "x",
        "UV_CONSTRAINT": "x",
        "PIP_TARGET": "x",
        "VIRTUAL_ENV": "x",
        "A": "1",
    }
    with tool_environ(environ, InstallerNetwork(IndexSettings()), tmp_path) as found:
        assert {name for name in found if not name.startswith("PIP_")} == {
            *("UV_CACHE_DIR", "A", "PYTHONNOUSERSITE", "PATH")
        }
        assert found["PIP_CONFIG_FILE"] == os.devnull
        assert "PIP_TARGET" not in found


def test_configured_indexes_count_if_the_lock_names_none(tmp_path: Path) -> None:
    network = InstallerNetwork(IndexSettings(index_url=MIRROR, cert="/ca.pem", trusted_hosts=("old.example",)))
    with tool_environ({}, network, tmp_path) as found:
        assert "UV_DEFAULT_INDEX" not in found
        assert (found["SSL_CERT_FILE"], found["UV_INSECURE_HOST"]) == ("/ca.pem", "old.example")
    with tool_environ({}, network, tmp_path, names_index=False) as found:
        assert found["UV_DEFAULT_INDEX"] == found["PIP_INDEX_URL"] == "https://mirror.example/simple"


def test_logins_are_in_a_private_file_for_a_short_time(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("machine other.example login you password secret\n")
    with tool_environ({"NETRC": str(own)}, InstallerNetwork(IndexSettings(index_url=MIRROR)), tmp_path) as found:
        path = Path(found["NETRC"])
        assert path.read_text() == f"machine mirror.example login me password p@ss\n{own.read_text()}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not any("p@ss" in value or "p%40ss" in value for value in found.values())
    assert not path.exists()


def test_without_logins_the_netrc_of_the_user_applies(tmp_path: Path) -> None:
    with tool_environ({"NETRC": "/own"}, InstallerNetwork(IndexSettings()), tmp_path) as found:
        assert found["NETRC"] == "/own"


def test_a_uv_that_does_not_run_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "uv"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    monkeypatch.setattr("envsolve.create.tools._candidates", lambda: iter([str(broken), str(tmp_path / "none")]))
    assert find_uv() is None


def test_a_uv_that_cannot_read_a_pylock_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("0.4.30", "0.6.14", "0.6.15"):
        path = tmp_path / f"uv-{version}"
        path.write_text(f"#!/bin/sh\necho 'uv {version} (0123abc 2025-04-21)'\n")
        path.chmod(0o755)
    monkeypatch.setattr("envsolve.create.tools._candidates", lambda: map(str, sorted(tmp_path.iterdir())))
    assert find_uv() == str(tmp_path / "uv-0.6.15")


def test_an_installer_only_searches_absolute_directories(tmp_path: Path) -> None:
    given = {"PATH": os.pathsep.join(("", ".", "bin", "/usr/bin", "/bin"))}
    with tool_environ(given, InstallerNetwork(IndexSettings()), tmp_path) as found:
        assert found["PATH"] == os.pathsep.join(("/usr/bin", "/bin"))


@pytest.mark.parametrize("path", ["", ".", "bin:."])
def test_a_path_without_absolute_directories_does_not_mean_the_current_one(path: str, tmp_path: Path) -> None:
    with tool_environ({"PATH": path.replace(":", os.pathsep)}, InstallerNetwork(IndexSettings()), tmp_path) as found:
        assert found["PATH"]
        assert all(map(os.path.isabs, found["PATH"].split(os.pathsep)))
