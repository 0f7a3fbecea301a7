"""The outcomes of the cases, as a short file that a test compares with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import TypedDict

from scripts.channel_trimmer.cases import Case, Outcome, Roots


class Summary(TypedDict, total=False):
    """One outcome: how many records, a hash over their files, and those that were requested by name; or the reason."""

    records: int
    sha256: str
    asked: list[str]
    unsolvable: str


def summary(case: Case, outcome: Outcome) -> Summary:
    """The outcome in short."""
    if not outcome.files:
        return {"unsolvable": outcome.problem.splitlines()[0]}
    names = {spec.split("=")[0].split()[0].rstrip("<>!") for spec in case.specs}
    asked = [file for file in outcome.files if file.rsplit("/", 1)[1].rsplit("-", 2)[0] in names]
    return {
        "records": len(outcome.files),
        "sha256": sha256("\n".join(outcome.files).encode()).hexdigest(),
        "asked": asked,
    }


def as_json(roots: Roots, outcomes: Mapping[str, Outcome]) -> str:
    """All outcomes by the names of their cases."""
    return json.dumps({case.name: summary(case, outcomes[case.name]) for case in roots.cases}, indent=1) + "\n"
