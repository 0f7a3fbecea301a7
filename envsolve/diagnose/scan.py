"""Finding symptoms and clues in the lines of a text.

A line is compared only with the patterns one of whose anchors it holds, and a pattern that has matched often is left
alone: a log that says one thing a million times says it once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from envsolve.diagnose.case import Clue, Sighting
from envsolve.diagnose.reading.anchors import anchors
from envsolve.diagnose.reading.lines import Line
from envsolve.diagnose.tables import Tables, Text

MOST_SIGHTINGS = 24
"""How often one wording counts: enough for every library that a framework looks for."""


class Seen(NamedTuple):
    """What a text holds: symptoms in its order, and clues by the fact that they give.

    ``left_out`` are lines that might have mattered and were not compared.
    """

    sightings: tuple[Sighting, ...]
    clues: Mapping[str, tuple[Clue, ...]]
    left_out: int = 0


def anchors_of(tables: Tables) -> tuple[str, ...]:
    """Every word that makes a line worth a look, once each."""
    return tuple(dict.fromkeys(anchor for text in (*tables.texts, *tables.clues) for anchor in text.anchors))


def scan(lines: Iterable[Line], tables: Tables) -> Seen:
    """What ``lines`` hold; a line that several wordings of one symptom match is one sighting."""
    found = _Scan(tables)
    left = 0
    for line in lines:
        left += line.left_out
        found.look_at(line)
    clues = {fact: tuple(values) for fact, values in found.clues.items()}
    return Seen(tuple(found.sightings), clues, left)


class _Scan:
    """One text while it is looked at."""

    def __init__(self, tables: Tables) -> None:
        self._clues = frozenset(id(text) for text in tables.clues)
        self._index = _Index((*tables.texts, *tables.clues))
        self.sightings: list[Sighting] = []
        self.clues: dict[str, list[Clue]] = defaultdict(list)
        self._ran_on: dict[str, str] = defaultdict(str)
        """The last match of each symptom that ran on to other lines: a line with its end is no second sighting."""

    def look_at(self, line: Line) -> None:
        """Take what ``line`` has."""
        here: set[str] = set()
        joined = ""
        for text in self._index.candidates(line.whole or line.text):
            is_clue = id(text) in self._clues
            if text.wraps and not joined:
                joined = " ".join((line.text.rstrip(), *map(str.strip, line.following)))
            for match in _matches(text, line, joined, every=is_clue):
                self._index.count(text)
                if is_clue:
                    self.clues[text.of].append(Clue(_value(match), line.text, line.number))
                elif text.of not in here and match[0] not in self._ran_on[text.of]:
                    here.add(text.of)
                    if match.string is joined:
                        self._ran_on[text.of] = match[0]
                    self.sightings.append(Sighting(text.of, _groups(match), _shown(match, line), line.number))


class _Index:
    """The wordings by their anchors, less those that have matched often enough."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self._texts = texts
        self._left = {id(text): MOST_SIGHTINGS for text in texts}
        by_anchor: dict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(texts):
            for anchor in text.anchors:
                by_anchor[anchor].append(number)
        self._anchors = anchors(tuple(by_anchor))
        self._having = tuple(by_anchor.values())

    def candidates(self, line: str) -> list[Text]:
        found = {number for place in self._anchors.places_in(line) for number in self._having[place]}
        return [text for number in sorted(found) if self._left[id(text := self._texts[number])]]

    def count(self, text: Text) -> None:
        """One more match of ``text``; after the last it is no longer a candidate."""
        self._left[id(text)] = max(0, self._left[id(text)] - 1)


def _matches(text: Text, line: Line, joined: str, *, every: bool) -> Iterable[re.Match[str]]:
    """Matches that begin in the line, and may end after it where it was cut or the wording wraps; one, or ``every``."""
    most, end = MOST_SIGHTINGS if every else 1, len(line.text)
    found = list(islice(text.expression.finditer(line.text), most))
    if line.whole:
        over = [it for it in text.expression.finditer(line.whole) if it.start() < end < it.end()]
        found = [*over, *(it for it in found if it.end() < end or not over)]
    if text.wraps and not (found and (line.whole or not every)):
        found = [it for it in text.expression.finditer(joined) if it.start() < end]
    return found[:most]


def _value(match: re.Match[str]) -> str:
    groups = _groups(match)
    if "package" in groups:
        return f"{groups['package']}=={groups.get('version', '')}"
    return groups.get("value", match[0]).strip()


def _groups(match: re.Match[str]) -> dict[str, str]:
    return {name: text for name, value in match.groupdict().items() if (text := (value or "").strip())}


def _shown(match: re.Match[str], line: Line) -> str:
    """The line, with those that the wording ran on to."""
    return line.text if match.string == line.text else match.string
