"""Answers to real logs, and laws of the tables behind them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from envsolve.diagnose.reading.cleaning import cleaned
from envsolve.diagnose.reading.prefixes import without_prefixes
from envsolve.diagnose.scan import anchors_of
from envsolve.diagnose.tables import Tables
from envsolve.findings.catalogue import shipped
from envsolve.model.finding import Finding, PossibleCause
from tests.diagnose.symptom_logs import SymptomLog, symptom_logs

pytestmark = pytest.mark.usefixtures("tables_are_read_once")
LOGS = symptom_logs()
TABLES = Tables()
TEXTS = (*TABLES.texts, *TABLES.clues)


MOST_WORDS = 80
"""Of an answer as it is printed by default: title, cause, fix and commands of one cause."""

LINES = tuple(dict.fromkeys(line for log in LOGS for line in log.text.splitlines()))
"""Every line of every log, once."""


@pytest.mark.thorough
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_a_real_log_gets_its_findings(log: SymptomLog) -> None:
    explained = log.explained()
    answer = json.dumps([finding.as_json() for finding in explained.findings], ensure_ascii=False).lower()
    assert [finding.id for finding in explained.findings] == list(log.findings)
    assert [word for word in log.says if word.lower() not in answer] == []
    assert [word for word in log.never if word.lower() in answer] == []
    lines = [" ".join(without_prefixes(cleaned(line)).split()) for line in log.text.splitlines()]
    text = " ".join(" ".join(lines).split()) + "".join(lines)
    for finding in explained.findings:
        assert finding.evidence, finding.id
        assert finding.cause, finding.id
        assert finding.fix, finding.id
        assert [line for line in finding.evidence if line.rstrip("…") not in text and "***" not in line] == []
        assert [it for it in _words_by_cause(finding) if it[1] > MOST_WORDS] == []
        assert [*_refuted(finding)] == []


@pytest.mark.thorough
def test_every_symptom_has_a_real_log() -> None:
    lines = [line for log in LOGS for line in _joined(log.text)]
    unseen = {
        name
        for name, symptom in TABLES.symptoms.items()
        if not any(text.expression.search(line) for text in symptom.texts for line in lines)
    }
    assert unseen == set()


def test_logs_say_where_they_are_from() -> None:
    assert [log.name for log in LOGS if not re.match(r"https?://", log.source)] == []


def test_a_wording_has_a_source_and_anchors() -> None:
    for text in TEXTS:
        assert re.match(r"https?://", text.source), text
        assert text.anchors, text
        assert all(anchor == anchor.lower() and anchor.isascii() for anchor in text.anchors), text


@pytest.mark.thorough  # every wording on every line of every log
def test_a_wording_cannot_do_without_its_anchors() -> None:
    lower = [line.lower() for line in LINES]
    for text in TEXTS:
        without = [line for line, low in zip(LINES, lower, strict=True) if not any(map(low.__contains__, text.anchors))]
        assert [line for line in without if text.expression.search(line)] == [], text


@pytest.mark.thorough
def test_every_finding_is_used() -> None:
    without_rule = (symptom for name, symptom in TABLES.symptoms.items() if name not in shipped().rules)
    named = {name for symptom in without_rule for name in symptom.explains}
    branches = (branch for symptom in shipped().rules if (rule := shipped().rule(symptom)) for branch in rule.branches)
    named |= {cause.id for branch in (*branches, *shipped().choices) for cause in branch.causes}
    assert {name for name in named if not name.startswith("@")} == set(shipped().of_texts)


NO_LOG_FOUND = {
    "cudnn-dropped-gpu",
    "cudnn-gpu-too-old",
    "driver-too-old-for-gpu",
    "gpudirect-module-not-built",
    "harmless-advice",
    "uuid-not-there",
    "wheel-on-release-page",
    "zlib-missing-on-linux",
    "xla-before-blackwell",
}
"""Findings for which we know of no public log; the tests of rules have a case for each."""


@pytest.mark.thorough  # every log once more
def test_every_finding_of_the_catalogue_is_shown_by_a_real_log() -> None:
    found = [finding for log in LOGS for finding in log.explained().findings]
    shown = {finding.id for finding in found} | {it.id for finding in found for it in finding.possible_causes}
    unseen = {name for name in shipped().of_texts if not {name, shipped().entry(name).finding} & shown}
    assert unseen == NO_LOG_FOUND


def test_findings_out_of_scope_say_so() -> None:
    entries = [shipped().entry(name) for name in shipped().of_texts]
    texts = {it.id: " ".join(sentence.text for sentence in (*it.cause, *it.more)) for it in entries if not it.in_scope}
    assert [
        name for name, text in texts.items() if not re.search(r"not an environment|not a version|unrelated to", text)
    ] == []


def test_anchors_are_few_enough_to_look_for() -> None:
    assert len(anchors_of(TABLES)) < 1600


def test_anchors_are_rare_in_numbers_and_digests() -> None:
    assert [it for it in anchors_of(TABLES) if re.fullmatch(r"[0-9a-f. ]{1,2}", it)] == []


def _words_by_cause(finding: Finding) -> Iterator[tuple[str, int]]:
    """Each cause of a finding that an answer may print in full, and the number of its words."""
    causes: list[Finding | PossibleCause] = [finding, *finding.possible_causes[1:]]
    for it in causes:
        yield it.id, len(" ".join((it.title, it.cause, it.fix, *it.commands)).split())


def _refuted(finding: Finding) -> Iterator[str]:
    """Causes that state a limit beside a value within it: wheels for Python 3.9 to 3.13 only, and Python 3.11."""
    causes: list[Finding | PossibleCause] = [finding, *finding.possible_causes]
    for it in causes:
        words = f"{it.title} {it.cause}"
        pythons = re.search(r"wheels for Python 3\.(\d+) to 3\.(\d+) only.*Python 3\.(\d+)", words)
        code = re.search(r"has compute capability ([\d.]+\d).*code for compute capability ([\d., and]+) only", words)
        if pythons is not None and int(pythons[1]) <= int(pythons[3]) <= int(pythons[2]):
            yield words
        if code is not None and code[1] in re.findall(r"\d+\.\d", code[2]):
            yield words


def _joined(text: str) -> list[str]:
    """Every line, alone and with the two after it."""
    lines = [line.strip() for line in text.splitlines()]
    return [*lines, *(" ".join(lines[number : number + 3]) for number in range(len(lines)))]
