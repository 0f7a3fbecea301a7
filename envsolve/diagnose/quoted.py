"""Lines of source code that quote a message: what a program may say one day, and not what it has said.

grep, editors and pasted sources show them. A traceback shows one as well, under the frame that raised it; the message
itself follows there, so nothing is lost, and where the text breaks off before it the line stands for it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envsolve.diagnose.case import Sighting

_FOUND_BY_GREP = r"(?:[A-Za-z]:)?[\w./\\+@~-]*\.\w{1,4}[:-]\d{1,6}[:-](?![\d:])\s*"
"""``dso_loader.cc:120:`` before a line, where a compiler would name the column next and a logger a bracket."""
_MARGIN = r"(?:>\s+|-{2,}>\s*)?(?:\d{1,6}[:|]?\s+)?"
"""Pytest's and IPython's marks of the line that ran, and numbers in the margin."""
_CONDITION = r"(?:\}?\s*(?:el)?(?:if|else|except|catch)\b.*[:){]\s+)?"
_RAISES = rf"{_CONDITION}(?:raise|throw)\s+(?:new\s+)?[\w.:]+\(\s*[rbfu]{{0,2}}[\"']"
_ASSERTS = rf"{_CONDITION}assert\b.*,\s*[rbfu]{{0,2}}[\"']"
_SAYS = (
    rf"{_CONDITION}(?:"
    r"\w*LOG\w*\(.*\)\s*<<|(?:std::)?c(?:err|out)\s*<<|"
    r"(?:[\w.]+\.)?(?:warn|warning|error|exception|critical|fatal)\(\s*[rbfu]{0,2}[\"']|"
    r"return\b[^\"']*\(\s*[\"']|"
    r"[A-Z_]*(?:CHECK|ASSERT|ENFORCE)[A-Z_]*\(.*[\"'].*\)\s*;?\s*$)"
)
_ANY_STRING = r"(?:(?:(?:raise|throw|new|return)\s+)*[\w.:>-]+\s*\([^()]*|[rbfu]{0,2})[\"']"
"""Behind the name of a file and a number: a call with a string, or a string alone."""
_SOURCE = re.compile(rf"\s*(?:{_FOUND_BY_GREP}(?:{_CONDITION}{_ANY_STRING}|{_SAYS}|{_ASSERTS})|{_MARGIN}{_SAYS})")
_RAISING = re.compile(rf"\s*{_MARGIN}(?:{_RAISES}|{_ASSERTS})")
_RAN = re.compile(r"\s*(?:>\s|-{2,}>)")


def said(sightings: Sequence[Sighting], frames: Collection[int]) -> Iterator[Sighting]:
    """Those of ``sightings`` that are no quotations. ``frames`` are the numbers of lines with a traceback's frame."""
    plain = {it.symptom for it in sightings if not _quotes(it.line)}
    for it in sightings:
        if not _quotes(it.line) or (it.symptom not in plain and _was_raised(it, frames)):
            yield it


def _quotes(line: str) -> bool:
    return _SOURCE.match(line) is not None or _RAISING.match(line) is not None


def _was_raised(sighting: Sighting, frames: Collection[int]) -> bool:
    """Whether a traceback shows the line as the one that ran: marked, or right under its frame."""
    if _RAISING.match(sighting.line) is None or _SOURCE.match(sighting.line) is not None:
        return False
    return _RAN.match(sighting.line) is not None or bool({sighting.number, sighting.number - 1}.intersection(frames))
