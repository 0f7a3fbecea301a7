"""environment.yml as conda, mamba and conda-lock read it: what an environment is asked to hold, for one platform.

CEP 24 has the format and its extensions: ``platforms`` and ``category`` of conda-lock, and selectors of both kinds.
https://conda.org/learn/ceps/cep-0024
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from envsolve.boundary.files import FileError, read_text
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.lock import MAIN, Asked
from envsolve.lockfile.pip_section import EditableError, PipEntry, PipSection, pip_entry, pip_section
from envsolve.lockfile.selectors import holds, select
from envsolve.lockfile.text_file import clean, shown
from envsolve.lockfile.yaml_document import compose, items_of, line_of, scalar_of, table_of
from envsolve.model.host import Platform
from envsolve.model.match_spec import parse_match_spec

if TYPE_CHECKING:
    from yaml import Node

LONGEST = 512 * 1024
"""Bytes; an exported environment of a thousand packages takes a tenth of it."""
_READ = (
    *("name", "channels", "dependencies", "variables", "category", "platforms"),
    *("pip-repositories", "allow-pypi-requests", "prefix"),
)
_NO = ("false", "no", "off", "n")
_NO_DEFAULTS = "nodefaults"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SELECTOR = "sel("


class EnvironmentFile(NamedTuple):
    """What an environment.yml asks for on one platform, without credentials.

    ``asked`` are the match specs in the spelling of :mod:`envsolve.model.match_spec`, then the requirements of ``pip``.
    ``channels`` are in their order, without ``nodefaults``; names of variables stand in them as written. ``variables``
    are set in the environment. ``platforms`` are those the file is meant for, none where it does not say. ``notes`` are
    sentences about what was left out. ``logins`` are the channels that need one, with the address as it was written: it
    is for asking the channel, and for nothing else.
    """

    name: str | None
    channels: tuple[str, ...]
    asked: tuple[Asked, ...]
    pip: PipSection = PipSection()
    variables: tuple[tuple[str, str], ...] = ()
    category: str = MAIN
    platforms: tuple[Platform, ...] = ()
    notes: tuple[str, ...] = ()
    logins: tuple[tuple[str, str], ...] = ()


class Entries(NamedTuple):
    """What stands in an environment.yml for one platform, as text with the line of each.

    ``table`` are the nodes at the top by key, ``unread`` the selectors that cannot be answered.
    """

    table: dict[str, Node]
    conda: tuple[tuple[str, int], ...]
    pip: tuple[tuple[str, int], ...]
    unread: tuple[tuple[int, str], ...]


def read_environment(path: Path, platform: Platform, text: str | None = None) -> EnvironmentFile:
    """What the environment.yml at ``path`` asks for on ``platform``; with ``text`` it is not opened.

    Raises UsageError ``environment-invalid`` with the line where something cannot be read, and
    ``editable-not-supported`` for a project that is being edited.
    """
    try:
        written = read_text(path, LONGEST) if text is None else text
        if written is None:
            raise FileError("there is no such file")
        return _environment(path, read_entries(written, platform))
    except EditableError as error:
        hint = Hint("lock the requirements of that project instead, and install it afterwards with --no-deps")
        raise UsageError("editable-not-supported", f"{error.at(path)}: {error.reason}", hints=(hint,)) from None
    except FileError as error:
        raise UsageError("environment-invalid", f"{error.at(path)}: {error.reason}") from None


def read_entries(text: str, platform: Platform) -> Entries:
    """What stands in ``text``, whatever it says. Raises FileError where it is no environment.yml."""
    if len(text) > LONGEST:
        raise FileError(f"it is longer than {LONGEST // 1024} KiB")
    selected = select(text, platform)
    root = compose(selected.text)
    if root is None:
        raise FileError("it is empty")
    table = table_of(root, "it")
    if "dependencies" not in table:
        raise FileError("it has no dependencies, which every environment.yml lists")
    conda: list[tuple[str, int]] = []
    pip: list[tuple[str, int]] = []
    for item in items_of(table["dependencies"], "dependencies"):
        if isinstance(item.value, str):
            conda.append((scalar_of(item, "a dependency"), line_of(item)))
            continue
        for key, value in table_of(item, "a dependency").items():
            if key == "pip":
                pip += [(scalar_of(entry, "an entry of pip"), line_of(entry)) for entry in items_of(value, "pip")]
            elif _is_selected(key, line_of(item), platform):
                conda.append((scalar_of(value, key), line_of(value)))
    return Entries(table, _filled(conda), _filled(pip), selected.unread)


def _filled(entries: list[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple(entry for entry in entries if entry[0])


def _is_selected(key: str, line: int, platform: Platform) -> bool:
    """Whether ``sel(win)`` and its like are for ``platform``; raises FileError for any other section."""
    if not (key.startswith(_SELECTOR) and key.endswith(")")):
        hint = "a package goes on one line, as in - python=3.11; of sections envsolve knows pip alone"
        raise FileError(f"{shown(key)} is no section of dependencies: {hint}", line)
    answer = holds(key[len(_SELECTOR) : -1], platform)
    if answer is None:
        raise FileError(f"{shown(key)} is no selector that envsolve can answer", line)
    return answer


def _environment(path: Path, entries: Entries) -> EnvironmentFile:
    table = entries.table
    category = _text(table, "category") or MAIN
    channels, left_out, logins = _channels(table)
    pip = pip_section([*_repositories(table), *_pip_entries(entries, path.parent)])
    specs = dict.fromkeys(_spec(text, line) for text, line in entries.conda)
    reason = f"{path.name} asks for it"
    asked = [Asked(spec, reason, category) for spec in specs]
    if pip.requirements and not any(parse_match_spec(spec).name == "pip" for spec in specs):
        asked.append(Asked("pip", f"{path.name} has requirements that it installs", category))
    platforms, others = _platforms(table)
    return EnvironmentFile(
        _text(table, "name") or None,
        channels,
        (*asked, *(Asked(requirement, reason, category, by_pip=True) for requirement in pip.requirements)),
        pip,
        _variables(table),
        category,
        platforms,
        (*left_out, *others, *_notes(entries)),
        logins,
    )


def _spec(text: str, line: int) -> str:
    try:
        return str(parse_match_spec(text))
    except ValueError as error:
        raise FileError(f"{shown(text)} is nothing that conda can be asked for: {clean(str(error))}", line) from None


def _pip_entries(entries: Entries, folder: Path) -> Iterator[PipEntry]:
    for text, line in entries.pip:
        try:
            entry = pip_entry(text, folder)
        except FileError as error:
            error.line = line
            raise
        if entry is not None:
            yield entry


def _repositories(table: dict[str, Node]) -> Iterator[PipEntry]:
    """conda-lock's own keys for package indexes."""
    node = table.get("pip-repositories")
    alone = _text(table, "allow-pypi-requests").lower() in _NO
    for position, item in enumerate([] if node is None else items_of(node, "pip-repositories")):
        kind = "index-url" if alone and position == 0 else "extra-index-url"
        yield PipEntry(kind, without_secrets(scalar_of(item, "an index")))


