"""YAML and text from outside: what stays as it is written, and what is refused before it can do harm."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.boundary.files import FileError
from envsolve.lockfile.text_file import shown
from envsolve.lockfile.yaml_document import compose, document_of, items_of, scalar_of, table_of, text_or_none

_BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 10)
)
_MERGED_BOMB = "a0: &a0 {k: v}\n" + "".join(
    f"a{level}: &a{level}\n  <<: [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 10)
)
_REFUSED = {
    "flow": ("[" * 100_000 + "]" * 100_000, None),
    "mappings in flow": ("{a: " * 100_000 + "}" * 100_000, None),
    "block": ("\n".join(" " * depth + "-" for depth in range(3_000)), None),
    "one line": ("- " * 100_000 + "a", None),
    "keys of keys": ("? " * 100_000 + "a", None),
    "aliases": (_BOMB, None),
    "merged": (_MERGED_BOMB, None),
    "itself": ("a: &a [*a]", None),
    "syntax": ("a: b\nc: [d\ne: f\n", 3),
    "tab": ("a:\n\tb: c\n", 2),
    "two documents": ("a: b\n---\nc: d\n", 2),
    "unknown alias": ("a: b\nc: *d\n", 2),
    "control character": ("a: \x01", None),
    "lone surrogate": ("a: \ud800", None),
    "key that is a list": ("a: b\n? [c]\n: d\n", 2),
}


def test_scalars_stay_as_written() -> None:
    document = document_of("[1.10, 2024-01-01, yes, null, 0x10, '1', 3_000, !!int 7, 1e3, ~, {a: }]")
    assert document == ["1.10", "2024-01-01", "yes", "null", "0x10", "1", "3_000", "7", "1e3", "~", {"a": ""}]


def test_aliases_of_a_normal_file_are_expanded() -> None:
    assert document_of("a: &a [x, y]\nb: *a\n") == {"a": ["x", "y"], "b": ["x", "y"]}


def test_an_empty_text_is_no_document() -> None:
    assert document_of("# a comment\n") is None


@pytest.mark.parametrize("name", _REFUSED)
def test_dangerous_yaml_is_refused(name: str) -> None:
    text, line = _REFUSED[name]
    with pytest.raises(FileError) as refused:
        document_of(text)
    assert refused.value.line == line
    assert refused.value.reason.isprintable()


@pytest.mark.parametrize("name", [name for name in _REFUSED if name != "lone surrogate"])
def test_it_is_also_refused_without_the_parser_in_c(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import yaml

    monkeypatch.delattr(yaml, "CBaseLoader")
    with pytest.raises(FileError):
        document_of(_REFUSED[name][0])
    assert document_of("a: [b, 1.10]") == {"a": ["b", "1.10"]}


def test_deep_comments_and_blank_lines_do_not_nest() -> None:
    assert document_of(f"a: b\n{' ' * 300}# far to the right\n{' ' * 300}\nc: d\n") == {"a": "b", "c": "d"}


def test_a_duplicate_key_is_refused_at_its_second_occurrence() -> None:
    node = compose("a: b\nc: d\na: e\n")
    assert node is not None
    with pytest.raises(FileError, match="'a' appears twice") as refused:
        table_of(node, "it")
    assert refused.value.line == 3


def test_the_type_of_a_node_is_checked_with_its_line() -> None:
    node = compose(
        dedent("""\
        list: [a]
        table: {a: b}
        text: "a\\nb"
        nothing: ~
    """)
    )
    assert node is not None
    table = table_of(node, "it")
    assert items_of(table["nothing"], "nothing") == []
    assert table_of(table["nothing"], "nothing") == {}
    assert scalar_of(table["nothing"], "nothing") == ""
    for read, key in ((items_of, "table"), (table_of, "list"), (scalar_of, "list"), (scalar_of, "text")):
        with pytest.raises(FileError) as refused:
            read(table[key], "what is read")
        assert refused.value.line == ["list", "table", "text"].index(key) + 1


def test_a_line_of_text_is_no_longer_than_lines_are() -> None:
    assert text_or_none("a" * 4096, "it") == "a" * 4096
    with pytest.raises(FileError):
        text_or_none("a" * 4097, "it")


_YAML = st.text(st.sampled_from("-?:,[]{}#&*!|>'\"%@` \n\tab0x~\\U\ud800\u2028")) | st.text()


@given(_YAML)
def test_no_text_raises_anything_else(text: str) -> None:
    assert _refusal(text).isprintable()


@given(_YAML)
def test_no_text_raises_anything_else_without_the_parser_in_c(text: str) -> None:
    import yaml

    with pytest.MonkeyPatch.context() as patched:
        patched.delattr(yaml, "CBaseLoader")
        assert _refusal(text).isprintable()


def _refusal(text: str) -> str:
    try:
        document_of(text)
    except FileError as error:
        return error.reason
    return ""


def test_a_quotation_is_short_without_line_breaks_and_credentials() -> None:
    assert shown("numpy\n- other") == r"'numpy\n- other'"
    assert shown("https://user:secret@127.0.0.1/t/secret/channel") == "'https://127.0.0.1/channel'"
    assert len(shown("a" * 10_000)) < 100
