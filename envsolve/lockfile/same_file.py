"""Whether a file says what it should, whichever envsolve wrote it, from the matrix of whichever day.

It is decided on what the file holds, never on its text: a comment changes nothing. Nor does it
matter whether a lock says of a project's own words that the command line requires them, as envsolve once did.

What is not in a :class:`~envsolve.lockfile.lock.Lock` is compared as the document that the file is: the ranges of an
environment.yml and of a pixi.toml, the instructions of an image, the facts of an answer in JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from envsolve.boundary.files import FileError, toml_document
from envsolve.lockfile.formats import IMAGE_FORMATS, module_of
from envsolve.lockfile.lock import Lock, Made
from envsolve.lockfile.reading import lock_in
from envsolve.model.asker import COMMAND_LINE
from envsolve.model.host import Platform
from envsolve.model.package import Pin

_ASKERS = frozenset((COMMAND_LINE, "pyproject.toml", "envsolve.toml"))
"""Who requires what a project locks."""
_OF_DRIVER = "__cuda"
_MAKER = ("envsolve_version", "matrix_date", "request", "alternatives")


def same_file(name: str, format_name: str, before: str, after: str, locks: Sequence[Lock]) -> bool:
    """Whether the file ``name`` with the text ``before`` says what ``after`` does, in which ``locks`` are written.

    ``locks`` are as the format holds them (:meth:`~envsolve.lockfile.lock.Lock.restricted_to`), one for each platform.
    Of the machine its compute capabilities count, and neither its driver nor the names of its products. Of the evidence
    it only counts what was inferred or not read for ``before``, and is known in ``after``.
    """
    if before == after:
        return True
    try:
        found = [lock_in(PurePath(name), before, Platform(lock.platform)) for lock in locks]
        if _document(format_name, before) != _document(format_name, after):
            return False
    except FileError:
        return False
    pairs = zip(found, locks, strict=True)
    return all(
        it is not None and _rests_on(it) == _rests_on(lock) and _unverified(it) <= _unverified(lock)
        for it, lock in pairs
    )


def _unverified(lock: Lock) -> set[str]:
    """The packages whose own code was not read for ``lock``: one that is known since makes a file out of date."""
    evidence = {} if lock.made is None else dict(lock.made.evidence)
    return {it.partition(" ")[0] for kind in ("inferred", "unread") for it in evidence.get(kind, ())}


def _rests_on(lock: Lock) -> Lock:
    """``lock`` without its maker and the comments in it, and what was requested in any order."""
    made, stack = lock.made, lock.stack
    return lock._replace(
        pins=tuple(map(_with_any_asker, lock.pins)),
        made=None if made is None else _bare(made),
        stack=None if stack is None else stack._replace(machines=""),
        sources=tuple(it for it in lock.sources if it not in _ASKERS),
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


def _with_any_asker(pin: Pin) -> Pin:
    via = {"" if it in _ASKERS else it for it in pin.via}
    return pin._replace(via=tuple(sorted(via)))


def _document(format_name: str, text: str) -> object:
    """What a file in a format says that no lock holds; None where there is nothing. Raises FileError."""
    if format_name == "environment":
        from envsolve.lockfile import yaml_document

        return yaml_document.document_of(text)
    if format_name == "pixi":
        return toml_document(text)
    if format_name in IMAGE_FORMATS:
        instructions: tuple[str, ...] = module_of(format_name).instructions_in(text)
        return instructions
    if format_name == "json":
        from envsolve.lockfile import json_answer

        return _answer(json_answer.document_of(text))
    return None


def _answer(document: Mapping[str, object]) -> dict[str, object]:
    """An answer in JSON without its maker: of its notes the codes, of its machines what :func:`_machine` says."""
    found = {key: value for key, value in document.items() if key not in _MAKER}
    found["notes"] = [it.get("code") for it in _tables(document.get("notes"))]
    found["host"] = _machine(document.get("host"))
    found["hosts"] = [(_machine(it), it.get("files")) for it in _tables(document.get("hosts"))]
    found["platforms"] = [_answer(it) for it in _tables(document.get("platforms"))]
    return found


def _machine(host: object) -> object:
    """The platform, the C library and the compute capabilities of a host: what an answer rests on."""
    if not isinstance(host, dict):
        return host
    capabilities = {str(it.get("compute_capability")) for it in _tables(host.get("gpus"))}
    return host.get("platform"), host.get("glibc"), sorted(capabilities)


def _tables(listed: object) -> list[Mapping[str, object]]:
    return [it for it in listed if isinstance(it, dict)] if isinstance(listed, list) else []
