"""Rules for symptoms: branches that choose between causes."""

from __future__ import annotations

from typing import NamedTuple

from envsolve.findings.condition import Condition


class Cause(NamedTuple):
    """A cause that a branch names, and when."""

    id: str
    when: Condition | None


class Branch(NamedTuple):
    """One decision of a rule: if it holds, its causes, the most likely first.

    ``lines`` are fields: only lines with one of them count (``!field``: lines without it), and the branch does not hold
    if there are none.
    """

    when: Condition | None
    lines: tuple[str, ...]
    causes: tuple[Cause, ...]


class Rule(NamedTuple):
    """The rule for a symptom: the first branch that holds and names a cause decides.

    ``each`` groups the lines by a value, and each group is judged separately; lines without a value are ignored.
    ``about`` is the framework that all causes are about, whichever framework the text mentions first.
    """

    symptom: str
    about: str | None
    each: Condition | None
    branches: tuple[Branch, ...]
