"""The facts in a conda-lock.yml besides its packages: the request, its conditions, its maker, and a hash of these.

The format only has room for strings (``metadata.custom_metadata``, CEP 37). A fact is ``envsolve.KEY``, or
``envsolve.PLATFORM.KEY`` if it is about one platform. Other types are written as JSON. The keys are those of the other
locks (:func:`envsolve.lockfile.facts.facts_of`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence

from envsolve.boundary.files import FileError, json_value
from envsolve.lockfile.facts import facts_of
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.toml import Value

_OURS = "envsolve"
_OF_THE_WHOLE = (
    *("schema_version", "envsolve_version", "command", "matrix_date", "own_matrix", "exclude_newer", "variables"),
)
"""Facts that are the same for all platforms."""
_NO_TEXT = ("schema_version", "own_matrix")
"""Facts that are neither strings, lists nor tables."""
_TEXTS = ("envsolve_version", "command", "matrix_date", "exclude_newer", "python", "glibc", "cuda", "cudnn")


def content_hash(lock: Lock) -> str:
    """Return the sha256 of what determines the packages for a platform, as canonical JSON.

    That is the platform, the channels in their order, the requested specs with manager and category, the virtual
    packages, and the time after which uploads do not count. conda-lock hashes the same parts of its own specification
    (conda_lock/content_hash.py).
    """
    content = {
        "platform": lock.platform,
        "channels": list(lock.channels),
        "asked": sorted([it.spec, "pip" if it.by_pip else "conda", it.category] for it in lock.requested),
        "virtual_packages": sorted(map(str, lock.virtual_packages)),
        "exclude_newer": None if lock.made is None else lock.made.exclude_newer,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def custom_metadata(locks: Sequence[Lock]) -> Iterator[tuple[str, str]]:
    """Yield the facts as strings with their keys, in a fixed order."""
    whole = facts_of(locks[0])
    yield from _as_texts(_OURS, {key: whole[key] for key in _OF_THE_WHOLE if key in whole})
    for lock in locks:
        own = {key: fact for key, fact in facts_of(lock).items() if key not in (*_OF_THE_WHOLE, "platform")}
        yield from _as_texts(f"{_OURS}.{lock.platform}", own)


def facts_in_metadata(texts: Mapping[str, str], platform: str) -> Mapping[str, object] | None:
    """Return the facts about the whole lock and about ``platform``, or None if another tool wrote the lock."""
    if f"{_OURS}.envsolve_version" not in texts:
        return None
    facts = _under(f"{_OURS}.", texts) | {"platform": platform} | _under(f"{_OURS}.{platform}.", texts)
    return {key: _fact(key, text) for key, text in facts.items()}


def _under(prefix: str, texts: Mapping[str, str]) -> dict[str, str]:
    found = {key.removeprefix(prefix): text for key, text in texts.items() if key.startswith(prefix)}
    return {key: text for key, text in found.items() if "." not in key}


def _fact(key: str, text: str) -> object:
    """The value of a fact. One that a user broke stays a string."""
    if key in _TEXTS or (key not in _NO_TEXT and not text.startswith(("[", "{"))):
        return text
    try:
        return json_value(text)
    except FileError:
        return text


def _as_texts(prefix: str, facts: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    for key, fact in facts.items():
        yield f"{prefix}.{key}", fact if isinstance(fact, str) else json.dumps(fact)
