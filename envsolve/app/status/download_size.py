"""How many bytes one machine downloads to install a lock."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.boundary.files import FileError
from envsolve.index.fitting import Interpreter, Ranks
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.marker_ways import may_hold, ways_of
from envsolve.model.host import Platform
from envsolve.model.package import Pin


def download_size(lock: Lock, platform: Platform, python: str) -> int | None:
    """The bytes to download for ``platform``; None if the lock lacks the size of a file.

    ``python`` is the minor version to count for if the lock supports several; "" if there is no choice.
    """
    sizes = [it.size for it in lock.conda]
    interpreter = lock.interpreter
    if interpreter is None and python:
        major, minor = map(int, python.split("."))
        interpreter = Interpreter((major, minor, 0), platform)
    sizes += _of_wheels(lock, interpreter)
    known = [it for it in sizes if it is not None]
    return sum(known) if known and len(known) == len(sizes) and not lock.open else None


def _of_wheels(lock: Lock, interpreter: Interpreter | None) -> Iterator[int | None]:
    ranks = None if interpreter is None else Ranks(interpreter)
    for pin in lock.pins:
        if interpreter is None or _is_for(interpreter, pin.marker):
            yield _size(pin, ranks)


def _size(pin: Pin, ranks: Ranks | None) -> int | None:
    """The size of the file that an installer chooses: the best wheel, or else the source distribution."""
    if len(pin.files) == 1 or ranks is None:
        return pin.files[0].size if len(pin.files) == 1 else None
    found = [(rank, it.size) for it in pin.files if it.is_wheel and (rank := ranks.of_wheel(it.name)) is not None]
    if found:
        return min(found, key=lambda it: it[0])[1]
    return next((it.size for it in pin.files if not it.is_wheel), None)


def _is_for(interpreter: Interpreter, marker: str) -> bool:
    values = {name: value for name, value in interpreter.marker_values().items() if value}
    try:
        return not marker or may_hold(ways_of(marker), values)
    except FileError:
        return True
