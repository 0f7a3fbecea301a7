"""The difference between the matrix and the wheels, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from scripts.matrix_refresh.toml_file import Change, Citation, RowChange

_FIELDS_OF_A_NEW_ROW = ("cuda", "cudnn", "pythons", "glibc", "sass", "ptx")


def lines_of(
    file: str,
    differences: Sequence[RowChange],
    unread: Sequence[str],
    cited: Sequence[Citation] = (),
    dated: Sequence[Change] = (),
) -> Iterator[str]:
    """A heading with counts, a line for each change of rows, citations and dates, and for rows without a wheel."""
    new = sum(difference.new for difference in differences)
    yield f"{file}: {new} new, {len(differences) - new} changed, {len(unread)} without a wheel on the index"
    for difference in differences:
        sign = "+" if difference.new else "~"
        yield f"  {sign} {_named(difference.row)}"
        if difference.new:
            fields = [(name, difference.row[name]) for name in _FIELDS_OF_A_NEW_ROW if name in difference.row]
            yield "      " + ", ".join(f"{name} {_value(value)}" for name, value in fields)
            continue
        for change in difference.changes:
            yield f"      {change.field}: {_value(change.before)} -> {_value(change.after)}"
    for citation in cited:
        yield f"  @ {citation.name}: {citation.before} -> {citation.after}"
    for change in dated:
        yield f"  ~ {change.field} released: {_value(change.before)} -> {_value(change.after)}"
    for row in unread:
        yield f"  ? {row}"


def _named(row: Mapping[str, object]) -> str:
    return " ".join(str(row[name]) for name in ("version", "source", "platform", "build", "package"))


def _value(value: object) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return " ".join(str(item) for item in value) or "(empty)"
    return str(value)
