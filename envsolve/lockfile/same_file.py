"""Whether a file says what it should, whichever envsolve wrote it, from the matrix of whichever day.

It is decided on what the file holds, never on its text: a comment changes nothing. Nor does it
matter whether a lock says of a project's own words that the command line requires them, as envsolve once did.

What is not in a :class:`~envsolve.lockfile.lock.Lock`, such as ranges and the instructions of an image, is compared as
the document that the file is, by ``document_in`` of the module of its format.
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
"""Who requires what a project locks."""
_OF_DRIVER = "__cuda"


def same_file(format_name: str, before: str, after: str, platforms: Iterable[Platform]) -> bool:
    """Whether a file with the text ``before`` says what ``after`` does, which is in this format and for ``platforms``.

    Of the machine its compute capabilities count, and neither its driver nor the names of its products. Of the evidence
    it only counts what was inferred or not read for ``before``, and is known in ``after``.
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
    """Of which packages something was not read for ``lock``: what is known since makes a file out of date."""
    evidence = {} if lock.made is None else dict(lock.made.evidence)
    return {it.partition(" ")[0] for kind in ("inferred", "unread", "places_unread") for it in evidence.get(kind, ())}


def _rests_on(lock: Lock) -> Lock:
    """``lock`` without its maker and the comments in it, and what was requested in any order."""
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
    """What a file in a format says that no lock holds; None if there is nothing. Raises FileError."""
    found: Callable[[str], object] | None = getattr(module_of(format_name), "document_in", None)
    return None if found is None else found(text)
