"""``validate`` names what its own probes print in few words; ``explain``, which looks closer, never contradicts it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from envsolve.app.explaining import ExplainRequest, explain
from envsolve.validation.symptoms import sightings

pytestmark = pytest.mark.usefixtures("tables_are_read_once")
FILE = Path(__file__).parent.parent / "validation" / "cases" / "symptoms.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]

NEARER = {
    "cpu-build": {"jax-plugin-failed"},
    "cublas-broken": {"cublas-memory"},
    "cudnn-broken": {"cudnn-other-copy", "cudnn-out-of-memory"},
    "cudnn-version-mismatch": {"cudnn-mixed"},
    "driver-not-initialized": {"forked-cuda"},
    "driver-version-mismatch": {"stale-compat-library"},
    "library-mismatch": {"nccl-too-old"},
    "library-missing": {
        "amd-gpu",
        "cuda-libraries-not-found",
        "cuda-library-missing",
        "cuda-library-of-other-cuda",
        "cudnn-missing",
        "known-broken-release",
    },
    "no-code-for-gpu": {"gpu-too-new-for-build", "gpu-too-old-for-build", "tensorflow-without-blackwell"},
    "no-gpu-for-framework": {"cuda-libraries-not-found", "gpus-hidden"},
}
"""What ``explain`` says more exactly than ``validate`` does."""

OF_FRAMEWORK = {"numpy-mismatch": ("jax",)}
"""Texts that count only beside a framework, which ``validate`` always knows: it ran it."""


@pytest.mark.parametrize("case", [case for case in CASES if case["findings"]], ids=lambda case: case["source"])
def test_explain_says_what_validate_says_or_something_nearer(case: dict[str, str]) -> None:
    known = [sighting.finding for sighting in sightings(case["text"])]
    asked = ExplainRequest(frameworks=OF_FRAMEWORK.get(known[0], ()))
    explained = [finding.id for finding in explain(io.BytesIO(case["text"].encode()), asked, {}).findings]
    assert {known[0], *NEARER.get(known[0], ())}.intersection(explained[:1])
