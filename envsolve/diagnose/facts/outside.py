"""Facts on failures that look like a mismatch of versions and are none."""

from __future__ import annotations

from envsolve.diagnose.case import Case, Lines, merged


def memory_wanted(_case: Case, lines: Lines) -> str | None:
    """The size of an allocation that failed, as written or in GiB."""
    fields = merged(lines)
    if number := fields.get("bytes"):
        return f"{int(number.replace(',', '')) / 2**30:.2f} GiB"
    return fields.get("wanted") or fields.get("device")
