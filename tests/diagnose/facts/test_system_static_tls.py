"""Rules on processors of ARM: libraries that are loaded too late for static TLS."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Sighting
from tests.diagnose.facts.driver_cases import Known, cause_ids, seen, words

NOTHING = Known()
SITE = "/opt/venv/lib/python3.8/site-packages"
SYSTEM = "/lib/aarch64-linux-gnu/libGLdispatch.so.0"


def late(file: str) -> Sighting:
    return seen("static-tls", file, library=file)


@pytest.mark.parametrize(
    ("file", "path", "module"),
    [
        (
            f"{SITE}/sklearn/utils/../../scikit_learn.libs/libgomp-1.so.1",
            f"{SITE}/scikit_learn.libs/libgomp-1.so.1",
            "sklearn",
        ),
        (f"{SITE}/torch/lib/libgomp-1.so.1", f"{SITE}/torch/lib/libgomp-1.so.1", "torch"),
        (f"{SITE}/torch/lib/../../torch.libs/libgomp-6.so.1", f"{SITE}/torch.libs/libgomp-6.so.1", "torch"),
        (f"{SITE}/opencv_python.libs/libgomp-2.so.1", f"{SITE}/opencv_python.libs/libgomp-2.so.1", "cv2"),
        (SYSTEM, SYSTEM, None),
        ("libc10.so", None, None),
    ],
)
def test_the_library_itself_is_to_be_preloaded(file: str, path: str | None, module: str | None) -> None:
    answer = words(NOTHING, late(file))
    assert (f"export LD_PRELOAD={path}" in answer) is (path is not None)
    assert f"import {module or 'the package that contains it'} first" in answer


def test_each_library_is_reported_once() -> None:
    again = [late(SYSTEM), late("libc10.so"), late(SYSTEM)]
    assert cause_ids(NOTHING, *again) == ["static-tls", "static-tls"]


def test_an_old_c_library_counts_libraries_and_names_none() -> None:
    sighting = seen("static-tls", slots="cannot load any more object with static TLS")
    assert cause_ids(NOTHING, sighting) == ["static-tls-slots"]


@pytest.mark.parametrize(
    ("known", "file", "arm"),
    [
        (Known(clues={"jetson": "jetson nano"}), "libc10.so", True),
        (Known(), SYSTEM, True),
        (Known(), "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", False),
    ],
)
def test_the_processor_is_mentioned_if_known(known: Known, file: str, arm: bool) -> None:
    assert ("On this processor, ARM (aarch64)" in words(known, late(file))) == arm
