"""The JSON output of commands, checked against its schema: a key that the schema does not have fails."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from scripts.json_schemas import schema_of

DOCUMENTS_OF: Mapping[str, tuple[str, ...]] = {
    "add": ("lock", "environment"),
    "cache": ("cache-size",),
    "create": ("environment",),
    "detect": ("host",),
    "diff": ("diff",),
    "doctor": ("doctor",),
    "explain": ("explain",),
    "fleet": ("fleet-plan", "fleet-status", "fleet-report", "inventory"),
    "lock": ("lock",),
    "matrix": ("matrix", "matrix-list", "matrix-check", "matrix-update", "toolkits", "cudnn"),
    "remove": ("lock",),
    "solve": ("stack", "answers"),
    "status": ("status",),
    "sync": ("environment",),
    "validate": ("validate",),
}
"""The documents that each command may print. Any may print an error."""


def closed(schema: Any) -> Any:
    """A schema that allows no additional keys."""
    if isinstance(schema, list):
        return [closed(it) for it in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    return {**inner, "additionalProperties": False} if isinstance(schema.get("properties"), dict) else inner


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(closed(schema_of(name)))


def document_name(arguments: Sequence[str], document: Mapping[str, Any]) -> str:
    """The name of the command's document that has the keys of ``document``."""
    command = next((it for it in arguments if it != "--json"), "")
    names = (*DOCUMENTS_OF.get(command, DOCUMENTS_OF["solve"]), "error")
    return next((it for it in names if not set(_root(it)["required"]) - set(document)), names[0])


def _root(name: str) -> Any:
    schema = schema_of(name)
    return schema["$defs"][schema["$ref"].rpartition("/")[2]]


def require_documented(arguments: Sequence[str], out: str) -> None:
    """Fail if the JSON of a command does not match the schema of its document."""
    if not {"--json", "json"} & set(arguments) or not out.startswith("{"):
        return
    document = json.loads(out)
    name = document_name(arguments, document)
    error = best_match(validator(name).iter_errors(document))
    assert error is None, f"{name}: {error.json_path}: {error.message[:500]}"
