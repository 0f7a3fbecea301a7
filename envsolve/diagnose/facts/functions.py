"""Functions that conditions may call; a fact that needs no argument is in the module of its subject."""

from __future__ import annotations

import re

from packaging.version import Version

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.diagnose.facts.shared.gpu_code import first_field
from envsolve.diagnose.facts.shared.gpu_packages import is_of_gpus, version_of_package
from envsolve.findings.catalogue import shipped
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


def all_have(_case: Case, lines: Lines, *fields: str) -> bool:
    """Whether each of the judged lines has one of the fields."""
    return all(any(map(it.get, fields)) for it in lines)


def also(case: Case, lines: Lines, *symptoms: str) -> bool:
    """Whether a judged line shows one of ``symptoms`` as well."""
    return not {it.number for it in case.of(*symptoms)}.isdisjoint(it.number for it in lines)


def seen(case: Case, _lines: Lines, symptom: str, *fields: str) -> str | None:
    """What the lines of a symptom anywhere in the text hold in the first of the fields that one has."""
    return first_field(case.of(symptom), *fields)


def seen_without(case: Case, _lines: Lines, symptom: str, *fields: str) -> bool:
    """Whether a line of a symptom has none of the fields."""
    return any(not any(map(it.get, fields)) for it in case.of(symptom))


def seen_with(case: Case, lines: Lines, symptom: str, pattern: str) -> str | None:
    """What a regular expression matches in a line of a symptom, anywhere in the text."""
    return next(filter(None, (group(case, lines, pattern, it.line) for it in case.of(symptom))), None)


def clue_like(case: Case, _lines: Lines, name: str, pattern: str) -> str | None:
    """The first value of a clue that matches a regular expression."""
    return next((it for it in case.every(name) if re.search(pattern, it, re.IGNORECASE)), None)


def group(_case: Case, _lines: Lines, pattern: str, text: object) -> str | None:
    """What the first group of a regular expression matches in a value, or all of it; None if it does not match."""
    match = None if text is None else re.search(pattern, str(text), re.IGNORECASE)
    return None if match is None else next(filter(None, match.groups()), match[0])


def key_of(_case: Case, _lines: Lines, name: str, word: object) -> str | None:
    """The first key of a table of ``facts.toml`` among whose words is ``word``."""
    return next((key for key, words in shipped().table(name).items() if word in str(words).split()), None)


def table(_case: Case, _lines: Lines, name: str, key: object) -> str | None:
    """A value of a table of ``facts.toml``; None if it does not have the key."""
    found = shipped().table(name).get(str(key))
    return None if found is None else str(found)


def version_of(case: Case, _lines: Lines, framework: str) -> str | None:
    """The installed version of a framework, by envsolve's name, local part included."""
    return case.version_of(framework) or None


def cuda_of(case: Case, _lines: Lines, framework: str) -> CudaVersion | None:
    """The CUDA that a framework was built with."""
    return case.cuda_of(framework)


def installed_version(case: Case, _lines: Lines, package: str | None) -> str | None:
    """The installed version of a package."""
    return version_of_package(case, package)


def lists(case: Case, _lines: Lines, pattern: str) -> bool:
    """Whether a package whose name matches a regular expression is installed."""
    return any(re.fullmatch(pattern, name) for name in case.packages)


def for_gpus(_case: Case, _lines: Lines, package: str | None) -> bool:
    """Whether a package is built for CUDA, or belongs to what is."""
    return package is not None and is_of_gpus(package)
