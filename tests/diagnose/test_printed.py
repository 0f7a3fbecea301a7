"""Output of frameworks when a probe of ``envsolve validate`` fails, each text with its source."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from envsolve.app.explain.explaining import ExplainRequest, explain

pytestmark = pytest.mark.usefixtures("tables_are_read_once")
FILE = Path(__file__).parent / "printed.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['source']}: {case['text'][:40]}")
def test_a_text_leads_to_its_findings_the_cause_first(case: dict[str, Any]) -> None:
    found = explain(io.BytesIO(case["text"].encode()), ExplainRequest(), {}).findings
    assert [it.id for it in found] == case["findings"]
