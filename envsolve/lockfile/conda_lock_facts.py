"""What a conda-lock.yml records beside its packages: the request, what shaped it and who made it, and a hash of that.

:mod:`envsolve.lockfile.recorded_facts` reads it back. The format has room for texts alone
(``metadata.custom_metadata``, CEP 37). A fact is ``envsolve.KEY``, or ``envsolve.PLATFORM.KEY`` where it is one
platform's; what is no text is JSON. The keys are those of the other locks
(:func:`envsolve.lockfile.facts.facts_of`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping

from envsolve.lockfile.conda_lock import CondaLock, PlatformLock
from envsolve.lockfile.facts import SCHEMA_VERSION, stack_facts
from envsolve.lockfile.stack import stack_of
from envsolve.lockfile.toml import Value

_OURS = "envsolve"


def content_hash(lock: CondaLock, part: PlatformLock) -> str:
    """The sha256 of what the packages for a platform follow from, as canonical JSON.

    That is the platform, the channels in their order, what was asked for with manager and category, the virtual
    packages and the moment after which uploads do not count. conda-lock hashes the same of its own specification
    (conda_lock/content_hash.py).
    """
    asked = [[it.spec, "pip" if it.by_pip else "conda", it.category] for it in part.asked]
    held = {
        "platform": part.platform.value,
        "channels": list(lock.channels),
        "asked": sorted(asked),
        "virtual_packages": sorted(map(str, part.virtual_packages)),
        "exclude_newer": lock.exclude_newer,
    }
    text = json.dumps(held, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def custom_metadata(lock: CondaLock) -> Iterator[tuple[str, str]]:
    """The facts as texts by their keys, in an order that does not change."""
    yield from _as_texts(_OURS, _facts_of(lock))
    for part in lock.parts:
        yield from _as_texts(f"{_OURS}.{part.platform}", _platform_facts(part))


def _facts_of(lock: CondaLock) -> Mapping[str, Value | None]:
    if lock.recorded is not None:
        return lock.recorded.facts
    return {
        "schema_version": SCHEMA_VERSION,
        "envsolve_version": lock.envsolve_version,
        "command": lock.command,
        "matrix_date": lock.matrix_date,
        "own_matrix": lock.own_matrix or None,
        "exclude_newer": lock.exclude_newer,
        "variables": dict(lock.variables) or None,
    }


def _platform_facts(part: PlatformLock) -> Mapping[str, Value | None]:
    if part.recorded is not None:
        return part.recorded.facts
    versions = {pin.name: pin.version for pin in part.pip} | {it.name: it.version for it in part.conda}
    virtual = {package.name: package.version for package in part.virtual_packages}
    return {
        "request": [asked.spec for asked in part.asked],
        "python": part.python or None,
        "glibc": virtual.get("__glibc"),
        "virtual_packages": [str(package) for package in part.virtual_packages],
        **({} if part.answer is None else stack_facts(stack_of(part.answer, versions))),
    }


def _as_texts(prefix: str, facts: Mapping[str, Value | None]) -> Iterator[tuple[str, str]]:
    for key, fact in facts.items():
        if fact is not None:
            yield f"{prefix}.{key}", fact if isinstance(fact, str) else json.dumps(fact)
