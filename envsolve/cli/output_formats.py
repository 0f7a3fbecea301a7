"""The result of a check for CI systems and browsers: GitHub annotations, SARIF, Markdown, JUnit and HTML.

A command describes its result once, as an :class:`Outcome`, and all formats are made from that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import quote

import click
from click.core import ParameterSource

from envsolve.boundary.display import one_line
from envsolve.cli.options import option, stacked
from envsolve.cli.output import json_text
from envsolve.errors import UsageError
from envsolve.model.finding import Finding, Severity

FORMATS = ("text", "json", "github", "sarif", "markdown", "junit", "html")
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_MARKDOWN = re.compile(r"([\\`*_\[\]|~#])")
_FENCE = "~~~~"

output_format_options = stacked(
    option(
        "--output-format",
        type=click.Choice(FORMATS),
        help="Print the result for people (text, the default; html), programs, or a CI system.",
    ),
    option("--json", "as_json", is_flag=True, help="Short for --output-format json."),
)


class Level(StrEnum):
    """The severity of an item; SARIF has the same words."""

    ERROR = "error"
    """It makes the command exit with 1."""
    WARNING = "warning"
    NOTE = "note"


class Item(NamedTuple):
    """One message: ``id`` is its kind in kebab-case, ``message`` a sentence, ``fix`` what to do.

    ``file`` is relative to the current directory, ``line`` counts from 1. ``detail`` has further lines.
    """

    level: Level
    id: str
    message: str
    fix: str = ""
    file: str | None = None
    line: int | None = None
    detail: str = ""

    @property
    def text(self) -> str:
        """The whole item, in lines."""
        return "\n".join(filter(None, (self.message, self.detail, self.fix and f"fix: {self.fix}")))


class Case(NamedTuple):
    """One thing that was checked, such as a lock or a probe; it failed if it has an error."""

    name: str
    items: tuple[Item, ...] = ()
    detail: str = ""
    seconds: float = 0.0
    is_skipped: bool = False

    @property
    def errors(self) -> list[Item]:
        """The items that make it fail."""
        return [it for it in self.items if it.level is Level.ERROR]


class Outcome(NamedTuple):
    """The result of a command: ``command`` is its name, ``appendix`` what Markdown shows folded below the items."""

    command: str
    cases: tuple[Case, ...]
    appendix: str = ""

    @property
    def items(self) -> list[Item]:
        """The items of all cases, each once."""
        return list(dict.fromkeys(item for case in self.cases for item in case.items))


def output_format(options: Mapping[str, Any]) -> str:
    """The format from --output-format and --json. Raises UsageError if they contradict each other."""
    named, as_json = options.get("output_format"), options.get("as_json")
    if not as_json or named in (None, "json"):
        return "json" if as_json else named or "text"
    source = click.get_current_context().get_parameter_source
    of_variables = [it for it in ("output_format", "as_json") if source(it) is ParameterSource.ENVIRONMENT]
    if len(of_variables) != 1:
        raise UsageError("contradictory-options", f"--json and --output-format {named} are different outputs")
    return "json" if of_variables == ["output_format"] else str(named)


def finding_item(finding: Finding) -> Item:
    """A finding of doctor or validate as an item."""
    level = {Severity.ERROR: Level.ERROR, Severity.WARNING: Level.WARNING}.get(finding.severity, Level.NOTE)
    lines = [f"cause: {finding.cause}", *(f"seen: {it}" for it in finding.evidence)]
    fix = "\n".join(filter(None, (finding.fix, *(f"  {it}" for it in finding.commands))))
    return Item(level, finding.id, finding.title, fix, detail="\n".join(map(one_line, lines)))


def rendered(outcome: Outcome, format_name: str) -> str:
    """``outcome`` in one of :data:`FORMATS` except text and JSON, which each command writes itself."""
    write: dict[str, Callable[[Outcome], str]] = {
        "github": _github,
        "sarif": _sarif,
        "markdown": _markdown,
        "junit": junit,
        "html": _html,
    }
    return write[format_name](outcome)


def _html(outcome: Outcome) -> str:
    from envsolve.cli.html_reports import outcome_page

    return _plain(outcome_page(outcome))


def _github(outcome: Outcome) -> str:
    """Workflow commands, which the runner shows at the line of a file.

    The escapes are those of the runner's toolkit (actions/toolkit, packages/core/src/command.ts).
    """
    return "".join(f"{_annotation(outcome.command, it)}\n" for it in outcome.items)


def _annotation(command: str, item: Item) -> str:
    kind = "notice" if item.level is Level.NOTE else item.level.value
    place = {} if item.file is None else {"file": PurePath(item.file).as_posix(), "line": item.line}
    properties = {**place, "title": f"{command}: {item.id}"}
    shown = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value is not None)
    return f"::{kind} {shown}::{_data(item.text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(outcome: Outcome) -> str:
    """A log of SARIF 2.1.0 with one run (OASIS, docs.oasis-open.org/sarif/sarif/v2.1.0)."""
    from envsolve import __version__

    ids = list(dict.fromkeys(it.id for it in outcome.items))
    driver = {"name": "envsolve", "version": __version__, "rules": [{"id": it} for it in ids]}
    results = [
        {
            "ruleId": it.id,
            "ruleIndex": ids.index(it.id),
            "level": it.level.value,
            "message": {"text": it.text},
            **({} if it.file is None else {"locations": [{"physicalLocation": _place(it.file, it.line)}]}),
        }
        for it in outcome.items
    ]
    run = {"tool": {"driver": driver}, "automationDetails": {"id": f"{outcome.command}/"}, "results": results}
    document = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json_text(document)


def _place(file: str, line: int | None) -> dict[str, object]:
    place: dict[str, object] = {"artifactLocation": {"uri": quote(PurePath(file).as_posix())}}
    return place if line is None else {**place, "region": {"startLine": line}}


def _markdown(outcome: Outcome) -> str:
    """A comment for a pull request."""
    return "".join(f"{line}\n" for line in _markdown_lines(outcome))


def _markdown_lines(outcome: Outcome) -> Iterator[str]:
    failed = sum(bool(it.errors) for it in outcome.cases)
    yield f"### {outcome.command}: {f'{failed} of {len(outcome.cases)} failed' if failed else 'passed'}"
    yield ""
    plain = [it for it in outcome.cases if not (it.items or it.detail)]
    for case in outcome.cases:
        result = "failed" if case.errors else "skipped" if case.is_skipped else "passed"
        if case not in plain:
            yield f"- {result}: {_cell(case.name)}{f': {_cell(case.detail)}' if case.detail else ''}"
    if plain:
        yield f"- passed: {len(plain)} {'other checks' if len(plain) < len(outcome.cases) else 'checks'}"
    if outcome.items:
        yield from ("", "| | what | fix |", "|---|---|---|")
    for it in outcome.items:
        what = "\n".join(filter(None, (it.message, it.detail)))
        yield f"| {it.level.value} | **{_cell(it.id)}**<br>{_cell(what)} | {_cell(it.fix)} |"
    if outcome.appendix:
        yield from ("", "<details><summary>Details</summary>", "", f"{_FENCE}text")
        yield outcome.appendix.replace(_FENCE, "").rstrip("\n")
        yield from (_FENCE, "", "</details>")


def _cell(text: str) -> str:
    plain = _MARKDOWN.sub(r"\\\1", text).replace("&", "&amp;").replace("<", "&lt;").replace("@", "&#64;")
    return "<br>".join(plain.splitlines())


def junit(outcome: Outcome) -> str:
    """One test case for each thing that was checked; a failed one has its items as failure, any other as output."""
    from xml.etree import ElementTree as ET

    cases = outcome.cases
    suite = ET.Element(
        "testsuite",
        name=outcome.command,
        tests=str(len(cases)),
        failures=str(sum(bool(it.errors) for it in cases)),
        errors="0",
        skipped=str(sum(it.is_skipped for it in cases)),
        time=f"{sum(it.seconds for it in cases):.3f}",
    )
    for it in cases:
        classname = outcome.command.replace(" ", ".")
        case = ET.SubElement(suite, "testcase", classname=classname, name=_plain(it.name), time=f"{it.seconds:.3f}")
        if it.is_skipped:
            ET.SubElement(case, "skipped", message=_plain(it.detail))
        if it.errors:
            failure = ET.SubElement(case, "failure", message=_plain(it.errors[0].message))
            failure.text = _plain("\n\n".join(f"{item.level.value}: {item.id}\n{item.text}" for item in it.items))
        remarks = [] if it.errors else [f"{item.level.value}: {item.id}\n{item.text}" for item in it.items]
        if it.detail or remarks:
            ET.SubElement(case, "system-out").text = _plain("\n\n".join(filter(None, (it.detail, *remarks))))
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


def _plain(text: str) -> str:
    """``text`` without characters that XML and HTML do not allow."""
    return "".join(it if it.isprintable() or it == "\n" else "?" for it in text)
