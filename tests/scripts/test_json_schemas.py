"""The schemas of the JSON of all commands: they are up to date, and match the output of commands."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from envsolve.documents import DOCUMENTS
from scripts.json_schemas import DIRECTORY, schema_of, schema_text, write
from tests.json_documents import DOCUMENTS_OF, closed, require_documented, validator

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"


def test_the_files_are_up_to_date_without_extra_ones() -> None:
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        write()
    files = {path.name: path.read_text(encoding="utf-8") for path in DIRECTORY.iterdir()}
    assert files == {f"{name}.schema.json": schema_text(name) for name in DOCUMENTS}


@pytest.mark.thorough
@pytest.mark.parametrize("name", DOCUMENTS)
def test_it_is_a_schema_of_a_document_with_a_version(name: str) -> None:
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    root = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    assert root["properties"]["schema_version"]["enum"] == [1]
    assert "schema_version" in root["required"]


def test_every_document_is_printed_by_a_command() -> None:
    assert {"error", *(name for names in DOCUMENTS_OF.values() for name in names)} == set(DOCUMENTS)


@pytest.mark.parametrize("path", sorted(SNAPSHOTS.glob("*.json")), ids=lambda it: it.name)
def test_a_snapshot_matches_the_schema(path: Path) -> None:
    require_documented(["--json"], path.read_text(encoding="utf-8"))


def test_an_unknown_key_fails_in_the_strict_schema_and_passes_for_users() -> None:
    size: dict[str, Any] = {"schema_version": 1, "directory": "/", "files": 0, "bytes": 0, "limit": 1}
    for document in (
        size | {"more": 1},
        {key: it for key, it in size.items() if key != "files"},
        size | {"files": "0"},
    ):
        with pytest.raises(AssertionError, match="cache-size"):
            require_documented(["cache", "size", "--json"], json.dumps(document))
    require_documented(["cache", "size", "--json"], json.dumps(size))
    assert Draft202012Validator(schema_of("cache-size")).is_valid(size | {"more": 1})


def test_a_nested_key_is_checked_against_the_schema() -> None:
    answer = json.loads((SNAPSHOTS / "pytorch-gtx-1080-ti.json").read_text(encoding="utf-8"))
    assert validator("stack").is_valid(answer)
    answer["host"]["gpus"][0]["more"] = 1
    assert not validator("stack").is_valid(answer)
    assert closed({"properties": {"properties": {"type": "string"}}})["additionalProperties"] is False
