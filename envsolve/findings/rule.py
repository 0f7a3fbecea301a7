"""How a symptom is judged: branches that choose between its causes."""

from __future__ import annotations

from typing import NamedTuple

from envsolve.findings.condition import Condition


class Cause(NamedTuple):
    """A cause that a branch names, and when it does."""

    id: str
    when: Condition | None


class Branch(NamedTuple):
    """One decision of a rule: the causes, the most likely first, that it names where it holds.

    ``lines`` are fields: only lines that have one of them count (``!field``: lack it), and the branch does not hold
    without any.
    """

    when: Condition | None
    lines: tuple[str, ...]
    causes: tuple[Cause, ...]


class Rule(NamedTuple):
    """How a symptom is judged: the first branch that holds and names a cause decides.

    ``each`` groups the lines by a value, and each group is judged alone; lines without one are left out. ``about`` is
    the framework that all its causes are about, whichever the text names first.
    """

    symptom: str
    about: str | None
    each: Condition | None
    branches: tuple[Branch, ...]
