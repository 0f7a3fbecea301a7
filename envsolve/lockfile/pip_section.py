"""The ``pip:`` section of an environment.yml: requirements and options, one to an entry, as in a requirements file.

conda and mamba write the entries to such a file in the folder of the environment.yml and give it to pip, so that what
an entry names as a file is relative to that folder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.text_file import shown
from envsolve.model.package import Hashes
from envsolve.model.reference import editable, is_path
from envsolve.model.requirement_line import hashes_of, parse_hash, without_comment, without_hashes

_LONG_OPTION = re.compile(r"(--[A-Za-z-]+)(?:\s*=\s*|\s+|\Z)(.*)\Z")
_SHORT_OPTION = re.compile(r"(-[A-Za-z])\s*(.*)\Z")
_REQUIREMENT = "requirement"
_KINDS = {
    "-i": "index-url",
    "--index-url": "index-url",
    "--extra-index-url": "extra-index-url",
    "-f": "find-links",
    "--find-links": "find-links",
    "-r": "requirement-file",
    "--requirement": "requirement-file",
    "-c": "constraint-file",
    "--constraint": "constraint-file",
}
_HARMLESS = ("--only-binary", "--prefer-binary", "--require-hashes", "--trusted-host", "--use-feature")
"""What a lock does anyway, or what is about the connection alone."""
_EDITABLE = ("-e", "--editable")


class PipEntry(NamedTuple):
    """One entry: a requirement with the hashes that its file may have, or an option by its kind with its value."""

    kind: str
    value: str
    hashes: Hashes = ()


class PipSection(NamedTuple):
    """What ``pip:`` requires: requirements and the options beside them, without credentials.

    ``find_links``, ``requirement_files`` and ``constraint_files`` are paths from where the command runs; of the first
    some may be addresses. ``index_url`` is None where none is named. ``hashed`` are the requirements that name hashes,
    once for each entry.
    """

    requirements: tuple[str, ...] = ()
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    requirement_files: tuple[str, ...] = ()
    constraint_files: tuple[str, ...] = ()
    hashed: tuple[tuple[str, Hashes], ...] = ()


def pip_entry(text: str, folder: Path) -> PipEntry | None:
    """What an entry says, for a file in ``folder``; None where it says nothing that matters to a lock.

    Raises FileError for what no lock can have.
    """
    written = without_comment(text)
    content = without_hashes(written)
    if not content.isprintable():
        raise FileError(f"{shown(content)} is more than one line")
    if not content.startswith("-"):
        hashes = tuple(dict.fromkeys(_hash(it) for it in hashes_of(written)))
        return PipEntry(_REQUIREMENT, without_secrets(content), hashes) if content else None
    found = _LONG_OPTION.match(content) or _SHORT_OPTION.match(content)
    option, value = (found[1], found[2]) if found else (content, "")
    if option in _EDITABLE:
        return PipEntry(_REQUIREMENT, editable(_below(folder, value)))
    if option in _HARMLESS:
        return None
    if option not in _KINDS:
        raise FileError(f"the pip option {shown(option)} is not supported")
    return PipEntry(_KINDS[option], _value(_KINDS[option], value, folder))


def pip_section(entries: Sequence[PipEntry]) -> PipSection:
    """What ``entries`` say together: each thing once, and of several default indexes the last."""

    def values(kind: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(entry.value for entry in entries if entry.kind == kind))

    return PipSection(
        values(_REQUIREMENT),
        next((entry.value for entry in reversed(entries) if entry.kind == "index-url"), None),
        values("extra-index-url"),
        values("find-links"),
        values("requirement-file"),
        values("constraint-file"),
        tuple(dict.fromkeys((entry.value, entry.hashes) for entry in entries if entry.hashes)),
    )


def _below(folder: Path, value: str) -> str:
    """A path from where the command runs; an address stays."""
    if "://" in value or not value:
        return without_secrets(value)
    path = str(folder / value)
    return path if is_path(path) else f"./{path}"


def _hash(text: str) -> tuple[str, str]:
    try:
        return parse_hash(text)
    except ValueError:
        raise FileError(f"--hash takes an algorithm and a digest, such as sha256:0a1b..., not {shown(text)}") from None


def _value(kind: str, value: str, folder: Path) -> str:
    """What an option names, a path made one from where the command runs."""
    if not value:
        raise FileError("a pip option has no value")
    if "://" not in value and not kind.endswith("index-url"):
        return str(folder / value)
    if kind.endswith("-file"):
        raise FileError(f"{shown(value)} is a URL: download the file and give its path")
    if " " in value:
        raise FileError(f"{shown(value)} is more than one option: write one entry for each")
    return without_secrets(value)
