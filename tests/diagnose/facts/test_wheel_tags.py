"""Decisions of the rules from the tags in the name of a wheel that an installer refuses."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Given
from tests.diagnose.facts.package_cases import causes_of, words_of

UNSUPPORTED = "ERROR: {} is not a supported wheel on this platform."


@pytest.mark.parametrize(
    ("file", "python", "causes"),
    [
        ("torch-0.2.0-cp27-cp27m-manylinux1_x86_64.whl", "2.7", ["wheel-of-other-unicode", "wheel-tags-differ"]),
        ("torch-0.2.0-cp27-cp27mu-linux_x86_64.whl", None, ["wheel-tags-differ", "wheel-of-other-unicode"]),
        ("tensorflow_gpu-1.13.1-cp35-cp35m-win_amd64.whl", "3.5.1", ["wheel-for-64-bit", "wheel-tags-differ"]),
        ("torch-2.1.0-cp38-cp38-win_amd64.whl", None, ["wheel-tags-differ", "wheel-for-64-bit"]),
        ("torch-2.1.0-cp38-cp38-manylinux2014_aarch64.whl", "3.8", ["wheel-of-newer-pip", "wheel-tags-differ"]),
        ("torch-0.3.0-cp35-cp35m-macosx_10_6_x86_64.whl", "3.6", ["wheel-of-other-python"]),
    ],
)
def test_how_a_python_differs_from_that_of_a_wheel(file: str, python: str | None, causes: list[str]) -> None:
    assert causes_of(UNSUPPORTED.format(file), Given(python=python)) == causes


def test_a_wheel_of_the_other_unicode_is_named() -> None:
    text = UNSUPPORTED.format("torch-0.2.0-cp27-cp27m-manylinux1_x86_64.whl")
    assert "torch-0.2.0-cp27-cp27mu-manylinux1_x86_64.whl" in words_of(text, Given(python="2.7"))
