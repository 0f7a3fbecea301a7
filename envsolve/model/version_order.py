"""The order of Python versions as plain tuples, and specifiers as stretches of that order.

A resolver compares versions millions of times: packaging's objects cost 5 microseconds each to make and 4 to test
(measured), a tuple and a bisection cost a tenth. The rules are those of the version specifiers specification
(https://packaging.python.org/specifications/version-specifiers); whatever is out of the ordinary is left to packaging.
"""

from __future__ import annotations

import re
from functools import cache

Key = tuple[int, tuple[int, ...], int, int, int, float, tuple[tuple[int, int, str], ...]]
"""Epoch, release without trailing zeros, phase, number in the phase, post, dev, local. Sorts as versions do."""

Stretch = tuple[Key | None, Key | None]
"""Versions from the first key on (None: from the oldest) up to but not including the second (None: to the newest)."""

_FINAL = re.compile(r"\d+(?:\.\d+)*\Z", re.ASCII)
_COMMON = re.compile(r"(\d+(?:\.\d+)*)(?:(a|b|rc)(\d+)|\.post(\d+)|\.dev(\d+))?\Z", re.ASCII)
"""Nearly all versions there are; packaging reads the others."""
_CLAUSE = re.compile(r"\s*(~=|===|==|!=|<=|>=|<|>)\s*([^\s,;=<>!~][^\s,;]*)\s*\Z")
_LOWEST = -2
"""A phase before every version of a release; dev releases are -1, a b rc 0 to 2, the final release 3."""
_DEV, _PHASES, _FINAL_PHASE = -1, {"a": 0, "b": 1, "rc": 2}, 3
_NO_DEV = float("inf")
_MOST_CHARACTERS = 4000
"""Of a version in a specifier: int refuses longer numbers, for the time they would take."""
_ABOVE_ALL_LOCALS = ((2, 0, ""),)


@cache
def key_of(text: str) -> Key | None:
    """The key of a version as anybody may spell it; None for what is no version (PEP 440)."""
    common = _COMMON.match(text)
    try:
        return _any_key(text) if common is None else _common_key(common)
    except ValueError:  # of packaging, or of int for a number of thousands of digits
        return None


def _any_key(text: str) -> Key:
    from packaging.version import Version

    version = Version(text)
    if version.pre is not None:
        phase, number = _PHASES[version.pre[0]], version.pre[1]
    else:
        phase, number = (_DEV if version.dev is not None and version.post is None else _FINAL_PHASE), 0
    return (
        version.epoch,
        _stripped(version.release),
        phase,
        number,
        -1 if version.post is None else version.post,
        _NO_DEV if version.dev is None else version.dev,
        tuple(_local_part(part) for part in (version.local or "").split(".") if part),
    )


def is_prerelease(key: Key) -> bool:
    """Whether a version is an alpha, a beta, a candidate or a dev release."""
    return key[2] < _FINAL_PHASE or key[5] != _NO_DEV


def _common_key(found: re.Match[str]) -> Key:
    numbers, phase, number, post, dev = found.groups()
    release = tuple(map(int, numbers.split(".")))
    if release[-1] == 0:
        release = _stripped(release)
    if phase is not None:
        return (0, release, _PHASES[phase], int(number), -1, _NO_DEV, ())
    if dev is not None:
        return (0, release, _DEV, 0, -1, int(dev), ())
    return (0, release, _FINAL_PHASE, 0, -1 if post is None else int(post), _NO_DEV, ())


def _stripped(release: tuple[int, ...]) -> tuple[int, ...]:
    end = len(release)
    while end > 1 and release[end - 1] == 0:
        end -= 1
    return release[:end]


def _local_part(part: str) -> tuple[int, int, str]:
    return (1, int(part), "") if part.isdigit() else (0, 0, part)


