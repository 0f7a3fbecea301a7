"""The texts of the catalogue of findings by which failures and facts are recognised.

* ``[symptom.ID]`` is something that is wrong, as programs print it: ``text`` holds the patterns, each with ``anchors``
  (lower-case words of which a line has one whenever the pattern matches it) and the ``source`` it was seen in.
* ``[clue.FACT]`` is a fact about machine or environment that a text shows in passing.

Only what a text calls for is compiled: two hundred patterns cost more than everything else in a short run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import NamedTuple

from envsolve.findings.catalogue import Catalogue, refuse, shipped, strings

DEFAULT_RANK = 50
_OF_SYMPTOM = frozenset({"rank", "weak", "explains", "rules", "each", "about", "text"})
_OF_TEXT = frozenset({"anchors", "pattern", "source", "wraps"})


class Text(NamedTuple):
    """One wording of a symptom or clue. ``wraps`` lets it run on over the line's end."""

    of: str
    pattern: str
    anchors: tuple[str, ...]
    source: str
    wraps: bool = False

    @property
    def expression(self) -> re.Pattern[str]:
        """The pattern, compiled when it is first needed; upper and lower case are alike."""
        return _compiled(self.pattern)


class Symptom(NamedTuple):
    """A symptom: what is recognised. The lower its ``rank``, the nearer it is to the root of a failure.

    A ``weak`` one counts only where nothing stronger is in the text: many things cause it. ``explains`` are the
    findings where no rule decides, the most likely first; a symptom with neither is a fact for the rules of others.
    """

    id: str
    rank: int
    weak: bool
    explains: tuple[str, ...]
    texts: tuple[Text, ...]


class Tables:
    """The symptoms and clues of a catalogue, by default that of envsolve, read when first needed.

    Raises MatrixError where a file cannot be read or is not TOML, and ValueError for an unknown key.
    """

    def __init__(self, catalogue: Catalogue | None = None) -> None:
        self._catalogue = catalogue or shipped()

    @cached_property
    def symptoms(self) -> Mapping[str, Symptom]:
        """Every symptom by its id; several files may add texts to one."""
        found: dict[str, Symptom] = {}
        for name, row in self._catalogue.rows("symptom"):
            refuse(name, row, _OF_SYMPTOM)
            texts = tuple(_texts(name, row))
            known = found.get(name)
            if known is not None:
                found[name] = known._replace(texts=known.texts + texts)
                continue
            rank = row.get("rank", DEFAULT_RANK)
            explains = strings(row.get("explains", name))
            found[name] = Symptom(name, int(str(rank)), row.get("weak") is True, explains, texts)
        return found

    @cached_property
    def clues(self) -> tuple[Text, ...]:
        """Every wording of every clue; ``of`` is the fact that it gives."""
        return tuple(text for name, row in self._catalogue.rows("clue") for text in _texts(name, row))

    @cached_property
    def texts(self) -> tuple[Text, ...]:
        """Every wording of every symptom."""
        return tuple(text for symptom in self.symptoms.values() for text in symptom.texts)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _texts(name: str, row: Mapping[str, object]) -> Iterator[Text]:
    texts = row.get("text")
    for text in texts if isinstance(texts, list) else ():
        refuse(name, text, _OF_TEXT)
        yield Text(
            name, str(text["pattern"]), strings(text.get("anchors")), str(text["source"]), text.get("wraps") is True
        )
