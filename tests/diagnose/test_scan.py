"""Symptoms and clues in lines: which are compared, how often one counts, and what is left out of endless logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve.diagnose.reading.lines import Line
from envsolve.diagnose.scan import MOST_SIGHTINGS, scan
from envsolve.diagnose.tables import Tables
from envsolve.findings.catalogue import Catalogue

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
[[symptom.broken.text]]
anchors = ["plug", "smells"]
pattern = '''(?:the plug )?smells of (?P<smell>\\w+)'''
wraps = true
source = "https://example.org/5"

[finding.broken-cable]
[finding.broken-plug]

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
    return Tables(Catalogue(tmp_path))


def lines(*texts: str) -> Iterator[Line]:
    for number, text in enumerate(texts, 1):
        yield Line(number, text, tuple(texts[number : number + 2]))


def test_the_end_of_a_wording_that_ran_on_is_no_second_sighting(tables: Tables) -> None:
    seen = scan(lines("The plug", "smells of smoke", "it smells of tea"), tables).sightings
    assert [(it.get("smell"), it.number) for it in seen] == [("smoke", 1), ("tea", 3)]


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


def test_clues_are_reported_as_often_as_they_occur(tables: Tables) -> None:
    clues = scan(lines("part 1 and part 2", "torch== numpy==1"), tables).clues
    assert [clue.value for clue in clues["part"]] == ["1", "2"]
    assert [clue.value for clue in clues["package"]] == ["torch==", "numpy==1"]


def test_repeated_lines_are_only_compared_a_few_times(tables: Tables) -> None:
    found = scan(lines(*["the plug is broken"] * 1000), tables).sightings
    assert len(found) == MOST_SIGHTINGS


def test_lines_that_were_left_out_are_counted(tables: Tables) -> None:
    assert scan([Line(1, "the plug is broken"), Line(9, "the cable is broken", left_out=7)], tables).left_out == 7


def test_a_message_that_a_terminal_cut_is_one(tables: Tables) -> None:
    cut = Line(1, "no: the ca", ("ble is bro", "ken"), "no: the cable is broken")
    (seen,) = scan([cut], tables).sightings
    assert (seen.get("part"), seen.line) == ("cable", "no: the cable is broken")


def test_a_value_at_the_place_of_the_cut_is_whole(tables: Tables) -> None:
    assert [clue.value for clue in scan([Line(1, "see part 1", ("2",), "see part 12")], tables).clues["part"]] == ["12"]
    found = scan([Line(1, "see part 12 and", ("more",), "see part 12 andmore")], tables)
    assert [clue.line for clue in found.clues["part"]] == ["see part 12 and"]


def test_a_symptom_without_a_rule_names_its_causes(tables: Tables) -> None:
    symptom = tables.symptoms["broken"]
    assert (symptom.rank, symptom.weak, symptom.explains) == (10, True, ("broken-cable", "broken-plug"))
