"""The facts that envsolve wrote into a file of conda packages, so that a later command can tell what changed.

Their keys are those of :func:`envsolve.lockfile.facts.facts_of`. A conda-lock.yml has them in
``custom_metadata``, which holds texts alone; an explicit file and an environment.yml tell some of them to people, in
the comments on top.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from envsolve.lockfile.conda_lock_file import CondaLockFile
from envsolve.model.host import Platform

_OURS = "envsolve."
_NO_TEXT = ("schema_version", "own_matrix")
"""Facts that are neither a text nor, like all others that are none, a list or a table."""
_MADE_BY = re.compile(
    r"""\#\ Made\ by\ envsolve\ (?P<version>\S+?)
        (?:\ from\ the\ compatibility\ matrix\ of\ (?P<date>\S+?))?(?P<own>\ that\ --matrix\ gave)?:\s*\Z
    """,
    re.VERBOSE,
)
_COMMAND = re.compile(r"#   (.*\S)\s*\Z")
_RESOLVED_FOR = re.compile(r"# Resolved for: (?:Python (?P<python>[0-9.]+)(?:, |\s*\Z))?(?P<virtual>.*)\Z")
_FOR = "# For: "
_CAPABILITY = re.compile(r"(?:\(|\ba GPU of )(\d+\.\d)\b")
_NEEDS = re.compile(r"# Needs: NVIDIA driver ([0-9.]+) or newer")
_HEADER_LINES = 20
_LONGEST_LINE = 4096


def facts_in_metadata(file: CondaLockFile, platform: Platform) -> Mapping[str, object] | None:
    """What a conda-lock.yml records of the whole lock and of ``platform``; None where another tool wrote it.

    A fact is ``envsolve.KEY``, or ``envsolve.PLATFORM.KEY`` where it is one platform's; what is no text is JSON.
    """
    texts = dict(file.custom_metadata)
    if f"{_OURS}envsolve_version" not in texts:
        return None
    facts = _under(_OURS, texts) | {"platform": platform.value} | _under(f"{_OURS}{platform}.", texts)
    hashed = dict(file.content_hash).get(platform)
    return {key: _fact(key, text) for key, text in facts.items()} | ({"content_hash": hashed} if hashed else {})


def facts_in_header(text: str) -> Mapping[str, object] | None:
    """What the comments on top of a file tell; None where another tool wrote it."""
    lines = [line[:_LONGEST_LINE] for line in text.split("\n", _HEADER_LINES)[:_HEADER_LINES]]
    made = _MADE_BY.match(lines[0])
    if made is None:
        return None
    command = _COMMAND.match(lines[1]) if len(lines) > 1 else None
    resolved = next(filter(None, map(_RESOLVED_FOR.match, lines)), None)
    lines_for = next((line for line in lines if line.startswith(_FOR)), "")
    floor = next(filter(None, map(_NEEDS.match, lines)), None)
    virtual = [] if resolved is None else [it.strip() for it in resolved["virtual"].split(", ") if it.startswith("__")]
    facts: dict[str, object] = {
        "envsolve_version": made["version"],
        "command": None if command is None else command[1],
        "matrix_date": made["date"],
        "own_matrix": True if made["own"] else None,
        "python": None if resolved is None else resolved["python"],
        "virtual_packages": virtual or None,
        "compute_capabilities": _CAPABILITY.findall(lines_for) or None,
        "minimum_driver": None if floor is None else floor[1],
    }
    return {key: fact for key, fact in facts.items() if fact is not None}


def _under(prefix: str, texts: Mapping[str, str]) -> dict[str, str]:
    found = {key.removeprefix(prefix): text for key, text in texts.items() if key.startswith(prefix)}
    return {key: text for key, text in found.items() if "." not in key}


def _fact(key: str, text: str) -> object:
    """A fact out of its text; one that people broke stays the text it is."""
    if key not in _NO_TEXT and not text.startswith(("[", "{")):
        return text
    import json

    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found
