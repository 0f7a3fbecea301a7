"""The formats envsolve writes, by name and by file name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath

from envsolve.lock.answer import Answer
from envsolve.lock.environment_yml import environment_yml
from envsolve.lock.json_answer import json_answer

FORMATS: Mapping[str, Callable[[Answer], str]] = {"environment": environment_yml, "json": json_answer}

PLANNED_FORMATS = ("requirements", "pylock", "conda-lock", "explicit")
"""Formats of the interface that this version does not write."""

_BY_SUFFIX = {".yml": "environment", ".yaml": "environment", ".json": "json", ".txt": "requirements"}


def write(answer: Answer, format_name: str) -> str:
    """The content of the file in ``format_name``, which must be one of FORMATS."""
    return FORMATS[format_name](answer)


def format_for_file(path: PurePath) -> str | None:
    """The format a file name asks for, or None where it says nothing."""
    name = path.name.casefold()
    if name.startswith("pylock.") and name.endswith(".toml"):
        return "pylock"
    if name.endswith((".conda-lock.yml", "conda-lock.yml")):
        return "conda-lock"
    return _BY_SUFFIX.get(path.suffix.casefold())
