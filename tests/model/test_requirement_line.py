"""Lines of requirements are those that pip would read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.model.requirement_line import (
    contents_of,
    hashes_of,
    logical_lines,
    parse_hash,
    without_comment,
    without_hashes,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("numpy\n", [(1, "numpy", "")]),
        ("numpy  # why\n\n# alone\n", [(1, "numpy", "# why"), (2, "", ""), (3, "", "# alone")]),
        ("numpy==1.0 \\\n  --hash=sha256:00\n", [(1, "numpy==1.0   --hash=sha256:00", "")]),
        ("numpy \\\n# ends it\npandas", [(1, "numpy", ""), (2, "", "# ends it"), (3, "pandas", "")]),
        ("own @ https://h/a#sha256=00\n", [(1, "own @ https://h/a#sha256=00", "")]),
        ("numpy \\", [(1, "numpy", "")]),
        ("a\u2028b\r\nc", [(1, "a", ""), (2, "b", ""), (3, "c", "")]),
    ],
)  # fmt: skip
def test_a_text_is_parsed_like_by_pip(text: str, expected: list[tuple[int, str, str]]) -> None:
    assert [(it.number, it.content, it.comment) for it in logical_lines(text)] == expected


@settings(deadline=None)  # the first example imports pip
@given(st.text(alphabet="ab#\\ \n\t=-", max_size=40))
def test_lines_are_those_of_pips_own_reader(text: str) -> None:
    pip = pytest.importorskip("pip._internal.req.req_file")
    assert [*contents_of(text)] == [line.strip() for _, line in pip.preprocess(text) if line.strip()]


def test_hashes_are_separate_from_requirements() -> None:
    line = "numpy==1.0 --hash=sha256:00 --hash sha384:0A --hash=sha256:00 # why"
    assert without_hashes(without_comment(line)) == "numpy==1.0"
    assert hashes_of(without_comment(line)) == ("sha256:00", "sha384:0A")
    assert parse_hash("sha384:0A") == ("sha384", "0a")


@pytest.mark.parametrize("text", ["", "sha256", "sha256:", "md5:00", ":00"])
def test_a_hash_that_pip_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--hash takes an algorithm"):
        parse_hash(text)
