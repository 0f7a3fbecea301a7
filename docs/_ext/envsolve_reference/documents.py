"""The JSON of commands: every schema, and the keys of a type, from the types in envsolve/documents.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

from envsolve import documents
from scripts.json_schemas import keys_of

from .markdown import table

SECTIONS: Mapping[str, str] = {
    "Environment": "an-environment",
    "Finding": "a-finding",
    "Host": "a-machine",
    "Note": "a-note",
    "Release": "builds",
    "Validation": "a-proof",
}
"""The types whose keys have a table of their own, with its section of the page."""


def schemas_table() -> str:
    """Every schema, and what is printed by it."""
    rows = (
        (f"[{name}](../schemas/{name}.schema.json)", kind.__doc__ or "") for name, kind in documents.DOCUMENTS.items()
    )
    return table(("schema", "document"), rows)


def keys_table(name: str) -> str:
    """The keys of a type, with those of the types inside it that have no table of their own, once each."""
    return table(("key", "meaning"), _rows(getattr(documents, name), "", {name, *SECTIONS}))


def _rows(kind: type, path: str, known: set[str]) -> Iterator[tuple[str, str]]:
    for name, value, meaning, is_required in keys_of(kind):
        words = ", ".join(f"`{it}`" for it in _choices(value))
        absent = "" if is_required else " (may be absent)"
        inside = list(_types_in(value, f"{path}{name}"))
        links = "".join(f"; see [its keys](#{SECTIONS[it.__name__]})" for it, _ in inside if it.__name__ in SECTIONS)
        yield f"`{path}{name}`", f"{meaning}{f': {words}' if words else ''}{absent}{links}"
        for it, at in inside:
            if it.__name__ not in known:
                known.add(it.__name__)
                yield from _rows(it, f"{at}.", known)


def _choices(value: Any) -> list[str]:
    if get_origin(value) is Literal:
        return [it for it in get_args(value) if isinstance(it, str)]
    return [word for it in get_args(value) for word in _choices(it)] if get_origin(value) in (Union, UnionType) else []


def _types_in(value: Any, path: str) -> Iterator[tuple[type, str]]:
    """The types of objects in the value at ``path``, each with its own path: ``files[]`` in a list."""
    if is_typeddict(value):
        yield value, path
    for it in get_args(value):
        yield from _types_in(it, f"{path}[]" if get_origin(value) is list else path)
