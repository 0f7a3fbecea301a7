"""Which lines of an environment.yml are for which platform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from envsolve.lockfile.selectors import holds, select
from envsolve.model.host import Platform

_CASES: list[dict[str, Any]] = tomli.loads((Path(__file__).parent / "selectors.toml").read_text(encoding="utf-8"))[
    "selector"
]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["text"])
def test_a_selector_applies_to_its_platforms(case: dict[str, Any]) -> None:
    unknown = case.get("unknown", [] if "holds" in case else list(Platform))
    wanted = {name: None if name in unknown else name in case["holds"] for name in Platform}
    assert {platform: holds(case["text"], platform) for platform in Platform} == wanted


@pytest.mark.parametrize(
    "line",
    [
        "  - numpy  # [win]",
        "  - numpy  #[win]",
        "  - numpy # needed there [win] alone",
        "  - 'numpy >=1'  # [win]",
        '  - "numpy >=1"  # [win]',
        "  - it's  # [win]",
        "  - numpy[version='>=1']  # [win]",
        "  - a#b  # [win]",
        "key: value  # [win]",
    ],
)
def test_a_line_for_another_platform_is_blank_and_the_others_keep_their_numbers(line: str) -> None:
    assert select(f"before\n{line}\nafter", Platform.LINUX_64).text == "before\n\nafter"
    assert select(f"before\r\n{line}\r\nafter", Platform.WIN_64).text == f"before\n{line}\nafter"


@pytest.mark.parametrize(
    "line",
    [
        "  - numpy[version='1 # [win]']",
        "  - 'numpy # [win]'",
        '  - "numpy # [win]"',
        '  - "a \\" # [win]"',
        "  - own @ git+https://127.0.0.1/own#egg=own[win]",
        "  # - numpy  # [win]",
        "  - numpy  # see [the page](https://127.0.0.1/win)",
        "  - numpy  # one of [1, 2]",
        "  - numpy  # [win](https://127.0.0.1)",
        f"  - numpy  # [win] {' ' * 500}",
    ],
)
def test_other_comments_are_not_selectors(line: str) -> None:
    selected = select(line, Platform.LINUX_64)
    assert selected.text == line
    assert selected.unread == ()


def test_an_invalid_selector_keeps_its_line_and_is_reported() -> None:
    text = "- numpy\n- backports  # [py<38]\n- other  # see [1]\n- gpu  # [cuda]"
    selected = select(text, Platform.LINUX_64)
    assert selected.text == text
    assert selected.unread == ((2, "py<38"), (4, "cuda"))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("- pip:  # [win]\n    - a\n    # b\n\n  - c\n- d", "\n\n\n\n\n- d"),
        ("key:  # [win]\n- a\n- b\nother: c", "\n\n\nother: c"),
        ("key:  # [win]\n  a: b\nother:  # [linux]\n  - c", "\n\nother:  # [linux]\n  - c"),
        ("- a: # [win]\n- b", "\n- b"),
        ("text: |  # [win]\n  a\n  b\nother: c", "\n\n\nother: c"),
        ("- a  # [win]\n  - b", "\n  - b"),
    ],
)
def test_a_removed_line_takes_its_nested_lines_along(text: str, left: str) -> None:
    assert select(text, Platform.LINUX_64).text == left


@given(st.text(st.sampled_from("-: #[]()'\"\\\n\tabwinlux")), st.sampled_from(Platform))
def test_lines_are_preserved_or_blank(text: str, platform: Platform) -> None:
    before, after = text.split("\n"), select(text, platform).text.split("\n")
    assert len(before) == len(after)
    assert all(line in ("", original) for line, original in zip(after, before, strict=True))
