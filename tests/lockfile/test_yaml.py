"""Texts as YAML: they stay on their line, and are read back as the same texts."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from envsolve.lockfile.yaml import scalar
from tests.lockfile.locks import TEXTS

NUMBERS = [
    "3.10",
    "1",
    "0",
    "1e3",
    "0x1F",
    "0b11",
    "0o17",
    "017",
    "1_000",
    "12:30:45",
    "1.",
    ".5",
    "+1",
    "-1",
    "685.230_15e+03",
]
WORDS = [
    "y",
    "N",
    "Yes",
    "no",
    "ON",
    "off",
    "true",
    "False",
    "null",
    "NULL",
    "~",
    "",
    " ",
    ".inf",
    "-.INF",
    ".nan",
    "=",
    "<<",
]
DATES = ["2026-11-20", "2001-12-14t21:59:43.10-05:00", "2026-11-20 10:00:00"]
SIGNS = [
    "a: b",
    "a #b",
    "#a",
    "- a",
    "-",
    "a:",
    "?",
    "[a]",
    "{a}",
    "*a",
    "&a",
    "!a",
    "|",
    ">",
    "'a'",
    '"a"',
    "%a",
    "@a",
    "`a`",
    ",",
]
CHECKSUMS = ["1" * 32, "0" * 31 + "e", "0b" + "1" * 30, "1e" + "1" * 30, "0a" + "1" * 30, "e" * 32]


@pytest.mark.thorough
@pytest.mark.parametrize("text", [*NUMBERS, *WORDS, *DATES, *SIGNS, *CHECKSUMS])
def test_ambiguous_text_is_quoted(text: str) -> None:
    assert yaml.safe_load(f"{scalar(text)}: {scalar(text)}") == {text: text}
    assert yaml.safe_load(f"- {scalar(text)}  # why") == [text]


@pytest.mark.parametrize(
    "text",
    [
        *("1.0.8", "2025.8.3", "9.13.1.26", "conda-forge", "_openmp_mutex", "hda65f42_8", "cxx17_hba17884_0"),
        *("https://conda.anaconda.org/conda-forge/noarch/tzdata-2025b-h78e105d_0.conda", "python=3.12.11=h9e4cc4f_0"),
        "51a19bba1b8ebfb60df25cde030b7ebc",
    ],
)
def test_unambiguous_text_is_plain(text: str) -> None:
    assert scalar(text) == text
    assert yaml.safe_load(scalar(text)) == text


@given(st.text() | TEXTS)
def test_any_text_stays_on_its_line_and_is_read_back(text: str) -> None:
    written = scalar(text)
    assert len(f"a{written}b".splitlines()) == 1
    expected = "".join("\ufffd" if 0xD800 <= ord(character) < 0xE000 else character for character in text)
    assert yaml.safe_load(f"{written}: {written}") == {expected: expected}
