"""Compare files by meaning, whichever envsolve wrote them, with the matrix of any day.

Only the content counts, never the text: a comment changes nothing. Older versions of envsolve wrote that the command
line requires what the project requires. This makes no difference either.

What is not in a :class:`~envsolve.lockfile.lock.Lock`, such as ranges and the instructions of an image, is compared as
a document, by ``document_in`` of the format's module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from envsolve.boundary.files import FileError
from envsolve.lockfile.formats import module_of
from envsolve.lockfile.lock import Lock, Made
from envsolve.lockfile.reading import lock_for
from envsolve.model.host import Platform
from envsolve.model.package import Pin
from envsolve.model.requester import COMMAND_LINE

_REQUESTERS = frozenset((COMMAND_LINE, "pyproject.toml", "envsolve.toml"))
"""The origins of a project's requirements in locks."""
_OF_DRIVER = "__cuda"


def same_file(format_name: str, before: str, after: str, platforms: Iterable[Platform]) -> bool:
    """Whether a file with the text ``before`` means the same as ``after``, in this format and for ``platforms``.

    Of the machine only its compute capabilities count, not its driver or the names of its products. Of the evidence
    only packages count that were inferred or not read for ``before``, and are known in ``after``.
    """
    if before == after:
        return True
    try:
        if _document(format_name, before) != _document(format_name, after):
            return False
        pairs = [[lock_for(format_name, text, platform) for text in (before, after)] for platform in platforms]
    except FileError:
        return False
    return all(
        old is not None
        and new is not None
        and _rests_on(old) == _rests_on(new)
        and _unverified(old) <= _unverified(new)
        for old, new in pairs
    )


def _unverified(lock: Lock) -> set[str]:
    """The packages of which something was not read for ``lock``. A lock is stale once this is known."""
    evidence = {} if lock.made is None else dict(lock.made.evidence)
    return {it.partition(" ")[0] for kind in ("inferred", "unread", "places_unread") for it in evidence.get(kind, ())}


def _rests_on(lock: Lock) -> Lock:
    """``lock`` without its maker and comments, and with what was requested in sorted order."""
    made, stack = lock.made, lock.stack
    return lock._replace(
        pins=tuple(map(_without_requester, lock.pins)),
        made=None if made is None else _bare(made),
        stack=None if stack is None else stack._replace(machines=""),
        sources=tuple(it for it in lock.sources if it not in _REQUESTERS),
        virtual_packages=tuple(it for it in lock.virtual_packages if it.name != _OF_DRIVER),
        remarks=(),
    )


def _bare(made: Made) -> Made:
    request = None if made.request is None else tuple(sorted(made.request))
    return made._replace(
        envsolve_version="",
        matrix_date=None,
        command="",
        request=request,
        options=tuple(sorted(made.options)),
        evidence=(),
    )


def _without_requester(pin: Pin) -> Pin:
    via = {"" if it in _REQUESTERS else it for it in pin.via}
    return pin._replace(via=tuple(sorted(via)))


def _document(format_name: str, text: str) -> object:
    """The content of a file that no lock expresses, or None if there is none. Raises FileError."""
    found: Callable[[str], object] | None = getattr(module_of(format_name), "document_in", None)
    return None if found is None else found(text)
