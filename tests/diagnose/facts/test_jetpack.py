"""A Jetson's CUDA is that of its JetPack: which one is installed, and for which one a library was built."""

from __future__ import annotations

import pytest

from tests.diagnose.facts.library_cases import causes_of, words_of

OLD, NEW = "JetPack 4.2 and 4.3", "JetPack 4.4 to 4.6"
MISSING = "ImportError: {}: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("jetpack", "library", "expected"),
    [
        ("JetPack 4.4", "libcublas.so.10.0", f"libcublas.so.10.0 is of {OLD}, and {NEW} is installed"),
        ("L4T R32.7.1", "libcublas.so.10.0", f"libcublas.so.10.0 is of {OLD}, and {NEW} is installed"),
        ("JetPack 6.2", "libcudart.so.11.0", "libcudart.so.11.0 is of JetPack 5, and JetPack 6.1 and 6.2 is installed"),
        ("L4T 36.4", "libcudart.so.12", "JetPack 6.1 and 6.2 has this library"),
        ("jetson nano", "libcudart.so.10.2", "is for another one"),
        ("JetPack 9.9", "libcudart.so.9.0", "is for another one"),
    ],
)
def test_the_jetpack_that_is_there_and_the_one_that_is_needed(jetpack: str, library: str, expected: str) -> None:
    assert expected in words_of(f"{jetpack}\n" + MISSING.format(library))


@pytest.mark.parametrize(
    ("library", "command"),
    [("libcudss.so.0", "sudo apt install cudss"), ("libcusparseLt.so.0", "sudo apt install cusparselt")],
)
def test_libraries_missing_from_jetpack_are_separate_packages(library: str, command: str) -> None:
    text = "Jetson Orin, JetPack 6.2\n" + MISSING.format(library)
    assert causes_of(text) == ["library-of-own-package"]
    assert command in words_of(text)
