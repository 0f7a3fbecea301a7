"""Lines of envsolve in a file of the user, and the file without them."""

from __future__ import annotations

import pytest

from envsolve.model.own_lines import OWN, without_own_lines


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_marked_lines_are_removed_and_others_stay(end: str) -> None:
    own, other = f"a = 1  {OWN}", f"b = 2  {OWN} too"
    assert without_own_lines(end.join((own, other, f"  c  {OWN}", "d", own))) == end.join((other, "d", ""))


def test_a_text_without_marked_lines_is_unchanged() -> None:
    assert without_own_lines("a = 1\n# by envsolver\n") == "a = 1\n# by envsolver\n"
