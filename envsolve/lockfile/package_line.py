"""Find the line of a package in a lock of any format, so that CI systems can show a message there."""

from __future__ import annotations

import re


def package_line(text: str, name: str) -> int | None:
    """Return the line, from 1, of the package ``name`` (normalized) in the lock ``text``, or None.

    In order of preference it is the line on which a table or a mapping has it as its ``name``, the line of a
    requirement or a match spec, a line with the name of its file, and the line of a list that has it, as in a
    pyproject.toml.
    """
    spelled = re.escape(name).replace(r"\-", "[-_.]")
    before, behind = r"^[ \t]*(?:-[ \t]+)?[\"']?", r"(?=[ \t]*(?:[\"',;<>=!~\[\n\r]|@|$))"
    patterns = (
        rf"{before}name[\"']?[ \t]*[=:][ \t]*[\"']?{spelled}{behind}",
        rf"{before}{spelled}{behind}",
        rf"[/\"' ]{spelled}-\d",
        rf"[\"']{spelled}{behind}",
    )
    found = (re.search(pattern, text, re.MULTILINE | re.IGNORECASE) for pattern in patterns)
    return next((text.count("\n", 0, it.end()) + 1 for it in found if it is not None), None)
