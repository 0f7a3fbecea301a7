"""The schema for editors refuses the type mistakes that reading refuses, and accepts all that reading accepts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import tomli
from jsonschema import Draft7Validator, Draft202012Validator

from envsolve.project.json_schema import json_schema, json_schema_text
from envsolve.project.keys import KEYS
from tests.project.test_reading import CASES, WHOLE

FILE = Path(__file__).parents[2] / "docs" / "envsolve.schema.json"
VALIDATORS = [Draft202012Validator, Draft7Validator]
OF_ONE_VALUE_ALONE = (
    "unknown key",
    " is a list ",
    " is a string, ",
    " is true or false",
    " is a table of targets",
    "are one key",
    "is a key of the project, not of a target",
    "the name of a target is",
    "has the keys file and format",
    "host files hold the GPUs",
    "is none of",
    "what is locked is kept",
)
"""The mistakes in mistakes.toml that a schema can detect."""


def table_of(text: str) -> Any:
    return tomli.loads(text)["tool"]["envsolve"]


def keys_of(sentence: str) -> tuple[str, ...]:
    """The key of a mistake, and the tables that contain it."""
    return tuple(sentence.split(": ")[1].removeprefix("tool.envsolve.").split("."))


MISTAKES = [
    pytest.param(case, sentence, id=sentence.split(": ", 1)[1][:60])
    for case in CASES
    for sentence in case["says"]
    if ": tool.envsolve." in sentence and any(it in sentence for it in OF_ONE_VALUE_ALONE)
]


def test_the_file_is_up_to_date() -> None:
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        FILE.write_text(json_schema_text(), encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == json_schema_text()


@pytest.mark.thorough
@pytest.mark.parametrize("validator", VALIDATORS)
def test_it_is_a_schema_in_old_drafts_and_in_new_ones(validator: Any) -> None:
    validator.check_schema(json_schema())


@pytest.mark.parametrize("validator", VALIDATORS)
def test_a_valid_project_is_accepted(validator: Any) -> None:
    validator(json_schema()).validate(table_of(WHOLE))


@pytest.mark.thorough
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_the_example_of_each_key_is_accepted(key: Any) -> None:
    Draft202012Validator(json_schema()).validate(tomli.loads(f"{key.name} = {key.example}"))


@pytest.mark.thorough
@pytest.mark.parametrize("validator", VALIDATORS)
@pytest.mark.parametrize(("case", "sentence"), MISTAKES)
def test_a_mistake_of_type_is_refused(validator: Any, case: dict[str, Any], sentence: str) -> None:
    """Each alone: the table has only the key of that mistake."""
    first, *rest = keys_of(sentence)
    table = table_of(case["text"])
    also = ("gpu", "gpus", "hosts") if first in ("gpus", "hosts") else ()
    alone = {name: it for name, it in table.items() if name in (first, *also)}
    if len(rest) > 1:
        alone = {first: {rest[0]: {rest[1]: table[first][rest[0]][rest[1]]}}}
    assert list(validator(json_schema()).iter_errors(alone)), alone


def test_enough_cases_are_type_mistakes() -> None:
    assert len(MISTAKES) >= 13


def test_it_is_data_without_behaviour() -> None:
    assert json.loads(json_schema_text()) == json_schema()
