"""Concurrent frameworks: as many as processors, and as both memories allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.validation.concurrency import GPU_MEMORY, HOST_MEMORY, at_once


@pytest.fixture
def meminfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of eight processors with room for four frameworks."""
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    file = tmp_path / "meminfo"
    file.write_text(f"MemTotal: 1 kB\nMemFree: 2 kB\nMemAvailable: {4 * HOST_MEMORY // 1024} kB\n")
    return file


def test_main_memory_limits(meminfo: Path) -> None:
    assert at_once(6, None, meminfo=meminfo) == 4


def test_the_memory_of_a_container_limits(meminfo: Path, tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(f"{3 * HOST_MEMORY}\n")
    (tmp_path / "memory.current").write_text(f"{HOST_MEMORY}\n")
    assert at_once(6, None, meminfo=meminfo, cgroup=tmp_path) == 2
    (tmp_path / "memory.max").write_text("max\n")
    assert at_once(6, None, meminfo=meminfo, cgroup=tmp_path) == 4


def test_gpu_memory_limits(meminfo: Path) -> None:
    assert at_once(6, 2 * GPU_MEMORY + 1, meminfo=meminfo) == 2
    assert at_once(6, 1, meminfo=meminfo) == 1


def test_processors_limit(meminfo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert at_once(6, None, meminfo=meminfo) == 2


def test_no_more_run_than_there_are(meminfo: Path) -> None:
    assert at_once(1, None, meminfo=meminfo) == 1


@pytest.mark.parametrize("text", [None, "", "MemAvailable:", "MemAvailable: much kB"])
def test_without_known_limits_they_run_one_after_the_other(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "meminfo"
    if text is not None:
        file.write_text(text)
    assert at_once(6, None, meminfo=file) == 1
