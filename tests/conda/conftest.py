"""The loopback channels, used by rattler in place of conda.anaconda.org."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conda.server import ChannelServer

_STEERING = ("RATTLER_HOME", "ENVSOLVE_HOME", "RATTLER_AUTH_FILE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")

Mirror = Callable[[ChannelServer], Path]


@pytest.fixture(scope="session")
def channel_server() -> Iterator[ChannelServer]:
    """The recorded channels, shared: nothing may be added to this server, and no fault."""
    with ChannelServer() as server:
        yield server


@pytest.fixture
def own_channel_server() -> Iterator[ChannelServer]:
    """The recorded channels on the test's own server, for additional channels and faults."""
    with ChannelServer() as server:
        yield server


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """Send rattler to a server in place of conda.anaconda.org, and return the directory of its configuration.

    It and all else that rattler reads and keeps is below a directory of the test, the cache in RATTLER_CACHE_DIR. Only
    /etc/rattler/config.toml and /etc/envsolve/config.toml would be read beside it.
    """

    def send(server: ChannelServer) -> Path:
        path = tmp_path / "config" / "rattler" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = (f"{json.dumps(url)} = {json.dumps(mirrors)}\n" for url, mirrors in server.mirrors.items())
        path.write_text(f"[mirrors]\n{''.join(rows)}", "utf-8")
        return path

    for name in _STEERING:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "rattler-cache"))
    return send


@pytest.fixture
def mirrored(mirror: Mirror, channel_server: ChannelServer) -> Path:
    """Point rattler to the recorded channels in place of conda.anaconda.org; the path of its configuration."""
    return mirror(channel_server)
