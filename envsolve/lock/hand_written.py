"""Whether the file that is to be written would take the place of one that somebody wrote by hand.

A tool makes its file again; what a person wrote is nowhere else. So a file that asks for packages, or holds a table of
somebody's settings, may go only where it says that a tool made it, is of the shape of a lock, or names one version of
everything, as ``pip freeze`` and ``conda env export`` do. What it is called does not count, and text that is nothing of
all this is replaced, as by other tools. This module loads little, since most files say at once who made them.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from pathlib import Path

from envsolve.errors import Hint, UsageError
from envsolve.lock.text_file import FileError, read_text

LONGEST = 16 * 1024 * 1024
"""Bytes; what is longer is no lock that envsolve would read."""
BY_FORCE = Hint("or have it replaced: --force")
_MADE = re.compile(
    r"""\#+\s*(?:
        Made\ by\ envsolve\b                                # envsolve.lock.header
        | (?:this\ [^\n]{1,40}?\b(?:is|was)\ )?(?:
            auto-?generated                                 # pip-compile, uv, hatch
            | automatically\ @?generated                    # Poetry, Cargo
            | @?generated\ (?:by|with|from)                 # conda-lock, PDM, Rye
          )\b
        | This\ file\ may\ be\ used\ to\ create\ an\ environment\ using:   # conda list --explicit, --export
    )""",
    re.VERBOSE | re.IGNORECASE,
)
"""How the comments on top of a file say that a tool made it."""
_OF_MERGE = ("<<<<<<<", "|||||||", "=======", ">>>>>>>")
"""Begins the lines that git puts around both sides of a merge."""
_YAML_KEY = re.compile(r"""^(["']?)([\w-]+)\1[ \t]*:""", re.MULTILINE)
_TOML_KEY = re.compile(r"^([\w-]+)[ \t]*=(?!=)", re.MULTILINE)
_TOML_TABLE = re.compile(r"^\[", re.MULTILINE)
_SHAPES = (
    {"lock-version", "created-by"},  # pylock.toml (PEP 751, where both are required)
    {"version", "metadata", "package"},  # conda-lock.yml
    {"version", "environments", "packages"},  # pixi.lock
    {"envsolve_version", "frameworks"},  # envsolve --json
    {"_meta", "default", "develop"},  # Pipfile.lock
)
"""Keys that locks have at the top, and manifests do not."""
_EXPLICIT = re.compile(r"^[ \t]*@EXPLICIT[ \t\r]*$", re.MULTILINE)
_DEPENDENCIES = re.compile(r"^dependencies[ \t]*:", re.MULTILINE)
_TABLE = re.compile(r"""^\[\[?[\w."' -]+\]\]?[ \t\r]*(?:#.*)?$""", re.MULTILINE)
_INSTRUCTION = re.compile(r"^FROM[ \t]+\S", re.MULTILINE)
_SELECTOR = re.compile(r"#[ \t]*\[|\bsel\(")
"""What people write for several platforms; an export is of one."""
_CONDA_PIN = re.compile(r"(?:\S+::)?[\w.-]+(?P<is>==?)(?P<version>[\w.!+]+)(?:=(?P<build>[\w.+]+))?\Z")
_WHOLE_PYTHON = re.compile(r"(?:\S+::)?python==?\d+\.\d+\.\w+")
_HASH = re.compile(r"\s--hash[= ]\w+:")
_COMMENT = re.compile(r"(?:^|\s+)#.*$")
_AT = re.compile(r"[A-Za-z0-9][\w.-]*\s*(?:\[[^\]]*\]\s*)?(?:@\s*\S|===\s*[^\s*]+)")
"""``name @ URL`` and ``name===version``, the latter for a version of no standard form."""
_OPTION = re.compile(
    r"(?:-i|-f|--(?:extra-)?index-url|--find-links|--no-index|--(?:no|only)-binary|--prefer-binary|--pre"
    r"|--require-hashes|--trusted-host|--use-feature)(?:[\s=]|\Z)"
)
"""Options of pip that ask for no package."""
_EDITABLE = re.compile(r"(?:-e|--editable)\s+\w+\+\S+@[0-9a-f]{40}(?:#|\Z)")
_FROZEN_EDITABLE = re.compile(r"##? (?:Editable |!! Could not determine repository location)")
"""What ``pip freeze`` says above a project that is edited (pip/_internal/operations/freeze.py)."""


def refuse_hand_written(path: Path, *ways: Hint, in_doubt: bool = True) -> None:
    """Raise UsageError ``not-a-lock`` where somebody wrote the file at ``path`` by hand, or it is no text.

    What is no file, such as a pipe, holds nothing. ``ways`` are what else could be done. ``in_doubt`` says whether text
    that asks for nothing counts as written by hand, as it does for the outputs of a project.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - no error for a name that is none
        return
    try:
        text = read_text(path, LONGEST) or ""
        stays = not is_made_by_tool(text) if in_doubt else is_by_hand(text)
        told = "looks as if somebody wrote it by hand" if stays else None
    except FileError as error:
        told = f"is no lock that envsolve knows ({error.reason})"
    if told is not None:
        message = f"{path} {told}, and what is written would take its place"
        raise UsageError("not-a-lock", message, hints=ways or (Hint("keep it under another name"), BY_FORCE))


def is_by_hand(text: str) -> bool:
    """Whether a file of this text says what somebody wants, and no tool made it."""
    return not is_made_by_tool(text) and _says_what_is_wanted(text)


def is_made_by_tool(text: str) -> bool:
    """Whether a file of this text can be made again: a tool made it, or there is nothing in it."""
    if not text.strip() or any(map(_MADE.match, _on_top(text))):
        return True
    keys = _top_keys(text)
    if _EXPLICIT.search(text) or any(shape <= keys for shape in _SHAPES):
        return True
    return _is_export(text) if _DEPENDENCIES.search(text) else _is_frozen(text)


def _on_top(text: str) -> Iterator[str]:
    """The comments that a file begins with."""
    for line in text.splitlines():
        if line.startswith("#"):
            yield line
        elif line.strip() not in ("", "---") and not line.startswith(_OF_MERGE):
            return


def _top_keys(text: str) -> set[str]:
    if not text.lstrip().startswith("{"):
        before_tables = _TOML_TABLE.split(text, maxsplit=1)[0]
        return {found[2] for found in _YAML_KEY.finditer(text)} | set(_TOML_KEY.findall(before_tables))
    import json

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return set()
    return set(document) if isinstance(document, dict) else set()


def _says_what_is_wanted(text: str) -> bool:
    """Whether it is an environment.yml, other settings in YAML, TOML or JSON, a Dockerfile or a list of requirements.

    One bare word is no list: what else could hold it cannot be told.
    """
    if _DEPENDENCIES.search(text) or _TABLE.search(text) or _INSTRUCTION.search(text) or len(_top_keys(text)) > 1:
        return True
    if text.lstrip().startswith("{"):
        return bool(_top_keys(text))
    from envsolve.lock.held_pins import joined_lines, name_of

    lines = [content for line in joined_lines(text) if (content := _COMMENT.sub("", line).strip())]
    asked = [line for line in lines if not line.startswith("-")]
    are_names = all(name_of(line) is not None for line in asked)
    return are_names and bool(lines) and (len(lines) > 1 or not lines[0].isidentifier())


def _is_export(text: str) -> bool:
    """Whether an environment.yml names one version of every package, as ``conda env export`` writes it.

    ``name=version`` is what ``--no-builds`` gives, and what people write for all versions that begin so: it counts
    where Python has all its numbers, which is more than anybody has to ask for.
    """
    from envsolve.lock.environment_file import read_entries
    from envsolve.model.host import Platform

    if _SELECTOR.search(text):
        return False
    try:
        entries = read_entries(text, Platform.LINUX_64)
    except FileError:
        return False
    pins = [_CONDA_PIN.match(entry) for entry, _ in entries.conda]
    is_whole = any(_WHOLE_PYTHON.match(entry) for entry, _ in entries.conda)
    is_exact = all(pin is not None and (is_whole or pin["build"] or pin["is"] == "==") for pin in pins)
    return bool(pins) and is_exact and _are_pins([entry for entry, _ in entries.pip])


def _is_frozen(text: str) -> bool:
    """Whether requirements have hashes, or name one version or address each, as ``pip freeze`` writes them."""
    from envsolve.lock.held_pins import joined_lines, name_of

    lines: list[str] = []
    above = ""
    for line in joined_lines(text):
        content = _COMMENT.sub("", line).strip()
        if content and not _FROZEN_EDITABLE.match(above):
            lines.append(content)
        above = line
    asked = [line for line in lines if not _OPTION.match(line)]
    is_hashed = any(map(_HASH.search, asked)) and all(name_of(line) is not None for line in asked)
    return bool(asked) and (is_hashed or _are_pins(asked))


def _are_pins(requirements: list[str]) -> bool:
    from envsolve.lock.held_pins import pin_of

    return all(
        pin_of(it) is not None or _AT.match(it) or _EDITABLE.match(it) or _OPTION.match(it) for it in requirements
    )
