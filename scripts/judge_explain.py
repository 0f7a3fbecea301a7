#!/usr/bin/env python3
"""Judge the answers of `envsolve explain` by hand, one case after the other, and count.

    .venv-test/bin/python scripts/judge_explain.py CASES VERDICTS
    .venv-test/bin/python scripts/judge_explain.py CASES VERDICTS --figures

CASES is a directory of logs such as tests/symptoms, or a file with one JSON object per line: `id`, `text`, and
optionally `url` and `cause`, which is what the thread found. Each answer is for the text alone, as printed by default.
A verdict is stored in VERDICTS with the digest of its answer: an answer that changes is judged again.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import click
import tomli

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from envsolve.app.explain.explaining import ExplainRequest, explain  # noqa: E402
from envsolve.cli.finding_text import finding_lines  # noqa: E402

VERDICTS = {
    "r": "right",  # the cause is the thread's, and the fix works as it stands
    "h": "half",  # the cause is right, and the fix is not; or it is right below a wrong first one
    "m": "missed",  # no known error, and there was one
    "w": "wrong",  # another cause is stated
}
_LONGEST = 60
"""Lines of a text that are shown, from its end."""


class Case(NamedTuple):
    """A text to explain, where it is from, and the cause that its thread found."""

    id: str
    text: str
    url: str
    cause: str


def cases_in(path: Path) -> Iterator[Case]:
    """The cases of a directory of logs, or of a file of JSON lines."""
    if path.is_dir():
        for file in sorted(path.rglob("*.toml")):
            log = tomli.loads(file.read_text(encoding="utf-8"))
            name = file.relative_to(path).with_suffix("").as_posix()
            yield Case(name, log["text"], log["source"], ", ".join(log["findings"]))
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield Case(row["id"], row["text"], row.get("url", ""), row.get("cause", ""))


def answer_to(text: str) -> str:
    """The output of `envsolve explain` for a text without further facts."""
    findings = explain(io.BytesIO(text.encode()), ExplainRequest(), {}).findings
    lines = [line for finding in findings for line in (*finding_lines(finding, full=False, plain=True), "")]
    return "\n".join(lines) or "no known GPU environment error found in this text\n"


def read_verdicts(path: Path) -> dict[str, Mapping[str, str]]:
    """The last verdict on each case."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {row["id"]: row for row in map(json.loads, lines)}


def figures(cases: list[Case], verdicts: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """The number of answers for each verdict, and of answers that are not judged in their current form."""
    judged = Counter(verdicts[it.id]["verdict"] for it in cases if it.id in verdicts)
    total = sum(judged.values())
    for verdict in VERDICTS.values():
        yield f"{verdict:<8}{judged[verdict]:>5}{judged[verdict] / total:>8.1%}" if total else f"{verdict:<8}    0"
    changed = sum(it.id in verdicts and verdicts[it.id]["answer"] != digest(answer_to(it.text)) for it in cases)
    yield f"not judged: {len(cases) - total} of {len(cases)}; changed since they were judged: {changed}"


def digest(answer: str) -> str:
    """The digest of an answer in the file of verdicts."""
    return hashlib.sha256(answer.encode()).hexdigest()[:16]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("cases", type=click.Path(path_type=Path, exists=True))
@click.argument("verdicts", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--figures", "only_figures", is_flag=True, help="Print the figures instead of asking.")
def main(cases: Path, verdicts: Path, only_figures: bool) -> None:
    """Judge the answers to CASES by hand; verdicts are added to VERDICTS."""
    every, known = list(cases_in(cases)), read_verdicts(verdicts)
    if only_figures:
        click.echo("\n".join(figures(every, known)))
        return
    for number, case in enumerate(every, 1):
        answer = answer_to(case.text)
        if case.id in known and known[case.id]["answer"] == digest(answer):
            continue
        text = "\n".join(case.text.splitlines()[-_LONGEST:])
        click.echo(
            f"\n=== {number} of {len(every)}: {case.id}  {case.url}\n{text}\n---\n{answer}--- cause: {case.cause}"
        )
        choices = [*VERDICTS, "s", "q"]
        key = click.prompt("right, half, missed, wrong, skip or quit", type=click.Choice(choices))
        if key == "q":
            return
        if key != "s":
            note = click.prompt("why", default="", show_default=False)
            row = {"id": case.id, "verdict": VERDICTS[key], "answer": digest(answer), "note": note}
            with verdicts.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
