"""Messages of JAX about libraries that are too old: every library that it checks, and the ways it is pasted."""

from __future__ import annotations

import pytest

from tests.diagnose.facts.library_cases import causes_of, words_of

OUTDATED = """{margin}Outdated {part} installation found.
{margin}Version JAX was built against: {built}
{margin}Minimum supported: {least}
{margin}Installed version: {found}
{margin}The local installation version must be no lower than {least}."""


def outdated(part: str, built: int, least: int, found: int, margin: str = "") -> str:
    return OUTDATED.format(part=part, built=built, least=least, found=found, margin=margin)


@pytest.mark.thorough
@pytest.mark.parametrize("margin", ["", "E   ", "E       "])
@pytest.mark.parametrize(
    ("part", "numbers", "versions"),
    [
        ("CUDA", (12080, 12010, 12000), ("12.8", "12.1", "12.0")),
        ("cuBLAS", (120804, 120100, 120002), ("12.8.4", "12.1.0", "12.0.2")),
        ("cuFFT", (11303, 11300, 11002), ("11.3.3", "11.3.0", "11.0.2")),
        ("cuSOLVER", (11703, 11400, 11306), ("11.7.3", "11.4.0", "11.3.6")),
        ("cuSPARSE", (12200, 12100, 12002), ("12.2.0", "12.1.0", "12.0.2")),
        ("cuPTI", (26, 18, 17), ("26", "18", "17")),
    ],
)
def test_every_library_that_jax_checks(
    part: str, numbers: tuple[int, int, int], versions: tuple[str, str, str], margin: str
) -> None:
    text = outdated(part, *numbers, margin=margin)
    assert causes_of(text) == ["cuda-library-too-old"]
    built, least, found = versions
    answer = words_of(text)
    assert f"built against {part} {built} and finds {found}:" in answer
    assert f"oldest version that JAX accepts is {least}." in answer


def test_a_line_without_its_numbers_is_understood() -> None:
    text = "Jax plugin configuration error: jax_plugins.xla_cuda13\nRuntimeError: Outdated cuBLAS installation found."
    assert "jax[cuda13]" in words_of(text)


@pytest.mark.parametrize("margin", ["", "E   "])
def test_cudnn_is_named_as_such(margin: str) -> None:
    text = outdated("cuDNN", 90800, 9800, 90501, margin)
    assert causes_of(text) == ["cudnn-too-old"]
    assert words_of(text).startswith("cuDNN 9.5.1 is loaded, and the build needs 9.8 or newer")
