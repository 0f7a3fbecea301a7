"""Every id that a finding may have, from the catalogue and from the source of the checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from envsolve.findings.catalogue import shipped

from .markdown import escaped, table
from .source import GAP, Source

_FIELD = re.compile(r"\{(?:\w+\|([^{}]*)|\w+)\}")
_PLACES = {
    "envsolve.diagnose.environment": "doctor",
    "envsolve.diagnose.machine": "doctor",
    "envsolve.validation": "validate",
}


class Known(NamedTuple):
    """An id, a title that a finding with it has, and the commands that tell it."""

    id: str
    title: str
    commands: tuple[str, ...]


def findings(source: Source) -> list[Known]:
    """All ids, by their names."""
    titles: dict[str, str] = {}
    commands: dict[str, dict[str, None]] = {}
    for id_, title, command in (*_of_catalogue(), *_checked(source)):
        if GAP not in id_:
            titles[id_] = titles.get(id_) or title
            commands.setdefault(id_, {})[command] = None
    return [Known(id_, titles[id_], tuple(commands[id_])) for id_ in sorted(titles)]


def findings_table(source: Source) -> str:
    """The table of all ids."""
    rows = ((f"`{it.id}`", escaped(it.title), ", ".join(it.commands)) for it in findings(source))
    return table(("id", "what it says", "from"), rows)


def _of_catalogue() -> Iterator[tuple[str, str, str]]:
    """What the catalogue has: findings of texts, and those of the checks of validate and doctor."""
    documents = shipped().documents
    of_doctor = {name for stem in documents if stem.startswith("doctor-") for name in documents[stem]["check"]}
    for name in shipped():
        entry = shipped().entry(name)
        title = _FIELD.sub(lambda field: field[1] or GAP, entry.title[-1].text)
        if name in shipped().of_texts:
            yield entry.finding, title, "explain"
        if name in shipped().of_checks:
            yield entry.finding, title, "doctor" if name in of_doctor else "validate"


def _checked(source: Source) -> Iterator[tuple[str, str, str]]:
    """Of findings, and of every row of a table that has an id and a title as they have."""
    classes = [
        name for module in source.modules.values() for name, it in module.classes.items() if {"id", "title"} <= {*it}
    ]
    for _, call in source.calls_of(*classes):
        command = next((it for place, it in _PLACES.items() if call.module.name.startswith(place)), None)
        if command is not None:
            title = source.sentence(source.argument(call, "title"))
            yield from ((it, title, command) for it in source.strings(source.argument(call, "id"), call.module))
