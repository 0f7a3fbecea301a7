"""Links between the pages of the repository have targets, as a reader of the repository follows them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.thorough
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_has_a_target(page: Path) -> None:
    linked = _LINK.findall(page.read_text(encoding="utf-8"))
    assert [it for it in linked if not (page.parent / it).exists()] == []


@pytest.mark.parametrize("name", ["SECURITY.md", "docs/threats.md"])
def test_every_test_cited_as_evidence_exists(name: str) -> None:
    named = re.findall(r"`(tests/[\w./]+)`", (ROOT / name).read_text(encoding="utf-8"))
    assert named
    assert [it for it in named if not (ROOT / it).exists()] == []
