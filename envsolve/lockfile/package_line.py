"""On which line of a lock a package stands, whatever the format: CI systems show a remark there."""

from __future__ import annotations

import re


def package_line(text: str, name: str) -> int | None:
    """The line, from 1 on, on which the lock ``text`` has the package ``name``, which is normalized; None without one.

    First the line counts on which a table or a mapping has it as its ``name``, then that of a requirement or a match
    spec, then one with the name of its file, then that of a list that has it, as in a pyproject.toml.
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
