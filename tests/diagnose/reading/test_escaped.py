r"""Extracting text from JSON without changing paths of Windows."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.diagnose.reading.escaped import unescaped

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1\nOSError: [WinError 126] "C:\\new\\fbgemm.dll"'

ALONE = [
    r'OSError: [WinError 126] Error loading "c:\Users\Noor\anaconda3\envs\DL\lib\site-packages\torch\lib\fbgemm.dll"',
    r"C:\new\numpy\nn",
    r"..\nvidia\nccl\lib",
    r"cannot open D:\nvidia\Nsight\new: No such file",
    r'raise RuntimeError("foo: %s\nbar" % name)',
    r"a single \n in a line",
    r'{"path": "C:\\new\\nvidia"}',
    "no backslash at all",
    "",
]


@pytest.mark.parametrize("line", ALONE)
def test_text_that_is_not_json_is_unchanged(line: str) -> None:
    assert unescaped(line) == [line]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("key", ["log", "message"])
def test_a_traceback_in_json_is_lines_again(key: str, depth: int) -> None:
    text = TRACEBACK
    for _ in range(depth):
        text = json.dumps({key: text})
    lines = unescaped(text)
    assert '  File "x.py", line 1' in lines
    assert any(line.startswith('OSError: [WinError 126] "C:\\new\\fbgemm.dll"') for line in lines)


@pytest.mark.parametrize(
    "line",
    [
        r'{"log":"ImportError: libcudart.so.11.0: cannot open\n","stream":"stderr"}',
        r"b'ImportError: libcudart.so.11.0: cannot open\n'",
        r"{'log': 'ImportError: libcudart.so.11.0: cannot open\n'}",
        r"Traceback (most recent call last):\n  File \"x.py\", line 1\nImportError: libcudart.so.11.0: cannot open",
    ],
)
def test_other_ways_of_writing_it(line: str) -> None:
    assert any(it.endswith("ImportError: libcudart.so.11.0: cannot open") for it in unescaped(line))


def test_colours_in_json_are_there_to_be_removed() -> None:
    assert (
        unescaped(json.dumps({"log": "\x1b[31mError\x1b[0m: no\tdriver\n"}))[0]
        == '{"log": "\x1b[31mError\x1b[0m: no driver'
    )


@given(st.text(alphabet="ab \\nCu0\"'{:", max_size=60))
def test_only_escapes_are_removed(line: str) -> None:
    letters = [it for it in line if it in "abC0{:"]
    remaining = [it for it in "".join(unescaped(line)) if it in "abC0{:"]
    if unescaped(line) == [line]:
        assert remaining == letters
    else:
        assert len(remaining) <= len(letters)
        assert "\n" not in "".join(unescaped(line))
