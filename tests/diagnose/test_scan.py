"""Symptoms and clues in lines: which are compared, how often one counts, and what is left out of endless logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve.diagnose.reading.lines import Line
from envsolve.diagnose.scan import LAST_LINES, MOST_LINES, MOST_SIGHTINGS, scan
from envsolve.diagnose.tables import Tables

TABLES = """
[symptom.broken]
rank = 10
weak = true
explains = ["broken-cable", "broken-plug"]
[[symptom.broken.text]]
anchors = ["is broken"]
pattern = '''the (?P<part>\\w+) is broken'''
source = "https://example.org/1"
[[symptom.broken.text]]
anchors = ["does not"]
pattern = '''does not (?:work|start)'''
wraps = true
source = "https://example.org/2"

[clue.part]
[[clue.part.text]]
anchors = ["part"]
pattern = '''part (?P<value>\\d+)'''
source = "https://example.org/3"
[clue.package]
[[clue.package.text]]
anchors = ["=="]
pattern = '''(?P<package>\\w+)==(?P<version>\\d+)?'''
source = "https://example.org/4"
"""


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    (tmp_path / "some.toml").write_text(TABLES)
    return Tables(tmp_path)


def lines(*texts: str) -> Iterator[Line]:
    for number, text in enumerate(texts, 1):
        yield Line(number, text, tuple(texts[number : number + 2]))


def test_a_symptom_is_seen_with_its_fields_and_its_line(tables: Tables) -> None:
    (seen,) = scan(lines("all is well", "The CABLE is broken."), tables).sightings
    assert (seen.symptom, seen.get("part"), seen.line, seen.number) == ("broken", "CABLE", "The CABLE is broken.", 2)


def test_two_wordings_of_one_symptom_in_a_line_are_one_sighting(tables: Tables) -> None:
    assert len(scan(lines("the plug is broken and does not work"), tables).sightings) == 1


def test_a_message_that_was_wrapped_is_found_once(tables: Tables) -> None:
    found = scan(lines("it does not", "  start, as", "it seems"), tables).sightings
    assert [(it.number, it.line) for it in found] == [(1, "it does not start, as it seems")]


def test_a_wording_that_does_not_wrap_is_not_joined(tables: Tables) -> None:
    assert scan(lines("the plug is", "broken"), tables).sightings == ()


def test_clues_are_told_as_often_as_they_stand_there(tables: Tables) -> None:
    clues = scan(lines("part 1 and part 2", "torch== numpy==1"), tables).clues
    assert [clue.value for clue in clues["part"]] == ["1", "2"]
    assert [clue.value for clue in clues["package"]] == ["torch==", "numpy==1"]


def test_what_is_said_again_and_again_is_compared_a_few_times_only(tables: Tables) -> None:
    found = scan(lines(*["the plug is broken"] * 1000), tables).sightings
    assert len(found) == MOST_SIGHTINGS


def test_of_a_log_without_an_end_the_beginning_and_the_end_count(tables: Tables) -> None:
    middle = ["nothing is part of it"] * (MOST_LINES + LAST_LINES + 500)
    middle[MOST_LINES + 100] = "the needle is broken"
    found = scan(lines("the first is broken", *middle, "the last is broken"), tables)
    assert [it.get("part") for it in found.sightings] == ["first", "last"]
    assert found.left_out == 502


def test_of_a_log_that_ends_in_time_nothing_is_left_out(tables: Tables) -> None:
    middle = ["nothing is part of it"] * (MOST_LINES + LAST_LINES - 2)
    found = scan(lines("the first is broken", *middle, "the last is broken"), tables)
    assert found.left_out == 0
    assert len(found.sightings) == 2


def test_a_symptom_without_a_rule_names_its_causes(tables: Tables) -> None:
    symptom = tables.symptoms["broken"]
    assert (symptom.rank, symptom.weak, symptom.explains) == (10, True, ("broken-cable", "broken-plug"))
