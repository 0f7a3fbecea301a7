"""Findings for malformed files of an environment."""

from __future__ import annotations

import shlex
from pathlib import Path

from envsolve.findings.catalogue import make_finding
from envsolve.model.finding import Finding, Severity


def malformed(path: Path, reason: str, of: str = "", *, directory: Path | None = None) -> Finding:
    """The finding that the file at ``path`` is malformed.

    ``reason`` is a sentence without its full stop. ``of`` selects the fix: ``conda-state``, ``conda-package``,
    ``conda-history`` or ``venv``. ``directory`` has to be removed instead of the file, if given.
    """
    return make_finding(
        "file-malformed",
        [str(path)],
        about=path.name,
        severity=Severity.ERROR if of == "conda-state" else None,
        path=path,
        reason=reason,
        of=of,
        directory=directory,
        path_typed=shlex.quote(str(path)),
    )
