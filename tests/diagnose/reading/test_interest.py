"""The relevant lines, compared with searching line by line."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from envsolve.diagnose.reading import chunks as chunks_module
from envsolve.diagnose.reading import interest as module
from envsolve.diagnose.reading.interest import LAST_LINES, MOST_ALIKE, MOST_LINES, interesting
from envsolve.diagnose.reading.lines import Line, texts_of
from envsolve.diagnose.reading.segments import blocks, segments
from tests.diagnose.reading.logs import ANCHORS, LINES, NEEDLE, counted, log

REPOSITORY = Path(__file__).parents[3]
WORDS = ("cuda", "driver", "error 804", "sm_90", "can't", ".so")
PARTS = st.sampled_from(
    [
        *(b"\n", b"\n", b"\n", b"\r", b"\r\n", b"\n\n", b" ", b"  \n", b"\t", b"text"),
        *(b"cuda", b"CUDA 12", b"cu", b"da", b"driver", b".so", b".SO", b"can", "\u2019t".encode(), b"'t", b"&#39;t"),
        *(b"Error 804", b"error 8", b"03", b"4", b"sm_90", b"sm_", b"80"),
        *(b"\x1b[31m", b"\x1b]0;x\x07", b"\0", b"\xff", b"\x01\x02", "\u6c49".encode()),
        *(b'{"log": "', b"\\n ", b"\\\\", b"C:\\", b'"}', b"&", b";"),
    ]
)
LOGS = st.lists(PARTS, max_size=40).map(b"".join)


def shape(segment: bytes) -> bytes:
    return re.sub(rb"[0-9]", b"0", segment.lower()).replace(b"\t", b" ")


def expected(raw: bytes, words: Sequence[str]) -> list[Line]:
    """As the docstring says, one line at a time without a limit; no line is as wide as a terminal."""
    whole = b"".join(blocks(chunks_module.chunks(io.BytesIO(raw))))
    rows = whole.replace(b"\r\n", b"\n").split(b"\n")
    seen: dict[bytes, set[bytes]] = {}
    lines = []
    for number, segment in counted([whole]):
        shown = seen.setdefault(shape(segment), set())
        if segment in shown or len(shown) == (MOST_ALIKE if b"0" in shape(segment) else 1):
            continue
        after = [text for row in rows[number : number + 5] for part in segments(row) for text in texts_of(part)]
        here = texts_of(segment)
        for part, text in enumerate(here):
            if any(word in text.lower() for word in words):
                shown.add(segment)
                lines.append(Line(number, text, (*here[part + 1 :], *after)[:2]))
    return lines


def read(raw: bytes, words: Sequence[str] = WORDS) -> list[Line]:
    return [it._replace(following=tuple(it.following)) for it in interesting(io.BytesIO(raw), words)]


@given(raw=LOGS)
@example(raw=b"cuda 1\ncuda 2\ncuda 2\ncuda 3\ncuda 4\nCUDA 1")
@example(raw=b".so\n.so\x1b[31m")
@example(raw=b"error 803\nerror 804\nerror 805\nerror 804")
@example(raw=b"\xffcuda\n\xffdriver\n\xffcuda 1\n\xffcuda 2")
def test_they_are_those_that_hold_an_anchor(raw: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_NARROWEST", 1 << 30)
        patch.setattr(module, "_USUAL", ())
        assert read(raw) == expected(raw, WORDS)


@given(raw=LOGS.map(lambda raw: raw.translate(None, b"\xff\x1b\0")), size=st.integers(1, 40))
def test_it_does_not_matter_where_the_log_is_cut(raw: bytes, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks_module, "CHUNK", size)
        found = read(raw)
    wanted = expected(raw, WORDS)
    assert [it[:2] for it in found] == [it[:2] for it in wanted]
    for line, complete in zip(found, wanted, strict=True):
        following = tuple(line.following)
        assert tuple(complete.following)[: len(following)] == following


def test_a_message_is_reported_with_the_lines_after_it() -> None:
    raw = b"The NVIDIA driver\n\n  on your system\n   \nis too old\nand more"
    assert read(raw) == [Line(1, "The NVIDIA driver", ("  on your system", "is too old"))]


def test_following_lines_may_be_in_the_next_block() -> None:
    raw = b"x" * 60 + b"\n" + b"a\n" * (chunks_module.CHUNK // 2 - 40) + b"no driver found\nnext one\n  and one\nlast"
    assert [it.following for it in read(raw)] == [("next one", "  and one")]


def test_a_line_is_reported_once_and_lines_that_differ_in_digits_three_times() -> None:
    raw = (
        b"no driver\n" * 5 + b"".join(b"driver %d of 9\n" % number for number in (1, 1, 2, 2, 3, 4, 5)) + b"NO DRIVER\n"
    )
    assert [it.text for it in read(raw)] == ["no driver", "driver 1 of 9", "driver 2 of 9", "driver 3 of 9"]


def test_lines_that_no_anchor_is_in_do_not_use_up_the_three() -> None:
    raw = b"".join(b"Error 8%02d\n" % number for number in range(100)) * 2
    assert [it.text for it in read(raw, ["error 804", "error 890"])] == ["Error 804", "Error 890"]


@pytest.mark.parametrize("word", ["", "a", "CUDA", "a\nb", "x" * 300, "\x1b["])
def test_unusable_anchors_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match="no anchor"):
        read(b"", ["cuda", word])


def test_without_words_nothing_is_found() -> None:
    assert read(b"a\nb\n" * 1000, []) == []


def test_the_same_anchors_are_found_whatever_a_web_page_and_a_terminal_did() -> None:
    lines = [
        "can\u2019t find libdevice",
        "can&#39;t find libdevice 2",
        "ca\x1b[1mn't fi\x1b[0mnd libdevice 33",
        "can't\u00a0find lib\u200bdevice 444",
    ]
    raw = "\n".join(lines).encode()
    assert [it.text for it in read(raw, ["can't find libdevice"])] == [
        "can't find libdevice",
        "can't find libdevice 2",
        "can't find libdevice 33",
        "can't find libdevice 444",
    ]


def test_a_message_across_the_pieces_of_a_long_line_is_found() -> None:
    for shift in range(0, 4096, 97):
        raw = b"x" * (20_000 + shift) + b" cannot open shared object file " + b"y" * 9000
        assert any("cannot open shared object file" in it.text for it in read(raw, ["cannot open shared object file"]))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", LINES)
def test_the_last_line_of_a_log_of_any_kind_is_found_in_little_memory(kind: str) -> None:
    tracemalloc.start()
    found = {it.text for it in interesting(log(kind, 1 << 20), ANCHORS)}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert NEEDLE in found
    assert peak < 60 << 20


@pytest.mark.thorough
def test_different_lines_are_all_reported_in_order() -> None:
    raw = log("unique", 1 << 19).read()
    texts = raw.decode().splitlines()
    found = read(raw, ANCHORS)
    assert [it.text for it in found] == [text for text in texts if text]
    assert [texts[it.number - 1] for it in found] == [it.text for it in found]


def unlike(count: int) -> bytes:
    """Relevant lines that all differ."""
    letters = "".join(map(chr, range(ord("a"), ord("a") + 16)))
    return b"".join(f"driver {''.join(letters[int(it, 16)] for it in f'{n:x}')}\n".encode() for n in range(count))


@pytest.mark.thorough
def test_the_beginning_and_the_end_of_an_endless_log_are_returned() -> None:
    found = read(unlike(MOST_LINES + LAST_LINES + 502))
    assert [found[place].number for place in (0, MOST_LINES - 1, MOST_LINES, -1)] == [
        1, MOST_LINES, MOST_LINES + 503, MOST_LINES + LAST_LINES + 502,
    ]  # fmt: skip
    assert sum(it.left_out for it in found) == found[MOST_LINES].left_out == 502


@pytest.mark.thorough
def test_a_log_within_the_limit_is_returned_completely() -> None:
    found = read(unlike(MOST_LINES + LAST_LINES))
    assert (len(found), sum(it.left_out for it in found)) == (MOST_LINES + LAST_LINES, 0)


CUT = """\
W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load d
ynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shar
ed object file: No such file or directory
Skipping registering GPU devices...
"""


def test_lines_wrapped_by_a_terminal_are_joined() -> None:
    for number, anchor in ((1, "could not load dynamic library"), (2, "cannot open shared object file")):
        line = read(CUT.strip().encode(), [anchor])[-1]
        assert (line.number, line.text) == (number, CUT.splitlines()[number - 1])
        assert line.whole == "".join(CUT.splitlines()[number - 1 : 3])


def test_a_text_in_json_that_a_terminal_cut_is_read() -> None:
    text = r'{"log": "Traceback:\n  File \"x.py\"\nOSError: libcudart.so.11.0: cannot open shared object file\n"}'
    raw = "\n".join(text[place : place + 80] for place in range(0, len(text), 80))
    assert "OSError: libcudart.so.11.0: cannot open shared object file" in [
        it.text for it in read(raw.encode(), [".so."])
    ]


@given(raw=LOGS)
def test_in_a_narrow_terminal_as_much_is_found(raw: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_NARROWEST", 1)
        narrow = {(it.number, it.text) for it in read(raw)}
        patch.setattr(module, "_NARROWEST", 1 << 30)
        assert {text for _, text in narrow} >= {it.text for it in read(raw)} or b"\\n" in raw


def test_lines_that_happen_to_be_as_wide_are_not_joined() -> None:
    line = "2024-05-01 12:00:00.123456: W dso_loader.cc:64] no driver number {:02}, and so on and so forth and on\n"
    raw = "".join(map(line.format, range(9))) + "the end\n"
    assert [it.whole for it in read(raw.encode())[:2]] == ["", ""]
    assert not any(it.whole for it in read(f"{'x' * 90} driver\n{'y' * 70}\n".encode()))


def test_little_of_an_ordinary_log_is_reported() -> None:
    assert 0 < len(read(log("ordinary", 1 << 20).read(), ANCHORS)) < 10


COST = """
import resource, sys, time
from envsolve.diagnose.reading.interest import interesting
from tests.diagnose.reading.logs import ANCHORS, log
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
made = log(sys.argv[1], 30_000_000)
while made.read(1 << 18):
    pass
making = time.process_time() - start
for _ in interesting(log(sys.argv[1], 30_000_000), ANCHORS):
    pass
print(time.process_time() - start - 2 * making, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("kind", LINES)
def test_thirty_megabytes_take_little_time_and_memory(kind: str) -> None:
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", COST, kind]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    seconds, kibibytes = map(float, done.stdout.split())
    assert seconds < 60
    assert kibibytes < 80_000


def test_reading_a_short_log_loads_nothing_heavy() -> None:
    script = (
        "import io, sys; from envsolve.diagnose.reading.interest import interesting; "
        "next(interesting(io.BytesIO(b'no driver'), ['driver'])); "
        "print(sorted({'html', 'json', 'hypothesis', 'asyncio', 'packaging', 'subprocess'} & set(sys.modules)))"
    )
    environ = {"PYTHONPATH": str(REPOSITORY), "PATH": os.defpath}
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
