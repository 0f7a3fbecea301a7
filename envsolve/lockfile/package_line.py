"""On which line of a lock a package stands, whatever the format: CI systems show a remark there."""

from __future__ import annotations

import re


def package_line(text: str, name: str) -> int | None:
    """The line, from 1 on, on which the lock ``text`` has the package ``name``, which is normalized; None without one.

    First a line that is about the package itself counts, then one with the name of its file.
    """
    spelled = re.escape(name).replace(r"\-", "[-_.]")
    entry = (
        rf"^[ \t]*(?:-[ \t]+)?[\"']?(?:name[\"']?[ \t]*[=:][ \t]*[\"']?)?{spelled}"
        rf"(?=[ \t]*(?:[\"',;<>=!~\[\n\r]|@|$))"
    )
    file = rf"[/\"' ]{spelled}-\d"
    for pattern in (entry, file):
        found = re.search(pattern, text, re.MULTILINE | re.IGNORECASE)
        if found is not None:
            return text.count("\n", 0, found.end()) + 1
    return None
