"""What stays of the conda lock that is there already: everything, but for what the user lets go of."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from envsolve.app.conda_part import Kept
from envsolve.app.held_locks import held_in, is_gone
from envsolve.boundary.files import FileError, read_text
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.own_file import LONGEST
from envsolve.lockfile.reading import format_in, locks_in
from envsolve.model.conda import CondaPackage
from envsolve.model.names import normalized


def kept_in(lock: Lock | None, upgraded: Collection[str] = ()) -> Kept:
    """What ``lock`` holds, without what is ``upgraded``; nothing without a lock."""
    if lock is None:
        return Kept()
    gone = {normalized(name) for name in upgraded}
    conda = tuple((it.name, it.version, it.build) for it in lock.conda if _is_whole(it) and not is_gone(it.name, gone))
    wheels = {pin.name: pin.version for pin in lock.pins if pin.version and not is_gone(pin.name, gone)}
    return Kept(held_in(lock, upgraded), conda, wheels)


def platforms_in(path: Path) -> tuple[str, ...]:
    """The platforms that packages of the conda-lock.yml at ``path`` are for; none where it is no such file."""
    with suppress(FileError):
        text = read_text(path, LONGEST) or ""
        if format_in(path, text) == "conda-lock":
            return tuple(lock.platform for lock in locks_in("conda-lock", text) if lock.versions)
    return ()


def _is_whole(package: CondaPackage) -> bool:
    """Whether it is one build: a pattern, as an environment.yml may have it, holds none."""
    return bool(package.build) and not set("*^") & set(package.build)
