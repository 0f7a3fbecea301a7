"""Laws: what must hold for the whole matrix, beyond each file being valid. Each law is one small function.

To add a law, write a function that takes :class:`Facts` and yields one :func:`breach` for each row that breaks it.
State the law in the first line of its docstring and the reason below, and add it to the tuple of its module.
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
    """A law by name, what it says, and every row that breaks it as ``file: row: what is wrong``."""

    law: str
    says: str
    violations: tuple[str, ...]


def judge(matrix: Matrix, today: date, beside: Mapping[str, Document] | None = None) -> tuple[Verdict, ...]:
    """Check every law on every file, and on the documents in ``beside``. Raises MatrixError, like Matrix."""
    facts = gather(matrix, today)
    facts = facts._replace(documents={**facts.documents, **(beside or {})})
    return tuple(_verdict(law, facts) for law in LAWS)


def latest_date() -> date:
    """Return today's date in the first time zone to reach it, so that no valid date is in the future."""
    return datetime.now(_FIRST_TO_SEE_A_DAY).date()


def _verdict(law: Law, facts: Facts) -> Verdict:
    says = (law.__doc__ or "").partition("\n")[0]
    return Verdict(law.__name__.replace("_", "-"), says, tuple(law(facts)))


__all__ = ["LAWS", "Verdict", "judge", "latest_date"]
