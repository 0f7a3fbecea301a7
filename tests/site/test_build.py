"""A complete site of a small matrix: valid pages without network access, linked to each other."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlparse

import pytest

from tests.conftest import Envsolve
from tests.matrix.tiny import tiny_matrix

VOID = {"input", "meta", "link", "br"}


class Page(HTMLParser):
    """The elements of a page, and whether they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.inside.setdefault(self.open[-1], []).append(data)

    def values(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(attribute))]


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


@pytest.mark.thorough
def test_each_subject_has_a_page_with_a_stable_address(site: Path) -> None:
    addresses = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}

    assert {"index.html", "gpus.html", "timeline.html", "extensions.html", "errors.html"} <= addresses
    assert {"gpu/rtx-5090.html", "gpu/a100.html", "driver/575.html", "driver/520.html"} <= addresses
    assert {"framework/thing.html", "framework/thing/2.0.html", "error/cudnn-version-mismatch.html"} <= addresses


def test_every_link_within_the_site_leads_to_a_page(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for href in page.values("href"):
            address = urlparse(href)
            if address.scheme:
                assert address.scheme == "https"
            else:
                assert (path.parent / address.path).resolve() in pages, f"{path}: {href}"


def test_every_page_allows_only_its_own_resources_and_no_network(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        policy = next(it["content"] for tag, it in page.elements if tag == "meta" and "http-equiv" in it)
        assert policy is not None
        assert policy.startswith("default-src 'none';")
        allowed = set(re.findall(r"'sha256-([^']+)'", policy))
        inline = [text for tag in ("style", "script") for text in page.inside.get(tag, []) if not text.startswith("{")]
        assert {base64.b64encode(hashlib.sha256(it.encode()).digest()).decode() for it in inline} == allowed, path
        assert not {"src", "style", "onclick"} & {name for _, attributes in page.elements for name in attributes}


def test_every_question_mark_opens_its_evidence_and_every_evidence_can_be_closed(pages: dict[Path, Page]) -> None:
    opened = 0
    for path, page in pages.items():
        buttons = [attributes for tag, attributes in page.elements if tag == "button" and "popovertarget" in attributes]
        shown = {attributes["id"] for tag, attributes in page.elements if "popover" in attributes}
        close = {it["popovertarget"] for it in buttons if it.get("popovertargetaction") == "hide"}
        open_ = {it["popovertarget"] for it in buttons if "popovertargetaction" not in it}
        assert open_ == close == shown, path
        opened += len(open_)
    assert opened


def test_a_cell_has_reasons_with_sources(site: Path) -> None:
    text = (site / "framework/thing.html").read_text(encoding="utf-8")

    evidence = text[text.index('<div id="why0"') :]
    assert "@gpu@" not in text
    assert "@driver@" not in text
    assert "thing 2.0" in evidence
    assert '<span class="source">(a page)</span>' in evidence[: evidence.index("</div>")]


def test_every_page_has_a_language_a_title_and_one_heading_and_names_its_fields(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        tags = [tag for tag, _ in page.elements]
        ids = page.values("id")
        labelled = set(page.values("for"))
        assert ("html", {"lang": "en"}) in page.elements
        assert page.inside["title"]
        assert tags.count("h1") == 1, path
        assert len(ids) == len(set(ids)), path
        for tag, attributes in page.elements:
            if tag == "input" and attributes["type"] == "text":
                assert attributes["id"] in labelled


def test_the_data_of_the_selector_names_the_matrix_that_it_is_of(site: Path, pages: dict[Path, Page]) -> None:
    data = next(it for it in pages[site / "index.html"].inside["script"] if it.startswith("{"))
    document = json.loads(data)

    assert len(document["digest"]) == 64
    assert document["matrix_date"] == "2026-11-20"
    assert document["frameworks"] == ["thing"]
    assert set(document["gpus"]) == {"NVIDIA A100", "GeForce RTX 5090", "3.7", "7.5", "8.0", "9.0", "12.0", "none"}
    assert set(document["index"]["thing"]) == {
        f"{platform} {kind}"
        for platform in ("linux-64", "linux-aarch64", "win-64")
        for kind in ("environment", "requirements")
    }


def test_the_grid_shows_the_newest_release_or_none(site: Path) -> None:
    text = (site / "framework/thing.html").read_text(encoding="utf-8")

    cells = dict(re.findall(r'#gpu=([^&]+)&amp;driver=575&[^"]+">([^<]+)<', text))

    assert cells == {"GeForce+RTX+5090": "2.0", "9.0": "none", "NVIDIA+A100": "2.0", "7.5": "none", "3.7": "none"}


def test_a_directory_that_cannot_be_written_is_named(envsolve: Envsolve, tmp_path: Path) -> None:
    matrix = tmp_path / "matrix"
    matrix.mkdir()
    tiny_matrix(matrix)
    (tmp_path / "file").write_text("")

    result = envsolve("site", str(tmp_path / "file"), "--matrix", str(matrix), "--together", "1")

    assert result.code == 2
    assert "output-not-writable" in result.err


@pytest.mark.thorough
def test_the_command_says_how_many_pages_it_wrote(envsolve: Envsolve, tmp_path: Path) -> None:
    matrix = tmp_path / "matrix"
    matrix.mkdir()
    tiny_matrix(matrix)

    result = envsolve("site", str(tmp_path / "site"), "--matrix", str(matrix), "--together", "1")

    count = len(list((tmp_path / "site").rglob("*.html")))
    assert (result.code, result.out) == (0, f"wrote {count} pages to {tmp_path / 'site'}\n")
