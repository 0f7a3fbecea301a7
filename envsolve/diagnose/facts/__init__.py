"""The facts that conditions and sentences of ``data/findings`` may name, each in the module that ``facts.toml`` says.

A fact is a function of the case and of the lines that are judged, a property of the case, a clue, or an expression of
others, which ``facts.toml`` has. A function of the catalogue takes arguments beside.
A part of a fact is an attribute of its value, or a function of ``parts``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.facts import parts
from envsolve.findings.catalogue import Catalogue


class CaseFacts:
    """The facts of a case, each worked out when it is first needed.

    What a line holds counts before the facts of its name. ``more`` is what a rule in code adds.
    """

    def __init__(
        self, case: Case, sightings: tuple[Sighting, ...], catalogue: Catalogue, more: Mapping[str, str] = {}
    ) -> None:
        self._case, self._sightings, self._catalogue = case, sightings, catalogue
        self._known: dict[str, object] = {**merged(sightings), **more}

    def __call__(self, name: str) -> object:
        """The value of a fact or of a part of it; None for an unknown one, or a field of another line."""
        if name not in self._known:
            self._known[name] = self._found_out(name)
        return self._known[name]

    def _found_out(self, name: str) -> object:
        whole, _, part = name.rpartition(".")
        if whole:
            value = self(whole)
            return None if value is None else _part_of(self._case, value, part)
        module = self._catalogue.facts.get(name)
        if module is None or module == "check":
            return self._case.clue(name)
        if module == "expression":
            return self._catalogue.expression(name).value(self)
        if module == "case":
            return getattr(self._case, name)
        fact = getattr(import_module(f"{__name__}.{module}"), name)
        if module == "functions":
            return partial(fact, self._case, self._sightings)
        return fact(self._case, self._sightings)


def _part_of(case: Case, value: object, part: str) -> object:
    of_case = getattr(parts, part, None)
    return getattr(value, part) if of_case is None else of_case(case, value)
