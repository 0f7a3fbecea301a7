"""Which rule judges a symptom: that of the catalogue, or for families that are not in it yet, a function in code.

A symptom without one has the causes that its table names. Of the modules only those are loaded that a text calls for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from importlib import import_module

from envsolve.diagnose.cause import Rule
from envsolve.diagnose.decide import diagnoses
from envsolve.diagnose.tables import Symptom
from envsolve.findings.catalogue import shipped

MODULES: Mapping[str, tuple[str, ...]] = {}
"""By table of symptoms, the modules of this package with the rules on them, each in its ``RULES``."""


def rule_for(symptom: Symptom) -> Rule | None:
    """The rule on ``symptom``, or None where its table says all."""
    return _of_catalogue(symptom.id) or _among(MODULES.get(symptom.table, ()), symptom.id)


def rule_named(symptom: str) -> Rule | None:
    """The rule on the symptom of this id, of whatever table; None where there is none."""
    modules = dict.fromkeys(name for names in MODULES.values() for name in names)
    return _of_catalogue(symptom) or _among(modules, symptom)


def _of_catalogue(symptom: str) -> Rule | None:
    rule = shipped().rule(symptom)
    return None if rule is None else partial(diagnoses, rule, shipped())


def _among(modules: Iterable[str], symptom: str) -> Rule | None:
    for module in modules:
        rules: Mapping[str, Rule] = import_module(f"{__name__}.{module}").RULES
        if symptom in rules:
            return rules[symptom]
    return None