def _text(table: dict[str, Node], key: str) -> str:
    return scalar_of(table[key], key) if key in table else ""


def _channels(table: dict[str, Node]) -> tuple[tuple[str, ...], list[str], tuple[tuple[str, str], ...]]:
    """The channels, a note for each that had credentials, and the addresses with these."""
    channels: dict[str, None] = {}
    notes: list[str] = []
    logins: dict[str, str] = {}
    for item in items_of(table["channels"], "channels") if "channels" in table else ():
        written = _channel(item)
        channel = without_secrets(written)
        if channel != written:
            notes.append(f"line {line_of(item)}: the credentials for {channel} are left out")
            logins[channel] = written
        if channel and channel != _NO_DEFAULTS:
            channels[channel] = None
    return tuple(channels), notes, tuple(logins.items())


def _channel(item: Node) -> str:
    """A channel by its name or address, or with them under a key, as conda-lock and pixi write one."""
    if isinstance(item.value, str):
        return scalar_of(item, "a channel").strip()
    table = table_of(item, "a channel")
    node = table.get("url") or table.get("channel")
    if node is None:
        raise FileError("a channel has neither a name nor an address", line_of(item))
    return scalar_of(node, "a channel").strip()


def _variables(table: dict[str, Node]) -> tuple[tuple[str, str], ...]:
    if "variables" not in table:
        return ()
    found = table_of(table["variables"], "variables")
    for name, node in found.items():
        if not _VARIABLE.match(name):
            raise FileError(f"{shown(name)} is no name of a variable", line_of(node))
    texts = {name: scalar_of(node, f"the variable {name}") for name, node in found.items()}
    return tuple((name, without_secrets(text)) for name, text in texts.items())


def _platforms(table: dict[str, Node]) -> tuple[tuple[Platform, ...], list[str]]:
    """The platforms that envsolve knows, and a note for each other one."""
    known: dict[Platform, None] = {}
    notes: list[str] = []
    for item in items_of(table["platforms"], "platforms") if "platforms" in table else ():
        name = scalar_of(item, "a platform")
        if name in tuple(Platform):
            known[Platform(name)] = None
        elif name:
            notes.append(f"line {line_of(item)}: envsolve makes no lock for the platform {shown(name)}")
    return tuple(known), notes


def _notes(entries: Entries) -> Iterator[str]:
    variables = entries.table["variables"].value if "variables" in entries.table else ()
    texts = [*entries.pip, *((node.value, line_of(node)) for _, node in variables)]
    for text, line in texts:
        if without_secrets(text) != text:
            yield f"line {line}: the credentials in {shown(text)} are left out"
    for line, selector in entries.unread:
        yield f"line {line}: {shown(selector)} is no selector that envsolve can answer, and the line counts"
    for key, node in entries.table.items():
        if key not in _READ:
            yield f"line {line_of(node)}: {shown(key)} is nothing that envsolve reads"
