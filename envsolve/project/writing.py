"""``[tool.envsolve]`` put into a project file: everything else in it, comments included, stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envsolve.errors import Hint, UsageError
from envsolve.project.keys import KEYS
from envsolve.project.reading import PYPROJECT

_ON_ONE_LINE = 3
"""Entries of a list that stand on one line; more get a line each."""


def with_table(path: Path, text: str, values: Mapping[str, object], *, replace: bool) -> str:
    """``text``, the content of ``path``, with ``values`` as what the project asks of envsolve.

    ``values`` are by the names of :data:`~envsolve.project.keys.KEYS`, as TOML has them. ``replace`` takes the place of
    what is there. Raises UsageError ``project-exists`` where there is something and it is not to be replaced,
    ``file-unreadable`` for what is no TOML.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise UsageError("file-unreadable", f"{path} is no TOML: {error}") from None
    is_own = path.name != PYPROJECT
    tool = document if is_own else document.get("tool")
    exists = bool(document) if is_own else tool is not None and "envsolve" in tool
    if exists and not replace:
        what = path.name if is_own else f"{path.name} has a table [tool.envsolve] already"
        raise UsageError(
            "project-exists",
            f"{what} already describes a project" if is_own else what,
            hints=(Hint("lock it", "envsolve lock"), Hint("or write it anew with --force")),
        )
    table = tomlkit.table()
    for name in (name for name in KEYS if name in values):
        table.add(name, _value(values[name]))
    if is_own:
        document = tomlkit.document()
        for name, value in table.items():
            document.add(name, value)
    elif tool is None:
        if text and not text.endswith("\n\n"):
            document.add(tomlkit.nl())
        outer = tomlkit.table(is_super_table=True)
        outer.add("envsolve", table)
        document.add("tool", outer)
    else:
        tool["envsolve"] = table
    return tomlkit.dumps(document)


def _value(value: object) -> Any:
    import tomlkit

    if not isinstance(value, list | tuple):
        return tomlkit.item(value)
    array = tomlkit.array()
    for entry in value:
        array.append(_entry(entry))
    return array.multiline(len(array) > _ON_ONE_LINE)


def _entry(entry: object) -> Any:
    import tomlkit

    if not isinstance(entry, Mapping):
        return entry
    table = tomlkit.inline_table()
    table.update(entry)
    return table
