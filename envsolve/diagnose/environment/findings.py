"""Findings on an environment, with the words of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from envsolve.diagnose.environment.remedies import fix_plan, quoted
from envsolve.diagnose.environment.scene import Scene
from envsolve.findings.catalogue import shipped
from envsolve.model.finding import Finding, Severity


def of_environment(
    scene: Scene,
    identifier: str,
    facts: Mapping[str, object] = {},
    evidence: Iterable[str] = (),
    *,
    about: str | None = None,
    severity: Severity | None = None,
    sources: Iterable[str] = (),
) -> Finding:
    """The finding of the check ``identifier``, with the ``facts`` that its sentences name and those of every check."""
    common = {
        "probed": True,
        "windows": scene.platform.is_windows,
        "in_conda": scene.inventory.is_conda,
        "plan": next(iter(fix_plan(scene)), None),
        "prefix": str(scene.inventory.prefix),
        "prefix_typed": quoted(scene.inventory.prefix),
    }
    known = {**common, **facts}
    entry = shipped().entry(identifier)
    finding = entry.as_finding(known.get, (), evidence, severity=severity, about=about)
    return finding._replace(sources=tuple(sources) or entry.sources)