@cache
def stretches(specifier: str) -> tuple[Stretch, ...] | None:
    """The versions that a specifier such as ``>=1.2,!=1.3.*,<2`` admits, pre-releases included, in ascending order.

    None where it needs packaging itself: arbitrary equality, and a few clauses about post, dev and local releases.
    Raises ValueError where it is no specifier.
    """
    whole: tuple[Stretch, ...] = ((None, None),)
    for clause in filter(None, (part.strip() for part in specifier.split(","))):
        found = _CLAUSE.match(clause)
        if found is None:
            raise ValueError(f"{specifier!r} is not a version specifier")
        admitted = _of_clause(found[1], found[2])
        if admitted is None:
            return None
        whole = _common(whole, admitted)
    return whole


def _of_clause(operator: str, version: str) -> tuple[Stretch, ...] | None:
    if operator == "===":
        return None
    if len(version) > _MOST_CHARACTERS:
        raise ValueError(f"a version of {len(version)} characters")
    if operator in ("==", "!=") and version.endswith(".*"):
        inside = _prefix(version.removesuffix(".*"))
    else:
        key = key_of(version)
        if key is None or (operator not in ("==", "!=") and key[6]):
            return None
        inside = _plain(operator, version, key)
    if inside is None:
        return None
    return _outside(inside) if operator == "!=" else (inside,)


def _plain(operator: str, version: str, key: Key) -> Stretch | None:
    """The stretch of one clause; for ``!=`` the one that it leaves out."""
    if operator in ("==", "!="):
        return key, _next(key) if key[6] else _after_locals(key)
    if operator == "~=":
        return _compatible(version, key)
    if operator in (">=", "<="):
        return (key, None) if operator == ">=" else (None, _after_locals(key))
    return _strict(operator, key)


def _strict(operator: str, key: Key) -> Stretch | None:
    """``<`` leaves out the pre-releases of its version, ``>`` the post-releases and local versions."""
    if key[4] != -1 or key[5] != _NO_DEV or (operator == ">" and key[2] != _FINAL_PHASE):
        return None
    if operator == "<":
        return None, (key[0], key[1], _LOWEST, 0, -1, 0, ()) if key[2] == _FINAL_PHASE else key
    return (key[0], key[1], _FINAL_PHASE + 1, 0, -1, 0, ()), None


def _compatible(version: str, key: Key) -> Stretch | None:
    """``~=2.2`` is ``>=2.2, ==2.*``; it takes at least two parts."""
    release = re.match(r"v?(?:\d+!)?(\d+(?:\.\d+)*)", version)
    if release is None or "." not in release[1]:
        return None
    prefix = _prefix(f"{key[0]}!{release[1].rpartition('.')[0]}")
    return None if prefix is None else (key, prefix[1])


def _prefix(version: str) -> Stretch | None:
    epoch, mark, release = version.rpartition("!")
    if not _FINAL.match(release) or (mark and not epoch.isdigit()):
        return None
    parts = tuple(map(int, release.split(".")))
    number = int(epoch) if mark else 0
    after = (*parts[:-1], parts[-1] + 1)
    return (number, _stripped(parts), _LOWEST, 0, -1, 0, ()), (number, _stripped(after), _LOWEST, 0, -1, 0, ())


def _after_locals(key: Key) -> Key:
    return (*key[:6], _ABOVE_ALL_LOCALS)


def _next(key: Key) -> Key:
    """The first key after that of a version with a local part: no version lies between them."""
    return (*key[:6], (*key[6], (-1, 0, "")))


def _outside(stretch: Stretch) -> tuple[Stretch, ...]:
    return (None, stretch[0]), (stretch[1], None)


def _common(first: tuple[Stretch, ...], second: tuple[Stretch, ...]) -> tuple[Stretch, ...]:
    found = []
    for low, high in first:
        for other_low, other_high in second:
            start = other_low if low is None else low if other_low is None else max(low, other_low)
            end = other_high if high is None else high if other_high is None else min(high, other_high)
            if start is None or end is None or start < end:
                found.append((start, end))
    return tuple(found)
