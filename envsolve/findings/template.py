"""Sentences with fields for declared facts, ``{driver}``, or for parts of them, ``{build.version}``.

``{driver}`` must be known wherever the sentence is used. ``{framework|the framework}`` has other words for an unknown
fact, and ``<< of {package}>>`` is omitted if its field is unknown. ``${NAME}`` is a variable of the shell.
"""

from __future__ import annotations

import re

from envsolve.findings.condition import Condition, Facts
from envsolve.model.prose import sentence_list

_FIELD = re.compile(r"(?<!\$)\{(\w+(?:\.\w+)*)(?:\|([^{}]+))?\}")
_OPTIONAL = re.compile(r"<<([^<>]+)>>")


class Sentence:
    """A sentence or a command, its condition ``when``, and its commands.

    Raises ValueError if a field can be empty: it has no other words, is not in an optional part, and neither ``when``
    nor ``known`` guarantees a value.
    """

    def __init__(
        self,
        text: str,
        when: Condition | None = None,
        commands: tuple[Sentence, ...] = (),
        known: frozenset[str] = frozenset(),
    ) -> None:
        self.text = text
        self.when = when
        self.commands = commands
        empty = sorted(_required(text) - (known if when is None else known | when.known))
        if empty:
            raise ValueError(f"{', '.join(empty)} can be empty in {text!r}: give other words, <<>> or `when`")
        self.names: frozenset[str] = frozenset(fields_of(text)).union(
            when.names if when else (), *(it.names for it in commands)
        )

    def holds(self, facts: Facts) -> bool:
        """Whether its condition holds."""
        return self.when is None or self.when.holds(facts)

    def filled(self, facts: Facts) -> str:
        """The sentence with its fields filled in."""
        return filled(self.text, facts)

    def filled_commands(self, facts: Facts) -> tuple[str, ...]:
        """Its commands that hold, with their fields filled in."""
        return tuple(it.filled(facts) for it in self.commands if it.holds(facts))


def filled(text: str, facts: Facts) -> str:
    """``text`` with its fields filled in, and with the optional parts whose fields are known."""
    whole = _OPTIONAL.sub(lambda it: it[1] if all(facts(name) for name in _required(it[1])) else "", text)
    return _FIELD.sub(lambda it: shown(facts(it[1])) or it[2] or "", whole)


def filled_if_known(text: str, facts: Facts) -> str | None:
    """``text`` with its fields filled in; None if one of them is unknown."""
    return filled(text, facts) if all(map(facts, fields_of(text))) else None


def fields_of(text: str) -> set[str]:
    """The fields that ``text`` names."""
    return {it[1] for it in _FIELD.finditer(text)}


def shown(value: object) -> str:
    """A value as text: several as ``a, b and c``, an unknown one as ""."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return sentence_list(map(str, value))
    return "" if value is None or value is False else str(value)


def _required(text: str) -> set[str]:
    """The required fields: those without other words, outside of optional parts unless ``text`` is one."""
    return {it[1] for it in _FIELD.finditer(_OPTIONAL.sub("", text)) if it[2] is None}
