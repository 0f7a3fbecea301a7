"""The keys of a project as a JSON schema, with which editors complete and check them.

It declares draft 2020-12, but only uses features with the same meaning since draft 07, because some editors support no
newer one. Checks that need more than a single value (versions, product names, duplicate files) are only made on
reading.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import tomli

from envsolve.project.keys import ALIASES, KEYS, OUTPUT_KEYS, TARGET_KEYS, Key, Kind

Schema = dict[str, Any]
_TARGET_NAME = "^[A-Za-z0-9][A-Za-z0-9_-]*$"
_ID = "urn:envsolve:project"


def json_schema() -> Schema:
    """Return the schema of ``[tool.envsolve]``, which is also that of envsolve.toml."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": _ID,
        "title": "[tool.envsolve]",
        "description": "The settings of envsolve for a project.",
        **_table(KEYS),
    }


def json_schema_text() -> str:
    """Return the content of ``docs/envsolve.schema.json``."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _table(keys: Mapping[str, Key]) -> Schema:
    """A table with these keys, each by name or alias but not both. ``hosts`` excludes gpus and driver."""
    aliases = {alias: name for alias, name in ALIASES.items() if name in keys}
    both = [{"required": list(pair)} for pair in aliases.items()]
    hosts = [{"required": ["hosts", it], "properties": _not_empty("hosts", it)} for it in ("gpus", "gpu", "driver")]
    return {
        "type": "object",
        "properties": {
            **{name: _value(key) for name, key in keys.items()},
            **{alias: _value(keys[name]) for alias, name in aliases.items()},
        },
        "additionalProperties": False,
        "allOf": [{"not": it} for it in (*both, *hosts)],
    }


def _not_empty(*names: str) -> Schema:
    return {name: {"minItems": 1} for name in names}


def _value(key: Key) -> Schema:
    return {"description": key.meaning, **_type(key), "examples": [tomli.loads(f"it = {key.example}")["it"]]}


def _type(key: Key) -> Schema:
    text: Schema = {"type": "string", **({"enum": list(map(str, key.choices))} if key.choices else {})}
    texts = {"type": "array", "items": text, "minItems": 1}
    match key.kind:
        case Kind.TEXT:
            return text
        case Kind.TEXTS:
            return texts
        case Kind.TEXT_OR_TEXTS:
            return {"anyOf": [text, texts]}
        case Kind.FLAG:
            return {"type": "boolean"}
        case Kind.OUTPUTS:
            return {"type": "array", "items": {"anyOf": [text, _output()]}, "minItems": 1}
        case Kind.TARGETS:
            return {
                "type": "object",
                "propertyNames": {"pattern": _TARGET_NAME},
                "additionalProperties": _table(TARGET_KEYS),
            }


def _output() -> Schema:
    file, *_ = OUTPUT_KEYS
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in OUTPUT_KEYS},
        "required": [file],
        "additionalProperties": False,
    }
