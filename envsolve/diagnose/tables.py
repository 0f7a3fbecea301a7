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

from envsolve.findings.catalogue import Catalogue, mistakes_in, refuse, refuse_unknown, shipped, strings

DEFAULT_RANK = 50
_OF_SYMPTOM = frozenset({"rank", "weak", "prose", "explains", "rules", "each", "about", "text"})
_OF_TEXT = frozenset({"anchors", "pattern", "source", "wraps"})


class Text(NamedTuple):
    """One wording of a symptom or clue, in ``file``. ``wraps`` lets it run on over the line's end."""

    kind: str
    of: str
    file: str
    pattern: str
    anchors: tuple[str, ...]
    source: str
    wraps: bool = False

    @property
    def expression(self) -> re.Pattern[str]:
        """The pattern, compiled when it is first needed; upper and lower case are alike.

        Raises UsageError if it is no regular expression.
        """
        return _compiled(self)


class Symptom(NamedTuple):
    """A symptom: what is recognised. The lower its ``rank``, the nearer it is to the root of a failure.

    A ``weak`` one counts only where nothing stronger is in the text: many things cause it. ``prose`` is what people
    say, not what a program printed. ``explains`` are the findings where no rule decides, the most likely first; a
    symptom with neither is a fact for the rules of others.
    """

    id: str
    rank: int
    weak: bool
    prose: bool
    explains: tuple[str, ...]
    texts: tuple[Text, ...]


class Tables:
    """The symptoms and clues of a catalogue, by default that of envsolve, read when first needed.

    Raises UsageError ``findings-invalid`` as the catalogue does.
    """

    def __init__(self, catalogue: Catalogue | None = None) -> None:
        self._catalogue = catalogue or shipped()

    @cached_property
    def symptoms(self) -> Mapping[str, Symptom]:
        """Every symptom by its id; several files may add texts to one."""
        found: dict[str, Symptom] = {}
        for file, name, row in self._catalogue.rows_of_files("symptom"):
            with mistakes_in(file, "symptom", name):
                refuse(row, _OF_SYMPTOM)
                texts = tuple(_texts("symptom", name, file, row))
                if name in found:
                    found[name] = found[name]._replace(texts=found[name].texts + texts)
                    continue
                explains = strings(row.get("explains", name))
                if "rules" not in row:
                    refuse_unknown("finding", explains, self._catalogue)
                rank = int(str(row.get("rank", DEFAULT_RANK)))
                found[name] = Symptom(name, rank, row.get("weak") is True, row.get("prose") is True, explains, texts)
        return found

    @cached_property
    def clues(self) -> tuple[Text, ...]:
        """Every wording of every clue; ``of`` is the fact that it gives."""
        found: list[Text] = []
        for file, name, row in self._catalogue.rows_of_files("clue"):
            with mistakes_in(file, "clue", name):
                found += _texts("clue", name, file, row)
        return tuple(found)

    @cached_property
    def texts(self) -> tuple[Text, ...]:
        """Every wording of every symptom."""
        return tuple(text for symptom in self.symptoms.values() for text in symptom.texts)


@cache
def _compiled(text: Text) -> re.Pattern[str]:
    with mistakes_in(text.file, text.kind, text.of):
        try:
            return re.compile(text.pattern, re.IGNORECASE | re.ASCII)
        except re.error as error:
            raise ValueError(f"{error} in the pattern {text.pattern!r}") from None


def _texts(kind: str, name: str, file: str, row: Mapping[str, object]) -> Iterator[Text]:
    texts = row.get("text")
    for text in texts if isinstance(texts, list) else ():
        refuse(text, _OF_TEXT, needed=("pattern", "anchors", "source"))
        pattern, anchors, source = str(text["pattern"]), strings(text["anchors"]), str(text["source"])
        yield Text(kind, name, file, pattern, anchors, source, text.get("wraps") is True)
