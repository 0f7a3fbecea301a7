"""A Jetson's CUDA is that of its JetPack: which one is there, and for which one a library was built."""

from __future__ import annotations

import pytest

from envsolve.diagnose.facts.library_names import span_of
from envsolve.diagnose.rules.jetpack import jetpack_fields
from tests.diagnose.rules.driver_cases import KNOWLEDGE, Known, case_of

OLD, NEW = "JetPack 4.2 and 4.3", "JetPack 4.4 to 4.6"


@pytest.mark.parametrize(
    ("told", "library", "there", "wanted"),
    [
        ("JetPack 4.4", "libcublas.so.10.0", NEW, OLD),
        ("L4T R32.7.1", "libcublas.so.10.0", NEW, OLD),
        ("L4T 36.4", "libcudart.so.12", "JetPack 6.1 and 6.2", None),
        ("JetPack 6.2", "libcudart.so.11.0", "JetPack 6.1 and 6.2", "JetPack 5"),
        ("jetson nano", "libcudart.so.10.2", None, NEW),
        ("JetPack 9.9", "libcudart.so.9.0", None, None),
        ("JetPack 5.1", "libcudnn.so.8", "JetPack 5", None),
    ],
)
def test_the_jetpack_that_is_there_and_the_one_that_is_wanted(
    told: str, library: str, there: str | None, wanted: str | None
) -> None:
    fields = jetpack_fields(case_of(Known(clues={"jetson": told})), span_of(KNOWLEDGE, library))
    assert (fields.get("jetpack"), fields.get("jetpack_wanted")) == (there, wanted)


def test_a_jetpack_that_has_the_library_is_said_to_have_it() -> None:
    case = case_of(Known(clues={"jetson": "L4T 36.4"}))
    assert jetpack_fields(case, span_of(KNOWLEDGE, "libcudart.so.12"))["jetpack_fits"] == "JetPack 6.1 and 6.2"
