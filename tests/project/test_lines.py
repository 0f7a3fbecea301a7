"""The line of every key is found, in any TOML syntax."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import tomli
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from envsolve.project.lines import lines_of

TEXT = '''\
# a comment with [a.header] and key = 1
top = 1
"quoted key" = "a # no comment"
'single' = 'it''s'
[a]  # a comment
list = [
    "x]",  # ] and [
    { b = 1 },
    # key = 2
]
long = """
key = 1
[no.header]
"""
after.dotted . deep = true
[a . "b.c"]
raw = \'\'\'
"""
\'\'\'
last = 1
[[array]]
name = 1
[[array]]
name = 2
'''.replace("'it''s'", "'its'")


def test_keys_have_their_lines() -> None:
    tomli.loads(TEXT)
    assert lines_of(TEXT) == {
        ("top",): 2,
        ("quoted key",): 3,
        ("single",): 4,
        ("a",): 5,
        ("a", "list"): 6,
        ("a", "long"): 11,
        ("a", "after", "dotted", "deep"): 15,
        ("a", "b.c"): 16,
        ("a", "b.c", "raw"): 17,
        ("a", "b.c", "last"): 20,
        ("array",): 21,
        ("array", "name"): 22,
    }


KEYS = st.text(min_size=1, max_size=5).filter(lambda it: it.isprintable())
LEAVES = st.one_of(st.text(max_size=20), st.integers(0, 9), st.lists(st.text(max_size=9), max_size=3))
TABLES = st.recursive(
    st.dictionaries(KEYS, LEAVES, max_size=4),
    lambda inner: st.dictionaries(KEYS, st.one_of(LEAVES, inner), max_size=4),
    max_leaves=12,
)


def leaves(table: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


@pytest.mark.thorough
@given(TABLES)
def test_every_key_has_a_line_and_the_line_has_the_key(table: dict[str, Any]) -> None:
    text = tomlkit.dumps(table)
    found = lines_of(text)
    lines = text.split("\n")
    assert set(leaves(tomli.loads(text))) <= set(found)
    for path in leaves(table):
        key, _, _ = lines[found[path] - 1].partition(" = ")
        assert next(iter(tomli.loads(f"{key} = 0"))) == path[-1]
