"""Findings in what a framework printed, by the texts of data/findings/frameworks-run.toml.

Where each text was seen is told beside it in tests/validation/cases/symptoms.jsonl.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from envsolve.findings.catalogue import Wording, shipped


class Symptom(NamedTuple):
    """A text, the id of its finding, and a sentence with its groups."""

    finding: str
    pattern: re.Pattern[str]
    told: str = ""


class Sighting(NamedTuple):
    """A symptom in a text: the line it was seen in, cut down around it, and what that line tells."""

    finding: str
    line: str
    told: str


@cache
def symptoms() -> tuple[Symptom, ...]:
    """The texts of the catalogue, the cause of the others first."""
    return tuple(
        Symptom(it.finding, re.compile(_pattern(it), re.IGNORECASE), it.say) for it in shipped().recognised_by_checks
    )


def _pattern(wording: Wording) -> str:
    """With a CUresult that a framework could not name: Error 803 (PyTorch), (803) (TensorFlow), error 803; (JAX)."""
    number = wording.number
    if number is None:
        return wording.pattern
    unnamed = rf"\bError {number}:|unknown (CUDA )?error \(?{number}\b|CUDA (runtime )?error ?\({number}\)"
    return f"{wording.pattern}|{unnamed}"


_HARMLESS = re.compile(r"libnvinfer|TF-TRT|TensorRT|libtpu|Compile with `TORCH_USE_CUDA_DSA`", re.IGNORECASE)
"""Lines that tell of nothing: TensorFlow and ONNX Runtime look for TensorRT and go on without it, PyTorch gives one
piece of advice with every error of CUDA."""

_COLOUR = re.compile(r"\x1b\[[\d;]*m")

LONGEST_LINE = 300
LONGEST_LEAD = 120
"""Characters of a line that are kept, and of those before the symptom."""
WEAK = frozenset({"no-gpu-for-framework", "cudnn-broken", "cublas-broken"})
"""Findings that many things bring about: another one in the same output is the better answer."""


def sightings(text: str) -> tuple[Sighting, ...]:
    """Every finding that ``text`` tells of, once each, the cause of the others first; each line tells of one."""
    lines = [line.strip() for line in _COLOUR.sub("", text).splitlines()]
    lines = [line for line in dict.fromkeys(lines) if line and not _HARMLESS.search(line)]
    found: dict[str, Sighting] = {}
    for symptom in symptoms():
        matches = [(line, match) for line in lines if (match := symptom.pattern.search(line))]
        if matches:
            match = matches[0][1]
            found.setdefault(symptom.finding, Sighting(symptom.finding, _around(match), _filled(symptom, match)))
            lines = [it for it in lines if it not in {line for line, _ in matches}]
    return tuple(found.values())


def _around(match: re.Match[str]) -> str:
    line = match.string
    start = max(0, match.start() - LONGEST_LEAD) if len(line) > LONGEST_LINE else 0
    cut = line[start : start + LONGEST_LINE]
    return ("…" if start else "") + cut + ("…" if start + LONGEST_LINE < len(line) else "")


def _filled(symptom: Symptom, match: re.Match[str]) -> str:
    fields = dict(_fields(match))
    try:
        return symptom.told.format_map(fields)
    except KeyError:  # a group that took no part
        return ""


def _fields(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    for name, value in match.groupdict().items():
        if value is not None:
            yield name, _version(value) if name == "cuda" else value


def _version(number: str) -> str:
    """12.8 of 12080, as CUDA_VERSION in cuda.h counts."""
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}"
