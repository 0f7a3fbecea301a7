"""HTML from values: every text is escaped, and the policy of a page allows only its own content."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from html import escape
from pathlib import Path

_ASSETS = Path(__file__).parent / "assets"
_VOID = ("input", "meta", "link", "br")
_LINK = re.compile(
    r"(?P<address>(?:https?://)?(?:[a-z0-9-]+\.)+(?:com|org|io|net|dev|ai)/[^\s,;()\[\]]*[^\s,;()\[\].:])"
    r"|(?<![\w/.])(?P<issue>[\w.-]+/[\w.-]+)#(?P<number>\d+)"
    r"|(?<![\w/.])(?P<feedstock>conda-forge/[\w.-]+-feedstock)"
)


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(element: str, /, *children: object, **attributes: object) -> Html:
    """An element; ``class_`` and ``for_`` lose their underscore, others become dashes, and None omits an attribute."""
    attributes_text = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{element}{attributes_text}>" + ("" if element in _VOID else f"{joined(children)}</{element}>"))


def joined(children: Iterable[object]) -> Html:
    """Several parts one after the other."""
    return Html("".join(it if isinstance(it, Html) else escape(str(it), quote=False) for it in children))


def link_parts(text: str) -> list[tuple[str, str]]:
    """The text of a source in parts, each with the address that it contains, or ""."""
    parts, at = [], 0
    for found in _LINK.finditer(text):
        parts.append((text[at : found.start()], ""))
        parts.append((found[0], _address(found)))
        at = found.end()
    return [it for it in (*parts, (text[at:], "")) if it[0]]


def linked(text: str) -> Html:
    """The text of a source with links."""
    parts = (tag("a", part, href=address, rel="noreferrer") if address else part for part, address in link_parts(text))
    return joined(parts)


def _address(found: re.Match[str]) -> str:
    if found["address"]:
        return found[0] if "://" in found[0] else f"https://{found[0]}"
    issue = f"{found['issue']}/issues/{found['number']}" if found["issue"] else found["feedstock"]
    return f"https://github.com/{issue}"


def page(title: str, body: Iterable[object], *, up: str | None = "../", script: str = "", data: str = "") -> str:
    """A whole page.

    ``up`` leads to the directory of the index, None if there is none; ``script`` reads the JSON ``data``. Its policy
    allows its own style and script, by their hashes, and nothing else: no network at all.
    """
    style = asset("style.css")
    scripts = f"script-src {_hash(script)}; " if script else ""
    policy = f"default-src 'none'; {scripts}style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Html(style)),
    )
    home = tag("b", "envsolve") if up is None else tag("a", "envsolve", href=f"{up}index.html")
    content = tag(
        "body",
        tag("header", home, " ", "CUDA stacks that run on your GPU and driver"),
        tag("main", *body),
        tag("script", Html(data.replace("<", r"\u003c")), type="application/json", id="data") if data else "",
        tag("script", Html(script)) if script else "",
    )
    return f"<!doctype html>\n{tag('html', head, content, lang='en')}\n"


@cache
def asset(name: str) -> str:
    """The content of a file in ``assets``."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def slug(name: str) -> str:
    """A name for use in an address: ``rtx-3090`` for NVIDIA GeForce RTX 3090."""
    words = re.findall(r"[a-z0-9.]+", name.lower())
    return "-".join([it for it in words if it not in ("nvidia", "geforce")] or words)
