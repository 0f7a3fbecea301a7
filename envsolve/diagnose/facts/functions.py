"""Functions that conditions may call; a fact that needs no argument is in the module of its subject."""

from __future__ import annotations

import re

from packaging.version import Version

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.model.capability import ComputeCapability
from envsolve.model.versions import CudaVersion


def saw(case: Case, _lines: Lines, *symptoms: str) -> bool:
    """Whether one of ``symptoms`` is in the text, in words or by its number."""
    return case.saw(*symptoms)


def clue(case: Case, _lines: Lines, name: str) -> str | None:
    """The value of a clue, of several in the text the first."""
    return case.clue(name)


def line_has(_case: Case, lines: Lines, pattern: str) -> bool:
    """Whether one of the judged lines matches a regular expression; case does not matter."""
    return any(re.search(pattern, it.line, re.IGNORECASE) for it in lines)


def all_lines_have(_case: Case, lines: Lines, pattern: str) -> bool:
    """Whether all of the judged lines match a regular expression."""
    return all(re.search(pattern, it.line, re.IGNORECASE) for it in lines)


def cuda_version(_case: Case, _lines: Lines, version: str) -> CudaVersion:
    """A version of CUDA to compare with."""
    return CudaVersion.parse(version)


def release(_case: Case, _lines: Lines, version: str) -> Version:
    """A version of a package to compare the ``public`` one of another with."""
    return Version(version)


def compute_capability(_case: Case, _lines: Lines, capability: str) -> ComputeCapability:
    """A compute capability to compare with."""
    return ComputeCapability.parse(capability)


def field_has(_case: Case, lines: Lines, field: str, pattern: str) -> bool:
    """Whether what the judged lines hold in a field matches a regular expression."""
    return re.search(pattern, merged(lines).get(field, ""), re.IGNORECASE) is not None
