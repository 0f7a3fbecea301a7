"""The links of an HTML page, for indexes without JSON, such as PyTorch's."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urljoin

Link = tuple[str, dict[str, str | None]]
"""The text of a link and its attributes."""


def read_links(text: str, url: str) -> tuple[str, list[Link], bool]:
    """The base address of relative links, the links, and whether it is an HTML page at all.

    Raises ValueError if the base address is invalid.
    """
    reader = _Reader()
    reader.feed(text)
    reader.finish()
    return urljoin(url, reader.base or ""), reader.links, reader.is_page


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.base: str | None = None
        self.links: list[Link] = []
        self.is_page = False
        self._open: dict[str, str | None] | None = None
        self._text: list[str] = []

    def handle_decl(self, decl: str) -> None:
        self.is_page = self.is_page or decl.lower().startswith("doctype html")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("html", "head", "body", "a"):
            self.is_page = True
        if tag == "base" and self.base is None:
            self.base = dict(attrs).get("href")
        if tag == "a":
            self.finish()
            self._open = dict(attrs)

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self.finish()

    def finish(self) -> None:
        """End the last link. Unclosed tags at the end of the page are ignored.

        HTMLParser.close would read them as text, character by character: 20 seconds for 60 kB of ``<a <a <a``
        (measured).
        """
        if self._open is not None and self._open.get("href"):
            self.links.append(("".join(self._text).strip(), self._open))
        self._open, self._text = None, []
