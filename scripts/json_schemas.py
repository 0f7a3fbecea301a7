"""The JSON schemas of the documents that commands print, made from the types in envsolve/documents.py.

``python -m scripts.json_schemas`` writes them to docs/schemas. They are of draft 2020-12 and allow further keys,
because a newer envsolve may print more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from envsolve.documents import DOCUMENTS

DIRECTORY = Path(__file__).parents[1] / "docs" / "schemas"
Schema = dict[str, Any]
_SIMPLE: Mapping[Any, Schema] = {
    Any: {},
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
}
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


def schema_of(name: str) -> Schema:
    """The schema of the document ``name`` of :data:`envsolve.documents.DOCUMENTS`."""
    types: dict[str, Schema] = {}
    document = _reference(DOCUMENTS[name], types)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:envsolve:json:{name}",
        **document,
        "$defs": dict(sorted(types.items())),
    }


def schema_text(name: str) -> str:
    """The file of that schema."""
    return json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"


def keys_of(kind: type) -> Iterator[tuple[str, Any, str, bool]]:
    """Each key of a type of documents: its name, the type of its value, its meaning, and whether it is always there."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        is_required = get_origin(hint) is not NotRequired
        annotated = hint if is_required else get_args(hint)[0]
        value, meaning = get_args(annotated)
        yield name, value, meaning, is_required


def _reference(kind: type, types: dict[str, Schema]) -> Schema:
    """A reference to the schema of a type, which is put among ``types``."""
    if kind.__name__ not in types:
        types[kind.__name__] = {}
        keys = list(keys_of(kind))
        types[kind.__name__] = {
            "description": kind.__doc__,
            "type": "object",
            "properties": {name: _described(value, meaning, types) for name, value, meaning, _ in keys},
            "required": [name for name, _, _, is_required in keys if is_required],
        }
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _described(value: Any, meaning: str, types: dict[str, Schema]) -> Schema:
    return {"description": _LINK.sub(r"\1", meaning), **_schema(value, types)}


def _schema(value: Any, types: dict[str, Schema]) -> Schema:
    if is_typeddict(value):
        return _reference(value, types)
    if value in _SIMPLE:
        return dict(_SIMPLE[value])
    origin, arguments = get_origin(value), get_args(value)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], types)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], types)}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(it, types) for it in arguments]}
    raise TypeError(f"no schema for {value}")


def write() -> None:
    """Write every schema."""
    DIRECTORY.mkdir(exist_ok=True)
    for name in DOCUMENTS:
        (DIRECTORY / f"{name}.schema.json").write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    write()
