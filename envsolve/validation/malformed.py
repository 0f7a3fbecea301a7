"""Files of an environment that are not what they should be: a finding that names the file."""

from __future__ import annotations

from pathlib import Path

from envsolve.model.finding import Finding, Severity


def malformed(
    path: Path, reason: str, fix: str, commands: tuple[str, ...] = (), severity: Severity = Severity.WARNING
) -> Finding:
    """The finding that the file at ``path`` is malformed; ``reason`` is a sentence without its full stop."""
    return Finding(
        "file-malformed",
        f"{path} is malformed",
        severity,
        f"{path} cannot be used: {reason}",
        fix,
        commands,
        (str(path),),
        about=path.name,
    )
