"""An answer for this machine stands as long as its driver answers the same, where nothing cheaper tells."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from envsolve.app.unchanged import Answer, Grounds, recalled, remember
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, Host, Platform
from envsolve.model.versions import DriverVersion


def host(driver: str, capability: ComputeCapability) -> Host:
    return Host(Platform.LINUX_64, driver=DriverVersion.parse(driver), gpus=(Gpu("a GPU", capability),))


def test_where_a_driver_is_installed_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = host("535.183.01", ComputeCapability(8, 6))
    monkeypatch.setattr("envsolve.app.unchanged.fingerprint", lambda: None)
    monkeypatch.setattr("envsolve.host.detection.detect", lambda **_: here)
    words = ["lock", "--cache-dir", str(tmp_path / "cache")]
    answer = Answer("", None, ("nothing to change",))
    remember(words, answer, Grounds((), time.time(), float("inf"), detected=True))
    assert recalled(words) == answer
    here = host("580.65.06", ComputeCapability(8, 6))
    assert recalled(words) is None
    here = host("535.183.01", ComputeCapability(8, 9))
    assert recalled(words) is None
    here = host("535.183.01", ComputeCapability(8, 6))
    assert recalled(words) == answer
