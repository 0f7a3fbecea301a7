"""Texts by which failures are recognised, and the explanations that are not in the catalogue of findings yet.

* ``[symptom.ID]`` is something that is wrong, as programs tell it: ``text`` holds the patterns, each with ``anchors``
  (lower-case words of which a line has one whenever the pattern matches it) and the ``source`` it was seen in.
* ``[explanation.ID]`` is a cause: sentences with fields in braces, see :mod:`envsolve.diagnose.wording`.
* ``[clue.FACT]`` is a fact about machine or environment that a text tells in passing.

Only what a text calls for is compiled: two hundred patterns cost more than everything else in a short run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.document import Document, Kept, read_document
from envsolve.findings.catalogue import shipped, strings
from envsolve.model.finding import Severity

DEFAULT_RANK = 50


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

    A ``weak`` one is told only where nothing stronger is in the text: many things bring it about. ``explains`` are
    the explanations where no rule in code decides, the likeliest first; a symptom with neither is a fact that the rules
    on others look at. ``table`` is the name of its file.
    """

    id: str
    rank: int
    weak: bool
    explains: tuple[str, ...]
    texts: tuple[Text, ...]
    table: str


class Explanation(NamedTuple):
    """A cause in words, to be filled in; see :class:`~envsolve.model.finding.Finding`.

    ``tell`` is the one command that shows whether it is this cause, ``shows`` what it then shows. ``harmful`` are
    sentences on advice that circulates and makes it worse. ``solvable`` says that another environment can be the fix.
    ``finding`` is the id of the finding, which several explanations may share.
    """

    id: str
    title: str
    severity: Severity
    in_scope: bool
    cause: tuple[str, ...]
    fix: tuple[str, ...]
    commands: tuple[str, ...]
    tell: str
    shows: str
    harmful: tuple[str, ...]
    solvable: bool
    sources: tuple[str, ...]
    finding: str


def find_tables() -> Path:
    """The directory of the tables: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parent.parent
    installed = package / "_diagnosis"
    return installed if installed.is_dir() else package.parent / "data" / "diagnosis"


class Tables:
    """The tables in a directory, every file of which is read when something is asked for.

    Raises MatrixError where a file cannot be read or is not TOML; their content is judged by the tests.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or find_tables()
        self._shipped = directory is None

    @cached_property
    def _documents(self) -> Mapping[str, Document]:
        paths = sorted(self._directory.glob("*.toml"))
        own = {path.stem: read_document(path, Kept(path, wanted=self._shipped)) for path in paths}
        return {**own, **{f"findings/{name}": document for name, document in shipped().documents.items()}}

    @cached_property
    def symptoms(self) -> Mapping[str, Symptom]:
        """Every symptom by its id; several files may add texts to one."""
        found: dict[str, Symptom] = {}
        for table, name, row in self._rows("symptom"):
            texts = tuple(_texts(name, row))
            known = found.get(name)
            if known is not None:
                texts = known.texts + texts
                if set(row) == {"text"}:
                    found[name] = known._replace(texts=texts)
                    continue
            rank = row.get("rank", DEFAULT_RANK)
            explains = strings(row.get("explains", name))
            found[name] = Symptom(name, int(str(rank)), row.get("weak") is True, explains, texts, table)
        return found

    @cached_property
    def explanations(self) -> Mapping[str, Mapping[str, object]]:
        """Every explanation by its id, as it stands in its file; :meth:`explanation` reads one."""
        return {name: row for _, name, row in self._rows("explanation")}

    def explanation(self, identifier: str) -> Explanation:
        """The explanation of that id. Raises KeyError where there is none."""
        row = self.explanations[identifier]
        return Explanation(
            id=identifier,
            title=str(row["title"]),
            severity=Severity(str(row.get("severity", Severity.ERROR.value))),
            in_scope=row.get("in_scope") is not False,
            cause=strings(row.get("cause")),
            fix=strings(row.get("fix")),
            commands=strings(row.get("commands")),
            tell=str(row.get("tell", "")),
            shows=str(row.get("shows", "")),
            harmful=strings(row.get("harmful")),
            solvable=row.get("solvable") is True,
            sources=strings(row.get("source")),
            finding=str(row.get("finding", identifier)),
        )

    @cached_property
    def clues(self) -> tuple[Text, ...]:
        """Every wording of every clue; ``of`` is the fact it tells."""
        return tuple(text for _, name, row in self._rows("clue") for text in _texts(name, row))

    @cached_property
    def texts(self) -> tuple[Text, ...]:
        """Every wording of every symptom."""
        return tuple(text for symptom in self.symptoms.values() for text in symptom.texts)

    def _rows(self, kind: str) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        """The rows of one kind: the name of the file, the row's own and what it holds."""
        for table, document in self._documents.items():
            rows = document.get(kind)
            if isinstance(rows, dict):
                yield from ((table, name, row) for name, row in rows.items())


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _texts(name: str, row: Mapping[str, object]) -> Iterator[Text]:
    texts = row.get("text")
    for text in texts if isinstance(texts, list) else ():
        yield Text(
            name, str(text["pattern"]), strings(text.get("anchors")), str(text["source"]), text.get("wraps") is True
        )
