"""One field of a TOML file changes; every other byte stays."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from envsolve.matrix import find_matrix
from scripts.matrix_refresh.toml_text import Block, blocks_of, fields_of, inserted, key_text, line_of, with_field

ORDER = ("version", "source", "pythons", "cuda", "sass", "note")
TEXT = """\
# The file's own comment.

schema_version = 1

# Two point x, the last with Python 2.
[[release]]  # the newest
version = "2.0"   # not 2.0.1
source = "pypi"
pythons = [
    "3.9",  # the oldest
    "3.10",
]
# why there is a note
note = "a note"

# a word between the rows

[[release]]
version = "1.0"
"""


@pytest.mark.thorough
@pytest.mark.parametrize("path", sorted(find_matrix().glob("*.toml")), ids=lambda path: path.stem)
def test_the_blocks_of_a_shipped_file_are_the_whole_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "".join(block.text for block in blocks_of(text)) == text


def test_a_comment_on_the_head_of_a_table_belongs_to_it() -> None:
    top, first, second = blocks_of(TEXT)
    assert (top.table, first.table, second.table) == ("", "release", "release")
    assert first.text.startswith("# Two point x, the last with Python 2.\n[[release]]  # the newest\n")
    assert first.text.endswith('note = "a note"\n\n# a word between the rows\n\n')


def test_the_fields_of_a_block_are_the_whole_block() -> None:
    for block in blocks_of(TEXT):
        assert "".join(field.text for field in fields_of(block)) == block.text
    names = [field.name for field in fields_of(blocks_of(TEXT)[1]) if field.name is not None]
    assert names == ["version", "source", "pythons", "note"]


@pytest.mark.parametrize(
    ("name", "value", "old", "new"),
    [
        ("version", "2.1", 'version = "2.0"   # not', 'version = "2.1"   # not'),
        ("cuda", "12.8", "# why there", 'cuda = "12.8"\n# why there'),
        ("sass", ["8.0", "9.0"], "# why there", 'sass = ["8.0", "9.0"]\n# why there'),
        ("source", None, 'source = "pypi"\n', ""),
        ("sass", None, "", ""),
        ("note", 'a "new" one', 'note = "a note"', 'note = "a \\"new\\" one"'),
    ],
)
def test_one_field_changes_and_nothing_else(name: str, value: object, old: str, new: str) -> None:
    block = blocks_of(TEXT)[1]
    assert with_field(block, name, value, ORDER).text == block.text.replace(old, new, 1)


def test_a_list_of_several_lines_is_one_field() -> None:
    block = with_field(blocks_of(TEXT)[1], "pythons", ["3.10"], ORDER)
    assert tomllib.loads(block.text)["release"] == [
        {"version": "2.0", "source": "pypi", "pythons": ["3.10"], "note": "a note"}
    ]


def test_a_row_in_another_order_keeps_it() -> None:
    block = Block("release", '[[release]]\nnote = "n"\nsource = "pypi"\nsass = []\nversion = "2.0"\n')
    assert with_field(block, "cuda", "12.8", ORDER).text == (
        '[[release]]\nnote = "n"\nsource = "pypi"\ncuda = "12.8"\nsass = []\nversion = "2.0"\n'
    )


def test_the_first_field_follows_the_header() -> None:
    block = Block("release", '# a comment\n[[release]]\nnote = "n"\n')
    assert with_field(block, "version", "2.0", ORDER).text == '# a comment\n[[release]]\nversion = "2.0"\nnote = "n"\n'


def test_a_field_after_an_unterminated_last_line_starts_a_new_line() -> None:
    assert with_field(Block("release", '[[release]]\nversion = "2"'), "cuda", "12.8", ORDER).text == (
        '[[release]]\nversion = "2"\ncuda = "12.8"\n'
    )


@pytest.mark.parametrize(
    ("before", "position", "after"),
    [
        (["a = 1\n"], 1, "a = 1\n\n[n]\n"),
        (["a = 1"], 1, "a = 1\n\n[n]\n"),
        (["a = 1\n\n", "[z]\n"], 1, "a = 1\n\n[n]\n\n[z]\n"),
        (["a = 1\n", "[z]\n"], 1, "a = 1\n\n[n]\n\n[z]\n"),
        (["", "[z]\n"], 0, "[n]\n\n[z]\n"),
    ],
)
def test_a_new_table_has_a_blank_line_around_it(before: list[str], position: int, after: str) -> None:
    blocks = inserted([Block("", text) for text in before], position, "n", "[n]\n")
    assert "".join(block.text for block in blocks) == after


def test_a_key_is_quoted_if_necessary() -> None:
    assert key_text("torch-2-9-0") == "torch-2-9-0"
    assert tomllib.loads(line_of("torch 2.9", ["a"])) == {"torch 2.9": ["a"]}
