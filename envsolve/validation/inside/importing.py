"""Whether a module can be imported, in a process of its own: what one import does to another is not asked."""

from __future__ import annotations

import importlib

from .channel import LONGEST_TEXT

TYPE_CHECKING = False  # without importing typing
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .channel import Channel

MOST_CAUSES = 10
"""Causes that are reported; a chain may be circular."""


def probe(job: dict[str, object], channel: Channel) -> dict[str, object]:
    """Import the module that ``job`` names; an exception ends the probe, and what led to it is noted before."""
    channel.stage("import")
    try:
        importlib.import_module(str(job["module"]))
    except BaseException as error:
        channel.note(causes=list(causes_of(error)))
        raise
    return {}


def causes_of(error: BaseException) -> Iterator[str]:
    """What was raised before ``error``, the first cause last."""
    cause = before(error)
    for _ in range(MOST_CAUSES):
        if cause is None:
            return
        yield "{}: {}".format(type(cause).__name__, cause)[:LONGEST_TEXT]
        cause = before(cause)


def before(error: BaseException) -> BaseException | None:
    """What Python would print in front of ``error`` as what led to it."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)
