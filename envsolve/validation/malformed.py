"""Files of an environment that are not what they should be: a finding that names the file."""

from __future__ import annotations

import shlex
from pathlib import Path

from envsolve.findings.catalogue import make_finding
from envsolve.model.finding import Finding, Severity


def malformed(path: Path, reason: str, of: str = "", *, directory: Path | None = None) -> Finding:
    """The finding that the file at ``path`` is malformed.

    ``reason`` is a sentence without its full stop. ``of`` is what is to be done about it: ``conda-state``,
    ``conda-package``, ``conda-history`` or ``venv``; ``directory`` is what has to be removed instead.
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
