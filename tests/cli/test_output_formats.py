"""One result in the formats of CI systems, and every command that has them."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from envsolve.cli.output_formats import Case, Item, Level, Outcome, rendered
from tests.conftest import Envsolve

_SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
_LOCK = str(_SNAPSHOTS / "pylock.python-lock-rtx-3090.toml")
_OLD_DRIVER = ("--gpu", "8.6", "--driver", "535.183.01", "--platform", "linux-64")
_OUTCOME = Outcome(
    "envsolve status",
    (
        Case("good.txt", detail="runs here"),
        Case("skipped", is_skipped=True, detail="no GPU"),
        Case(
            "bad one.txt",
            (
                Item(Level.ERROR, "does-not-run", "100% of a|b, <c>: no", "Run `x`.\n  x --y", "dir/bad one.txt", 7),
                Item(Level.WARNING, "other", "@someone [reads](it)", detail="because: 1\nbecause: \x1b2"),
                Item(Level.NOTE, "newer-release", "2.0 is newer", file="dir/bad one.txt"),
            ),
            seconds=1.5,
        ),
        Case("quiet"),
    ),
    "all of\n~~~~ it\n",
)
_TEXT = {"type": "string", "minLength": 1}
_PLACE = {
    "type": "object",
    "required": ["physicalLocation"],
    "additionalProperties": False,
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "additionalProperties": False,
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "additionalProperties": False,
                    "properties": {"uri": {"type": "string", "pattern": r"^[^\s\\]+$"}},
                },
                "region": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"startLine": {"type": "integer", "minimum": 1}},
                },
            },
        }
    },
}
_SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"enum": ["2.1.0"]},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "additionalProperties": False,
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "additionalProperties": False,
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "version", "rules"],
                                "additionalProperties": False,
                                "properties": {
                                    "name": _TEXT,
                                    "version": _TEXT,
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "additionalProperties": False,
                                            "properties": {"id": _TEXT},
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "automationDetails": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {"id": _TEXT},
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message", "ruleId", "ruleIndex", "level"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": _TEXT,
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {
                                    "type": "object",
                                    "required": ["text"],
                                    "additionalProperties": False,
                                    "properties": {"text": _TEXT},
                                },
                                "locations": {"type": "array", "items": _PLACE},
                            },
                        },
                    },
                },
            },
        },
    },
}
"""The part of the schema of SARIF 2.1.0 that envsolve uses, and nothing else of it (OASIS, sections 3.13 to 3.29)."""


def _sarif(text: str) -> list[dict[str, Any]]:
    """The results of a log that matches the schema; each names a rule of the run."""
    log = json.loads(text)
    jsonschema.validate(log, _SARIF)
    (run,) = log["runs"]
    rules = [it["id"] for it in run["tool"]["driver"]["rules"]]
    results: list[dict[str, Any]] = run["results"]
    assert all(rules[it["ruleIndex"]] == it["ruleId"] for it in results)
    return results


def _suite(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - our own


def test_annotations_are_escaped_as_the_runner_reads_them() -> None:
    assert rendered(_OUTCOME, "github") == (
        "::error file=dir/bad one.txt,line=7,title=envsolve status%3A does-not-run::"
        "100%25 of a|b, <c>: no%0Afix: Run `x`.%0A  x --y\n"
        "::warning title=envsolve status%3A other::@someone [reads](it)%0Abecause: 1%0Abecause: \x1b2\n"
        "::notice file=dir/bad one.txt,title=envsolve status%3A newer-release::2.0 is newer\n"
    )


def test_no_text_can_create_an_annotation() -> None:
    item = Item(Level.ERROR, "a,b::c\n::error", "x\r\n::set-output name=a::b", file="a,b:c.txt", line=1)
    (line,) = rendered(Outcome("c", (Case("a", (item,)),)), "github").splitlines()
    assert line == (
        "::error file=a%2Cb%3Ac.txt,line=1,title=c%3A a%2Cb%3A%3Ac%0A%3A%3Aerror::x%0D%0A::set-output name=a::b"
    )


def test_sarif_matches_its_schema() -> None:
    first, second, third = _sarif(rendered(_OUTCOME, "sarif"))
    assert [it["level"] for it in (first, second, third)] == ["error", "warning", "note"]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "dir/bad%20one.txt"},
        "region": {"startLine": 7},
    }
    assert "locations" not in second
    assert "region" not in third["locations"][0]["physicalLocation"]


def test_markdown_shows_texts_literally() -> None:
    assert rendered(_OUTCOME, "markdown") == (
        "### envsolve status: 1 of 4 failed\n"
        "\n"
        "- passed: good.txt: runs here\n"
        "- skipped: skipped: no GPU\n"
        "- failed: bad one.txt\n"
        "- passed: 1 other checks\n"
        "\n"
        "| | what | fix |\n"
        "|---|---|---|\n"
        "| error | **does-not-run**<br>100% of a\\|b, &lt;c>: no | Run \\`x\\`.<br>  x --y |\n"
        "| warning | **other**<br>&#64;someone \\[reads\\](it)<br>because: 1<br>because: \x1b2 |  |\n"
        "| note | **newer-release**<br>2.0 is newer |  |\n"
        "\n"
        "<details><summary>Details</summary>\n"
        "\n"
        "~~~~text\n"
        "all of\n"
        " it\n"
        "~~~~\n"
        "\n"
        "</details>\n"
    )


def test_junit_has_a_case_for_every_check() -> None:
    suite = _suite(rendered(_OUTCOME, "junit"))
    counted = {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped", "time")}
    assert counted == {"tests": "4", "failures": "1", "errors": "0", "skipped": "1", "time": "1.500"}
    good, skipped, bad, quiet = suite
    assert [it.tag for it in good] == ["system-out"]
    assert [it.tag for it in skipped] == ["skipped", "system-out"]
    failure = bad.find("failure")
    assert failure is not None
    assert failure.get("message") == "100% of a|b, <c>: no"
    assert "warning: other\n@someone [reads](it)\nbecause: 1\nbecause: ?2" in (failure.text or "")
    assert list(quiet) == []


def test_html_is_one_page_with_every_check_and_loads_nothing() -> None:
    text = rendered(_OUTCOME, "html")

    assert text.startswith("<!doctype html>")
    assert "<h1>envsolve status: 1 of 4 failed</h1>" in text
    assert "100% of a|b, &lt;c&gt;: no" in text
    assert '<section class="refused"><h2>error: does-not-run</h2>' in text
    assert "dir/bad one.txt:7" in text
    assert text.count("<tr>") == 1 + len(_OUTCOME.cases)
    assert "because: ?2" in text
    assert "default-src 'none'" in unescape(text)
    assert not re.search(r"(src|href)=", text)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "code", "ids"),
    [
        (("status", _LOCK, *_OLD_DRIVER), 1, ["does-not-run"]),
        (("diff", str(_SNAPSHOTS / "python-lock-plain.requirements.txt"), _LOCK, "--platform", "linux-64"), 0, None),
        (("doctor", "--no-progress"), None, None),
    ],
)
def test_every_command_has_every_format(
    arguments: tuple[str, ...], code: int | None, ids: list[str] | None, envsolve: Envsolve
) -> None:
    done = {name: envsolve(*arguments, "--output-format", name) for name in ("text", "json", "github", "sarif")}
    done |= {name: envsolve(*arguments, "--output-format", name) for name in ("markdown", "junit", "html")}
    assert len({it.code for it in done.values()}) == 1
    assert code in (None, done["text"].code)
    results = _sarif(done["sarif"].out)
    assert ids is None or [it["ruleId"] for it in results] == ids
    assert done["github"].out.count("::") == 2 * len(results) + done["github"].out.count("%3A%3A")
    assert len(_suite(done["junit"].out)) > 0
    assert done["markdown"].out.startswith(f"### envsolve {arguments[0]}: ")
    assert f"<h1>envsolve {arguments[0]}: " in done["html"].out
    assert json.loads(done["json"].out)["schema_version"] == 1
    assert envsolve(*arguments, "--json").out == done["json"].out or arguments[0] == "doctor"  # which measures
    assert done["text"].out not in {it.out for name, it in done.items() if name != "text"}


def test_a_lock_is_annotated_at_its_framework(envsolve: Envsolve) -> None:
    done = envsolve("status", _LOCK, *_OLD_DRIVER, "--output-format", "github")
    line = next(n for n, it in enumerate(Path(_LOCK).read_text().splitlines(), 1) if it == 'name = "torch"')
    assert done.out.startswith(f"::error file={Path(_LOCK).as_posix()},line={line},title=envsolve status%3A does-not-r")
    assert "%0Abecause: CUDA 13.0 needs NVIDIA driver 580.65.06 or newer" in done.out


@pytest.mark.parametrize(
    ("variable", "value", "options", "is_json"),
    [
        ("ENVSOLVE_OUTPUT_FORMAT", "github", (), False),
        ("ENVSOLVE_OUTPUT_FORMAT", "json", (), True),
        ("ENVSOLVE_OUTPUT_FORMAT", "github", ("--json",), True),
        ("ENVSOLVE_JSON", "1", ("--output-format", "github"), False),
        ("ENVSOLVE_JSON", "1", (), True),
    ],
)
def test_an_option_overrides_a_variable(
    variable: str,
    value: str,
    options: tuple[str, ...],
    is_json: bool,
    envsolve: Envsolve,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, value)
    done = envsolve("status", _LOCK, *_OLD_DRIVER, *options)
    assert done.out.startswith("{" if is_json else "::error ")


def test_an_error_is_json_if_the_format_is_json(envsolve: Envsolve) -> None:
    done = envsolve("diff", "no-file", "--output-format=json")
    assert json.loads(done.out)["error"]["code"] == "no-such-version"
    assert envsolve("diff", "no-file", "--output-format", "sarif").out == ""
