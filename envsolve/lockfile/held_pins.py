"""What a Python lock holds that is there already, whoever wrote it: envsolve, pip-tools, uv, pip or PDM.

Only exact pins count. People edit requirements files by hand: a range, an option or a line that is not understood
holds nothing, and nothing of it is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from envsolve.boundary.files import FileError, read_text
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.dockerfile_file import SYNTAX, is_dockerfile, requirements_in
from envsolve.lockfile.own_file import LONGEST
from envsolve.lockfile.python_lock import FACTS_TABLE
from envsolve.model.names import normalized
from envsolve.model.requirement_line import hashes_of, logical_lines

_REQUIREMENT = re.compile(
    r"""([A-Za-z0-9][A-Za-z0-9._-]*)    # name
        \s*(?:\[[^\]]*\])?              # extras
        \s*==(?!=)\s*([A-Za-z0-9][A-Za-z0-9.!+_-]*)
        \s*(?:;(.*?))?                  # marker
        ((?:\s+--hash[=\s]\S+)*)\s*\Z   # hashes
    """,
    re.VERBOSE,
)
_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:[\[(<>=!~;@]|\Z)")
_FROM = re.compile(r"\s*# from (\S+)\s*\Z")
"""How uv, asked to, and envsolve name the index of the pin above."""


class HeldPin(NamedTuple):
    """One exact pin: normalized name, version as written, hashes as ``sha256:0a...``, sorted.

    ``index_url`` is where it is from, None where the file does not say.
    """

    name: str
    version: str
    hashes: tuple[str, ...] = ()
    index_url: str | None = None


def read_pins(path: Path, environment: Mapping[str, str] | None = None) -> tuple[HeldPin, ...]:
    """The pins of the lock at ``path``, in its order; none where there is no file yet.

    A file whose name ends in ``.toml`` is read as pylock.toml, a Dockerfile by the requirements in it, any other as
    requirements. ``environment`` holds the values of markers: what they leave out there is left out. Without it a name
    may come more than once, for a lock that holds several environments.

    Raises UsageError ``held-unreadable`` where there is a file that cannot be read.
    """
    text = _text_of(path)
    if text is None:
        return ()
    pins = _of_pylock(path, text) if _is_toml(path) else _of_requirements(_requirements(path, text))
    return tuple(pin for pin, marker in pins if environment is None or not marker or _applies(marker, environment))


def read_recorded(path: Path) -> Mapping[str, object] | None:
    """The facts that envsolve recorded in the lock at ``path``; None where there is no file, or none of envsolve.

    Raises UsageError ``held-unreadable`` where there is a file that cannot be read.
    """
    text = _text_of(path)
    if text is None:
        return None
    document = _parsed(path, text if _is_toml(path) else "\n".join(_recorded_lines(text)))
    try:
        facts = document.get("tool", {}).get("envsolve")
    except AttributeError:
        raise _unreadable(path, "what it records of envsolve is no table") from None
    return facts if isinstance(facts, dict) else None


def pin_of(requirement: str) -> tuple[HeldPin, str] | None:
    """The pin in one line of requirements, with its marker; None where it pins nothing."""
    found = _REQUIREMENT.match(requirement)
    if found is None:
        return None
    name, version, marker, hashes = found.groups()
    return HeldPin(normalized(name), version, tuple(sorted(hashes_of(hashes)))), (marker or "").strip()


def read_unpinned(path: Path) -> tuple[str, ...]:
    """The normalized names that the requirements at ``path`` ask for in no one version; a pylock.toml has none.

    Raises UsageError ``held-unreadable`` where there is a file that cannot be read.
    """
    text = None if _is_toml(path) else _text_of(path)
    lines = logical_lines(_requirements(path, text or ""))
    names = (name_of(it.content) for it in lines if pin_of(it.content) is None)
    return tuple(name for name in names if name is not None)


def name_of(requirement: str) -> str | None:
    """The normalized name in one line of requirements; None for an option, a path or an address alone."""
    found = _NAME.match(requirement)
    return None if found is None else normalized(found[1])


def _text_of(path: Path) -> str | None:
    """What a file holds; None where there is none, or nothing in it."""
    try:
        text = read_text(path, LONGEST)
    except FileError as error:
        raise _unreadable(path, error.reason) from None
    return text if text and text.strip() else None


def _is_toml(path: Path) -> bool:
    return path.suffix.casefold() == ".toml"


def _requirements(path: Path, text: str) -> str:
    """The requirements in the file at ``path``, which is made of them or a Dockerfile with a here-document of them."""
    if not text or not (is_dockerfile(path.name) or text.startswith(SYNTAX)):
        return text
    found = requirements_in(text)
    if found is None:
        raise _unreadable(path, "it is a Dockerfile without requirements of envsolve in it")
    return found


def _parsed(path: Path, text: str) -> dict[str, Any]:
    import tomli

    try:
        return tomli.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, f"it is not TOML: {error}") from None


def _unreadable(path: Path, reason: str) -> UsageError:
    hint = Hint("move the file away, or give -o the lock of an earlier answer")
    return UsageError("held-unreadable", f"cannot read {path}: {reason}", hints=(hint,))


def _recorded_lines(text: str) -> Iterator[str]:
    """The table of facts in the header, out of its comments; only there, as anything may stand further down."""
    inside = False
    for line in text.splitlines():
        if not line.startswith("#"):
            return
        inside = inside or line.rstrip() == f"# {FACTS_TABLE}"
        if inside:
            yield line.removeprefix("#").removeprefix(" ")


def _applies(marker: str, environment: Mapping[str, str]) -> bool:
    from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

    values: dict[str, str | frozenset[str]] = {
        **environment,
        "extras": frozenset(),
        "dependency_groups": frozenset(),
    }
    try:
        return Marker(marker).evaluate(values, context="lock_file")
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName):
        return False


def _of_requirements(text: str) -> Iterator[tuple[HeldPin, str]]:
    """Each pin with its marker. What an index annotation below it says is known only at the next requirement."""
    found: tuple[HeldPin, str] | None = None
    for _, content, comment in logical_lines(text):
        index = None if content else _FROM.match(comment)
        if index is not None and found is not None:
            found = found[0]._replace(index_url=index[1]), found[1]
        if content:
            if found is not None:
                yield found
            found = pin_of(content)
    if found is not None:
        yield found


def _of_pylock(path: Path, text: str) -> Iterator[tuple[HeldPin, str]]:
    document = _parsed(path, text)
    try:
        for package in document["packages"]:
            if "version" in package and ("wheels" in package or "sdist" in package):
                yield _package(package), package.get("marker", "")
    except (KeyError, TypeError, AttributeError, ValueError):
        raise _unreadable(path, "it is TOML, but no pylock.toml") from None


def _package(package: Mapping[str, Any]) -> HeldPin:
    """One entry; any error of a wrong shape is the caller's to name."""
    files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else [])]
    hashes = {f"{algorithm}:{digest}" for file in files for algorithm, digest in file["hashes"].items()}
    pin = HeldPin(package["name"], package["version"], tuple(sorted(hashes)), package.get("index"))
    words = (pin.name, pin.version, pin.index_url or "", package.get("marker", ""))
    if not all(isinstance(word, str) for word in words):
        raise TypeError(package["name"])
    return pin._replace(name=normalized(pin.name))
