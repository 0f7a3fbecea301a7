"""What a lock may take the place of: files that tools made, and none that somebody wrote by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import tomli

from envsolve.errors import Hint, UsageError
from envsolve.lock import hand_written
from envsolve.lock.hand_written import is_by_hand, is_made_by_tool, refuse_hand_written

CASES = {
    kind: cases
    for name in ("made_by.toml", "by_hand.toml")
    for kind, cases in tomli.loads((Path(__file__).parent / name).read_text(encoding="utf-8")).items()
}


def texts(kind: str) -> list[object]:
    return [pytest.param(case["text"], id=case["by"].replace(" ", "-")) for case in CASES[kind]]


@pytest.mark.parametrize("text", texts("tool"))
def test_what_a_tool_made_may_be_replaced(text: str) -> None:
    assert is_made_by_tool(text)
    assert not is_by_hand(text)


@pytest.mark.parametrize("text", texts("person"))
def test_what_a_person_wrote_stays(text: str) -> None:
    assert is_by_hand(text)


@pytest.mark.parametrize("text", texts("nobody"))
def test_what_asks_for_nothing_is_in_doubt(text: str, tmp_path: Path) -> None:
    assert not is_by_hand(text)
    path = tmp_path / "requirements.txt"
    path.write_text(text)
    refuse_hand_written(path, in_doubt=False)
    with pytest.raises(UsageError, match="by hand"):
        refuse_hand_written(path)


def test_a_file_of_a_person_is_refused_with_the_ways_out(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch>=2\n")
    with pytest.raises(UsageError, match="looks as if somebody wrote it by hand") as refused:
        refuse_hand_written(path, Hint("write another"))
    assert (refused.value.code, refused.value.hints) == ("not-a-lock", (Hint("write another"),))


def test_no_file_is_no_reason(tmp_path: Path) -> None:
    refuse_hand_written(tmp_path / "new.txt")
    refuse_hand_written(tmp_path)
    refuse_hand_written(tmp_path / ("x" * 1000))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refuse_hand_written(tmp_path / "pipe")


@pytest.mark.parametrize("content", [b"\xff\x00\xfe", b"torch\n" * 20])
def test_what_cannot_be_read_as_a_lock_stays(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_written, "LONGEST", 100)
    (tmp_path / "lock").write_bytes(content)
    with pytest.raises(UsageError, match="is no lock that envsolve knows"):
        refuse_hand_written(tmp_path / "lock")


def test_what_windows_powershell_wrote_is_read(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_bytes("numpy==2.1.3\r\n".encode("utf-16"))
    refuse_hand_written(path)
