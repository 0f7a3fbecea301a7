"""Settings are written into a project file as given, and everything else in it is unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli
import tomlkit
from hypothesis import given

from envsolve.project.lines import statements_of
from envsolve.project.writing import with_table
from tests.project.test_lines import TABLES, TEXT

VALUES: dict[str, Any] = {
    "frameworks": ["pytorch", "jax", "cupy", "tensorflow"],
    "python": ">=3.11",
    "outputs": ["pylock.toml", {"file": "gpu.lock", "format": "explicit"}],
}
NAMES = ("pyproject.toml", "envsolve.toml")


def written(text: str, name: str = NAMES[0]) -> str:
    return with_table(Path(name), text, VALUES, replace=True)


def without_project(document: dict[str, Any]) -> dict[str, Any]:
    tool = {key: it for key, it in document.get("tool", {}).items() if key != "envsolve"}
    rest = {key: it for key, it in document.items() if key != "tool"}
    return {**rest, "tool": tool} if tool else rest


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# ours",
        '[project]\nname = "x"',
        "tool = { ruff = { line-length = 99 } }\n",
        'tool = { ruff = { a = 1 }, envsolve = { python = "3" } }\nx = 1\n',
        '[tool]\nenvsolve = { python = "3" }\nruff.a = 1\n[z]\na = 1\n',
        '[tool]\nenvsolve.python = "3"\nenvsolve.cuda = "12"\nruff.a = 1\n',
        'tool.envsolve.python = "3"\ntool.ruff.a = 1\n',
        'tool.ruff.a = 1\nx = """\n[tool.envsolve]\n"""\n',
        '[tool.envsolve]\npython = "3"\n[tool.ruff]\na = 1\n[tool.envsolve.targets.a]\ngpus = ["A100"]\n[z]\nb = 1\n',
        '[tool.envsolve.targets.a]\ngpus = ["A100"]\n[tool.ruff]\na = 1\n[tool.envsolve]\ncuda = "12"\n[z]\nb = 1\n',
        '[tool.envsolve.targets]\na.gpus = ["A100"]\n[tool.ruff]\na = 1\n',
        '[tool."envsolve"]\ngpu = "auto"\nframework = ["jax"]\n',
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_the_table_has_the_values_and_the_rest_is_unchanged(text: str, newline: str) -> None:
    found = written(text.replace("\n", newline))
    document = tomli.loads(found)
    assert document["tool"]["envsolve"] == VALUES
    assert without_project(document) == without_project(tomli.loads(text))
    if "\n" in text and not text.startswith("tool = {"):
        assert found.count(newline) == found.count("\n")
    assert written(found) == found


COMMENTED = """\
# whose it is
[tool.envsolve]  # the project
# which Python
python = "3.10"  # as on the cluster
cuda = "12"

# about ruff
[tool.ruff]
line-length = 99
[tool.envsolve.targets.a]
gpus = [
    "A100",
]
# about the rest
[z]
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_comments_stay(newline: str) -> None:
    found = written(COMMENTED.replace("\n", newline))
    assert found == (
        """\
# whose it is
[tool.envsolve]  # the project
# which Python
python = ">=3.11"  # as on the cluster
frameworks = [
    "pytorch",
    "jax",
    "cupy",
    "tensorflow",
]
outputs = ["pylock.toml", {file = "gpu.lock", format = "explicit"}]

# about ruff
[tool.ruff]
line-length = 99
# about the rest
[z]
""".replace("\n", newline)
    )


@pytest.mark.parametrize("text", ["# ours\n\n", '# ours\ncuda = "12" # old\n# end', "# ours\n[targets.a]\ngpus = []\n"])
def test_a_file_of_its_own_is_replaced_except_comments(text: str) -> None:
    found = written(text, "envsolve.toml")
    assert tomli.loads(found) == VALUES
    assert found.startswith("# ours\n")
    assert ("# end" in found) == ("# end" in text)


@given(TABLES)
def test_arbitrary_content_is_preserved(table: dict[str, Any]) -> None:
    table.pop("tool", None)
    text = tomlkit.dumps(table)
    found = written(text)
    assert found.startswith(text)
    assert tomli.loads(found) == {**table, "tool": {"envsolve": VALUES}}


@pytest.mark.thorough
@given(TABLES)
def test_statements_cover_the_whole_text(table: dict[str, Any]) -> None:
    for text in (tomlkit.dumps(table), TEXT):
        assert "".join(text[it.start : it.end] for it in statements_of(text)) == text
