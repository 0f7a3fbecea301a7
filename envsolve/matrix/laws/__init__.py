"""What must hold over the whole matrix, beyond each file being readable: one small function for each law.

To add a law, write a function that takes :class:`Facts` and yields one :func:`breach` for each row that breaks it, say
the law in the first line of its docstring and why below, and name it in the tuple of its module.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from typing import NamedTuple

from envsolve.boundary.document import Document
from envsolve.matrix.laws.bookkeeping import BOOKKEEPING
from envsolve.matrix.laws.facts import Facts, Law, gather
from envsolve.matrix.laws.platforms import PLATFORMS
from envsolve.matrix.laws.releases import RELEASES
from envsolve.matrix.load import Matrix

_FIRST_TO_SEE_A_DAY = timezone(timedelta(hours=14))
LAWS: tuple[Law, ...] = (*RELEASES, *PLATFORMS, *BOOKKEEPING)


class Verdict(NamedTuple):
    """One law by its name, what it says, and every row that breaks it as ``file: row: what is wrong``."""

    law: str
    says: str
    violations: tuple[str, ...]


def judge(matrix: Matrix, today: date, beside: Mapping[str, Document] | None = None) -> tuple[Verdict, ...]:
    """Every law checked on every file, and on those ``beside`` them. Raises MatrixError, as Matrix does."""
    facts = gather(matrix, today)
    facts = facts._replace(documents={**facts.documents, **(beside or {})})
    return tuple(_verdict(law, facts) for law in LAWS)


def latest_date() -> date:
    """Today where a day begins first: no date that is honest anywhere is in the future there."""
    return datetime.now(_FIRST_TO_SEE_A_DAY).date()


def _verdict(law: Law, facts: Facts) -> Verdict:
    says = (law.__doc__ or "").partition("\n")[0]
    return Verdict(law.__name__.replace("_", "-"), says, tuple(law(facts)))


__all__ = ["LAWS", "Verdict", "judge", "latest_date"]
