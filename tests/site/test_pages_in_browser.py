"""The pages in a real browser, of a small matrix: their look at three widths, and keyboard and touch.

Every machine has other fonts and another Chromium, so that no two take the same picture. The pictures are for people;
the outline that was read beside each is compared: which blocks are visible, in which rows and columns they stand, and
their colours. It says nothing of words and fonts. ``ENVSOLVE_UPDATE_SNAPSHOTS=1`` takes both again: look at them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.thorough
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed")

PICTURES = Path(__file__).parent / "pictures"
WIDTHS = (360, 768, 1280)
HEIGHT = 900
HEAVIEST = 200_000
"""Bytes of a picture."""
STATES = {
    "answer": ("index.html#gpu=GeForce+RTX+5090&driver=575&platform=linux-64&manager=conda&framework=thing", "light"),
    "refused": ("index.html#gpu=NVIDIA+A100&driver=520&platform=linux-64&manager=pip&framework=thing", "dark"),
    "grid": ("framework/thing.html", "light"),
}
NEAR = 4
"""How many hundredths of the width an edge may be off: fonts make 2."""
OUTLINE = """() => {
    const blocks = [];
    const wanted = "header, h1, h2, p, fieldset, #answer > *, nav, .wide, thead th, tbody tr:first-child > *";
    for (const it of document.querySelectorAll(wanted)) {
        const box = it.getBoundingClientRect();
        if (!it.checkVisibility() || box.width < 2) continue;
        const name = it.localName + (it.className && "." + it.className);
        const inTable = it.closest("table");
        const edges = inTable ? [] : [box.left, box.right].map((x) => Math.round(100 * x / innerWidth));
        const style = getComputedStyle(it);
        blocks.push({ box, seen: { name, edges, color: style.color, back: style.backgroundColor } });
    }
    blocks.sort((one, other) => one.box.top - other.box.top);
    let row = -1, end = -Infinity;
    for (const it of blocks) {
        if (it.box.top >= end - 2) row++, end = it.box.bottom;
        end = Math.min(end, it.box.bottom);
        it.seen.row = row;
    }
    blocks.sort((one, other) => one.seen.row - other.seen.row || one.box.left - other.box.left);
    return blocks.map((it) => it.seen);
}"""
Opener = Callable[..., Any]


@pytest.fixture
def opened(site: Path, browser: Any) -> Iterator[Opener]:
    """Opens a page of the site as a file; any browser error or network request fails the test."""
    pages, complaints = [], []

    def open_(address: str, width: int = 1280, scheme: str = "light") -> Any:
        page = browser.new_page(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda it: None if it.url.startswith("file:") else complaints.append(it.url))
        page.goto(f"{site.as_uri()}/{address}")
        pages.append(page)
        return page

    yield open_
    for page in pages:
        page.close()
    assert complaints == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("state", STATES)
def test_a_page_equals_its_picture(state: str, width: int, opened: Opener) -> None:
    address, scheme = STATES[state]
    page = opened(address, width, scheme)
    picture, outline = PICTURES / f"{state}-{width}.png", PICTURES / f"{state}-{width}.json"
    found = page.evaluate(OUTLINE)
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        page.screenshot(path=picture)
        outline.write_text("".join(f"{json.dumps(it)}\n" for it in found))
    known = [json.loads(line) for line in outline.read_text().splitlines()]

    assert [without_edges(it) for it in found] == [without_edges(it) for it in known]
    for here, there in zip(found, known, strict=True):
        assert here["edges"] == pytest.approx(there["edges"], abs=NEAR), here["name"]
    assert picture.stat().st_size < HEAVIEST


def without_edges(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "edges"}


@pytest.mark.parametrize("address", ["index.html", "framework/thing.html", "gpu/rtx-5090.html", "timeline.html"])
def test_a_narrow_page_does_not_scroll_sideways(address: str, opened: Opener) -> None:
    page = opened(address, 360)

    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", ["framework/thing.html", "gpu/rtx-5090.html", "extensions.html", "errors.html"])
def test_a_page_is_accessible_with_its_evidence_open(address: str, scheme: str, opened: Opener) -> None:
    page = opened(address, scheme=scheme)
    button = page.locator("button.why").first
    if button.count():
        button.click()

    assert axe.Axe().run(page).response["violations"] == []


def test_the_keyboard_opens_and_closes_evidence(opened: Opener) -> None:
    page = opened("framework/thing.html")
    evidence = page.locator("[popover]:popover-open")

    page.get_by_role("button", name="Why: thing on GeForce RTX 5090 with R575").focus()
    page.keyboard.press("Enter")

    assert "thing 2.0" in evidence.inner_text()
    assert "(a page)" in evidence.inner_text()
    page.keyboard.press("Escape")
    assert evidence.count() == 0


def test_no_gpu_is_a_choice_and_has_no_driver(opened: Opener) -> None:
    page = opened("index.html#gpu=NVIDIA+A100&driver=575&framework=thing")

    page.get_by_label("No GPU (CPU)").check()

    assert "gpu=none" in page.url
    assert "driver" not in page.url
    assert page.is_disabled("#driver")
    page.get_by_label("No GPU (CPU)").uncheck()
    assert "gpu" not in page.url
    assert not page.is_disabled("#driver")


@pytest.mark.parametrize("typed", ["8.0", "sm_80", "80"])
def test_a_compute_capability_is_a_gpu(typed: str, opened: Opener) -> None:
    page = opened("index.html#framework=thing&manager=pip&platform=linux-64")

    page.fill("#gpu", typed)

    assert "--gpu 8.0" in page.inner_text(".command")
    assert "a GPU of 8.0" in page.inner_text(".file")


def test_print_shows_the_answer_without_the_form(opened: Opener) -> None:
    page = opened(STATES["answer"][0])
    page.emulate_media(media="print")

    assert not page.is_visible("form")
    assert not page.is_visible("button")
    assert page.is_visible(".file")
