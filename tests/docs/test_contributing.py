"""CONTRIBUTING.md explains few words, in the modules that it names."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = re.findall(
    r"^\| ([a-z ]+) \| [^|]+ \| `([^`]+)` \|$", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE
)


def test_at_most_thirty_without_duplicates() -> None:
    terms = [term for term, _ in WORDS]
    assert 20 < len(terms) <= 30
    assert len(set(terms)) == len(terms)


def test_each_is_explained_in_a_module() -> None:
    for term, module in WORDS:
        place = ROOT / "envsolve" / module
        texts = [it.read_text("utf-8") for it in ([place] if place.is_file() else place.glob("*.py"))]
        assert any(term in text.lower() for text in texts), (term, module)
