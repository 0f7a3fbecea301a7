"""Write ``[tool.envsolve]`` into a project file; all other lines, comments and line ends stay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from envsolve.errors import Hint, UsageError
from envsolve.project.keys import ALIASES, KEYS
from envsolve.project.lines import Statement, statements_of
from envsolve.project.reading import PYPROJECT, TABLE, parsed

_ON_ONE_LINE = 3
"""Lists with up to this number of entries are written on one line; longer ones have one entry per line."""


def with_table(path: Path, text: str, values: Mapping[str, object], *, replace: bool) -> str:
    """Return ``text``, the content of ``path``, with ``values`` as envsolve's settings.

    ``values`` are TOML values by the names in :data:`~envsolve.project.keys.KEYS`. ``replace`` replaces existing
    settings, but comments stay. Raises UsageError ``project-exists`` if there are settings and ``replace`` is false,
    ``file-unreadable`` if the text is not TOML.
    """
    document = parsed(path, text)
    prefix = TABLE if path.name == PYPROJECT else ()
    if not replace and _exists(document, prefix):
        what = (
            f"{path.name} already has a table [tool.envsolve]" if prefix else f"{path.name} already describes a project"
        )
        hints = (Hint("lock it", "envsolve lock"), Hint("or overwrite it with --force"))
        raise UsageError("project-exists", what, hints=hints)
    own = {name: values[name] for name in KEYS if name in values}
    statements = statements_of(text)
    if prefix and any(it.path == prefix[:1] and not it.is_header for it in statements):
        return _within_inline(text, own)
    page = _Page(text, "\r\n" if "\r\n" in text else "\n", prefix, statements)
    return page.replaced(own) if page.has_section else page.with_section(own)


def _exists(document: Mapping[str, Any], prefix: tuple[str, ...]) -> bool:
    tool = document.get("tool")
    return isinstance(tool, dict) and TABLE[-1] in tool if prefix else bool(document)


class _Page(NamedTuple):
    """The text of a file and its statements. ``prefix`` is the path of envsolve's keys in it."""

    text: str
    newline: str
    prefix: tuple[str, ...]
    statements: tuple[Statement, ...]

    @property
    def has_section(self) -> bool:
        """Whether new keys have a place: below a header [tool.envsolve], or in a file of their own."""
        return not self.prefix or any(it.is_header and it.path == self.prefix for it in self.statements)

    def with_section(self, values: Mapping[str, object]) -> str:
        """Return the text without envsolve's keys elsewhere, and with a section with ``values`` at its end."""
        kept = "".join(self._written(it) for it in self.statements if not self._is_own(it))
        if kept and not kept.endswith("\n"):
            kept += self.newline
        gap = self.newline if kept and not kept.endswith(f"{self.newline}{self.newline}") else ""
        lines = (f"[{'.'.join(self.prefix)}]{self.newline}", *(self._line(*it) for it in values.items()))
        return f"{kept}{gap}{''.join(lines)}"

    def replaced(self, values: Mapping[str, object]) -> str:
        """Return the text with ``values`` in the section: each in place of its key, else below the last of its keys."""
        left = dict(values)
        lines: list[str] = []
        place = None
        for it in self.statements:
            depth = len(it.path) - len(self.prefix)
            name = ALIASES.get(it.path[-1], it.path[-1]) if self._is_own(it) and depth == 1 else ""
            if self._is_own(it) and (depth == 0 or (depth == 1 and not it.is_header)):
                place = len(lines) + 1
            if name in left and not it.is_header:
                lines.append(self._line(name, left.pop(name), it.comment))
            else:
                lines.append("" if self._is_own(it) and depth else self._written(it))
        head, tail = "".join(lines[:place]), "".join(lines[place:] if place is not None else ())
        ends = "" if not head or head.endswith("\n") else self.newline
        return "".join((head, ends, *(self._line(*it) for it in left.items()), tail))

    def _is_own(self, statement: Statement) -> bool:
        return bool(statement.path) and statement.path[: len(self.prefix)] == self.prefix

    def _written(self, statement: Statement) -> str:
        return self.text[statement.start : statement.end]

    def _line(self, name: str, value: object, comment: str = "") -> str:
        line = f"{name} = {_value(value)}{f'  {comment}' if comment else ''}\n"
        return line.replace("\n", self.newline)


def _within_inline(text: str, values: Mapping[str, object]) -> str:
    """The text with ``values`` inside ``tool = {...}``, because TOML allows no other table with that name."""
    import tomlkit

    document = tomlkit.parse(text)
    table = tomlkit.inline_table()
    table.update({name: _item(value, lines=False) for name, value in values.items()})
    document["tool"]["envsolve"] = table
    return tomlkit.dumps(document)


def _value(value: object) -> str:
    return str(_item(value).as_string())


def _item(value: object, *, lines: bool = True) -> Any:
    import tomlkit

    if not isinstance(value, list | tuple):
        return tomlkit.item(value)
    array = tomlkit.array()
    for entry in value:
        array.append(_entry(entry))
    return array.multiline(lines and len(array) > _ON_ONE_LINE)


def _entry(entry: object) -> Any:
    import tomlkit

    if not isinstance(entry, Mapping):
        return entry
    table = tomlkit.inline_table()
    table.update(entry)
    return table
