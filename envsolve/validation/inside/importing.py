"""Whether a module can be imported, in a process of its own, so that imports do not affect each other."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Iterator

from .channel import Channel, shortened

MOST_CAUSES = 10
"""Limit for the causes that are reported; a chain may be circular."""


def probe(job: dict[str, object], channel: Channel) -> dict[str, object]:
    """Import the module that ``job`` names; an exception ends the probe, after its causes are noted."""
    channel.stage("import")
    try:
        importlib.import_module(str(job["module"]))
    except BaseException as error:
        channel.note(causes=[shortened("{}: {}".format(type(it).__name__, it)) for it in causes_of(error)])
        channel.note(files=sorted({file for it in (error, *causes_of(error)) for file in files_of(it)}))
        raise
    return {}


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """The causes of ``error``, the root cause last."""
    cause = before(error)
    for _ in range(MOST_CAUSES):
        if cause is None:
            return
        yield cause
        cause = before(cause)


def files_of(error: BaseException) -> Iterator[str]:
    """The files in the traceback of ``error``, and the file that lacks a name or is not Python."""
    for frame in traceback.extract_tb(error.__traceback__):
        yield frame.filename
    where = getattr(error, "filename", None) if isinstance(error, SyntaxError) else getattr(error, "path", None)
    if isinstance(error, (SyntaxError, ImportError)) and isinstance(where, str):
        yield where


def before(error: BaseException) -> BaseException | None:
    """The exception that Python would print before ``error``."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)
