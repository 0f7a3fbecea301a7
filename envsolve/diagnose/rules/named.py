"""What rules in code share."""

from __future__ import annotations

from envsolve.diagnose.facts.named import version_of_package

__all__ = ["known", "version_of_package"]


def known(**fields: str | None) -> dict[str, str]:
    """The fields that are known."""
    return {name: value for name, value in fields.items() if value}
