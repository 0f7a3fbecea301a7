"""A Sphinx extension: what a page has as ``{generated} NAME`` is written from the code before the page is parsed.

It is put in as text, and no directive, so that headings in it are headings of the page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from envsolve_reference import commands, documents, errors, findings, keys, variables  # noqa: E402 - needs scripts/ of the line above
from envsolve_reference.source import Source  # noqa: E402

_GENERATED = re.compile(r"^```\{generated\} (?P<name>[\w-]+)(?: (?P<argument>[\w-]+))?\n```$", re.MULTILINE)
_LINK_UP = re.compile(r"\]\((\.\./[^)#]+\.md)\)")


@cache
def _source() -> Source:
    return Source(ROOT / "envsolve")


WRITERS: dict[str, Callable[..., str]] = {
    "command": commands.command_page,
    "commands": commands.commands_list,
    "error-codes": lambda: errors.codes_table(_source()),
    "error-kinds": errors.kinds_table,
    "exit-codes": variables.exit_codes_table,
    "findings": lambda: findings.findings_table(_source()),
    "json-keys": documents.keys_table,
    "json-schemas": documents.schemas_table,
    "option-variables": variables.option_variables_table,
    "project-keys": keys.keys_page,
    "project-keys-table": keys.keys_table,
    "variables": variables.variables_table,
}


def _written(block: re.Match[str]) -> str:
    return WRITERS[block["name"]](*filter(None, [block["argument"]]))


def generate(app: Sphinx, name: str, content: list[str]) -> None:
    """Write what a page has generated, which changes with any module of envsolve."""
    text = _GENERATED.sub(_written, content[0])
    if text != content[0]:
        for path in (ROOT / "envsolve").rglob("*.py"):
            app.env.note_dependency(str(path), docname=name)
    content[0] = text


def lead_out(app: Sphinx, name: str, content: list[str]) -> None:
    """Give pages of the repository that are none of the site to the reader as files."""
    page = Path(app.env.doc2path(name))

    def led_out(link: re.Match[str]) -> str:
        target = (page.parent / link[1]).resolve()
        return link[0] if target.is_relative_to(app.srcdir) else f"](path:{link[1]})"

    content[0] = _LINK_UP.sub(led_out, content[0])


def setup(app: Sphinx) -> dict[str, object]:
    """Tell Sphinx."""
    app.connect("source-read", generate)
    app.connect("source-read", lead_out)
    return {"version": "1", "parallel_read_safe": True}
