"""The number of examples for a law: the fast suite tries a fifth of what ``CI=1 .ci/run`` does.

    LAWS_TIMES=50 .venv-test/bin/python -m pytest -m hypothesis

draws fifty times as many as ``CI=1 .ci/run``, by chance.
"""

from __future__ import annotations

import os

TIMES = float(os.environ.get("LAWS_TIMES", "0.2"))
LEAST = 5


def examples(whole: int) -> int:
    """The number of examples to try now, of so many."""
    return max(LEAST, round(whole * TIMES))
