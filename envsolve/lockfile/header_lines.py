"""The header lines that are read back, each with one template that both writes and reads it.

An environment.yml and a pixi.toml of a stack have no other place for these facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from envsolve.boundary.display import one_line

_FIELD = r"\{(\w+)\}"
_PHRASES = ("name", "machines", "assumed", "command")
"""Fields that may have more than one word."""


class Line:
    """One or more templates with ``{fields}``, those with more fields first.

    The template whose fields are exactly those given writes a line, or the last one if there is none. The first
    template that matches reads a line.
    """

    def __init__(self, *templates: str) -> None:
        self._templates = templates

    def written(self, **fields: str | None) -> str:
        """Return the line with ``fields``; fields that are None or "" count as not given."""
        given = {name for name, text in fields.items() if text}
        template = next((it for it in self._templates if set(re.findall(_FIELD, it)) == given), self._templates[-1])
        return one_line(template.format_map({name: text or "" for name, text in fields.items()}))

    def read(self, line: str) -> Mapping[str, str] | None:
        """Return the fields in ``line``, or None if it does not match."""
        found = next(filter(None, (form.fullmatch(line.rstrip()) for form in self._forms)), None)
        return None if found is None else found.groupdict()

    def first_in(self, lines: Iterable[str]) -> Mapping[str, str]:
        """Return the fields of the first matching line, or no fields if there is none."""
        return next(filter(None, map(self.read, lines)), {})

    @cached_property
    def _forms(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(_form(it)) for it in self._templates)


def _form(template: str) -> str:
    parts = re.split(_FIELD, template)
    fields = {it: f"(?P<{it}>{'.+' if it in _PHRASES else r'[^ ]+'})" for it in parts[1::2]}
    return "".join(fields[it] if number % 2 else re.escape(it) for number, it in enumerate(parts))


_BY = "# Made by envsolve {version}"
_FROM = f"{_BY} from the compatibility matrix of {{date}}"
MADE_BY = Line(f"{_FROM}:", f"{_BY}:")
_OWN = "with rows that are not shipped:"
_OWN_OF_OLD = "that --matrix gave:"
MADE_BY_OWN_MATRIX = Line(f"{_FROM} {_OWN}", f"{_BY} {_OWN}", f"{_FROM} {_OWN_OF_OLD}", f"{_BY} {_OWN_OF_OLD}")
"""The same if the matrix, or a row of it, is not the one that envsolve ships. It is read first."""
COMMAND = Line("#   {command}")
FOR = Line("# For: {platform}, {machines}", "# For: {platform}")
NEEDS = Line("# Needs: NVIDIA driver {floor} or newer")
RESOLVED_FOR = Line(
    "# Resolved for: Python {python}, {assumed}", "# Resolved for: Python {python}", "# Resolved for: {assumed}"
)
EXPORTED = Line("# Exported from {name} by envsolve")
GPU = Line("{name} ({capability})", "a GPU of {capability}")
"""A GPU in the list of machines, which commas separate."""
