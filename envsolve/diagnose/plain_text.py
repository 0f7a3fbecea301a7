"""Text that JSON and a terminal take: names of files and values of variables may hold bytes that are no text."""

from __future__ import annotations

from collections.abc import Mapping

from envsolve.model.finding import Finding


def printable(finding: Finding) -> Finding:
    """The finding with such bytes written as escapes."""
    return finding.with_texts(_text)


def printable_inventory(inventory: Mapping[str, object]) -> Mapping[str, object]:
    """The inventory with such bytes written as escapes."""
    return {name: _value(value) for name, value in inventory.items()}


def _value(value: object) -> object:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {key: _value(it) for key, it in value.items()}
    return [_value(it) for it in value] if isinstance(value, list) else value


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
