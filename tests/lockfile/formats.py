"""An example for each format of a lock: the name of its file, and one that envsolve did not write.

Tests that hold for every format, or for every one of a kind, take their formats from here and from
:mod:`envsolve.model.lock_format`.
"""

from __future__ import annotations

from typing import NamedTuple

from envsolve.lockfile.formats import write_locks
from envsolve.lockfile.lock import Lock
from envsolve.model.lock_format import FORMATS, SOLVED_FORMATS, FormatKind


class Example(NamedTuple):
    """The usual name of a file in a format, and the content of one that another tool wrote."""

    file: str
    foreign: str


EXAMPLES = {
    "environment": Example("environment.yml", "dependencies:\n  - python=3.12\n"),
    "json": Example("answer.json", '{"mine": true}'),
    "pixi": Example("pixi.toml", '[workspace]\nname = "mine"\n'),
    "requirements": Example("requirements.txt", "torch>=2\n"),
    "pylock": Example("pylock.toml", 'lock-version = "1.0"\ncreated-by = "uv"\npackages = []\n'),
    "dockerfile": Example("Dockerfile", "FROM python:3.12\n"),
    "apptainer": Example("env.def", "Bootstrap: docker\nFrom: python:3.12\n"),
    "conda-lock": Example("conda-lock.yml", "channels: [conda-forge]\npackage: []\n"),
    "explicit": Example("conda-linux-64.lock", "@EXPLICIT\n"),
}
assert tuple(EXAMPLES) == SOLVED_FORMATS

LOCK_FORMATS = tuple(it for it in EXAMPLES if FORMATS[it].kind is not FormatKind.REPORT)
"""Formats that a lock is written as."""


def written(lock: Lock, format_name: str) -> str:
    """The content of a file with ``lock``, as any other command writes it."""
    return write_locks([lock], format_name)
