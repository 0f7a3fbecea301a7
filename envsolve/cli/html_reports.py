"""Results as one HTML page in the style of the site: it needs no network, and its policy allows none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from envsolve.site.html import Html, page, tag
from envsolve.site.tables import evidence_list, table

if TYPE_CHECKING:
    from envsolve.app.solve.builds import Build
    from envsolve.cli.output_formats import Case, Item, Outcome


def outcome_page(outcome: Outcome) -> str:
    """The result of a check: what failed first, then everything that was checked."""
    failed = sum(bool(it.errors) for it in outcome.cases)
    verdict = f"{failed} of {len(outcome.cases)} failed" if failed else "passed"
    rows = [(it.name, _result(it), tag("td", it.detail, class_="text")) for it in outcome.cases]
    body: list[Html] = [tag("h1", f"{outcome.command}: {verdict}"), *map(_item, outcome.items)]
    if rows:
        body += [tag("h2", "Checks"), table("What was checked", ("name", "result", "detail"), rows)]
    if outcome.appendix:
        body.append(tag("details", tag("summary", "Details"), tag("pre", outcome.appendix, tabindex="0")))
    return page(f"{outcome.command}: {verdict}", body, up=None)


def _result(case: Case) -> str:
    return "failed" if case.errors else "skipped" if case.is_skipped else "passed"


def _item(it: Item) -> Html:
    place = "" if it.file is None else it.file + ("" if it.line is None else f":{it.line}")
    parts = [tag("h2", f"{it.level.value}: {it.id}"), tag("p", it.message)]
    parts += [tag("p", place, class_="source")] if place else []
    parts += [tag("pre", text, tabindex="0") for text in (it.detail, it.fix) if text]
    return tag("section", *parts, class_="refused" if it.level.value == "error" else "remark")


def overview_page(header: Sequence[str], rows: Iterable[Sequence[str]], here: Sequence[str], date: str) -> str:
    """The frameworks of the matrix, and the builds that were read on this machine."""
    body = [tag("h1", "Compatibility matrix"), table(f"Frameworks on {date}", header, rows)]
    if here:
        body += [tag("h2", "Read on this machine"), tag("ul", *(tag("li", it) for it in here))]
    return page("Compatibility matrix", body, up=None)


def builds_page(header: Sequence[str], rows: Iterable[tuple[Sequence[str], Build]], date: str) -> str:
    """Builds of the matrix, each with the evidence for its row."""
    shown = table(f"Builds on {date}", (*header, "evidence"), _with_evidence(rows))
    return page("Builds", [tag("h1", "Builds"), shown], up=None)


def _with_evidence(rows: Iterable[tuple[Sequence[str], Build]]) -> Iterator[tuple[object, ...]]:
    for cells, build in rows:
        evidence = tag("details", tag("summary", "sources"), evidence_list(build.release.evidence))
        yield (*cells, tag("td", evidence, class_="text"))
