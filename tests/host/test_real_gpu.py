"""Detection on a machine with a real NVIDIA GPU: ``pytest -m gpu tests/host/test_real_gpu.py``."""

from __future__ import annotations

import os

import pytest

from envsolve.host.detection import detect
from envsolve.host.evidence import LIVE_SOURCES
from envsolve.model.host import GpuStatus

pytestmark = pytest.mark.gpu


def test_every_live_source_answers_and_they_agree() -> None:
    host = detect(environ=os.environ)
    assert host.status == GpuStatus.READY, host.notes
    readings = {reading.source: reading for reading in host.readings}
    assert set(LIVE_SOURCES) <= set(readings)
    assert all(readings[source].problem is None for source in LIVE_SOURCES), host.notes
    assert {readings[source].driver_cuda for source in LIVE_SOURCES} == {host.driver_cuda}
    assert not [note for note in host.notes if "disagree" in note]


def test_a_quick_look_finds_the_same_facts() -> None:
    quick, thorough = detect(environ=os.environ, thorough=False), detect(environ=os.environ)
    assert (quick.driver, quick.driver_cuda, quick.gpus) == (thorough.driver, thorough.driver_cuda, thorough.gpus)
