"""What validation looks at in the files of an environment, as findings of the doctor: the same ids and words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from envsolve.diagnose.environment.checks.ownership import TWO_DISTRIBUTIONS
from envsolve.diagnose.environment.checks.package_files import seen
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding, Severity
from envsolve.validate.static.installed import is_of_driver
from envsolve.validate.static.packages import cpu_builds

_MISSING = "library-missing"


def static(scene: Scene) -> Iterator[Finding]:
    """The static checks of :mod:`envsolve.validate.static`.

    Where no GPU is, a library that only a GPU needs is missed less than one without which the import fails.
    """
    for finding in scene.static.findings:
        only_for_gpu = finding.id == _MISSING and not scene.has_gpu and finding.about not in _failing_imports(scene)
        if finding.id == TWO_DISTRIBUTIONS:
            yield finding._replace(evidence=(*finding.evidence, *_who_won(finding, scene)))
        else:
            yield finding._replace(severity=Severity.WARNING) if only_for_gpu else finding
    if scene.has_gpu and not scene.host.capabilities:  # a GPU that no table knows
        yield from cpu_builds(scene.files)


def _who_won(finding: Finding, scene: Scene) -> Iterator[str]:
    """Of two packages with the same files the one that these are of."""
    names = set(finding.title.split())
    won = {it.winner.label: it for it in scene.altered if it.winner and {it.package.name, it.winner.name} <= names}
    for winner, altered in won.items():
        yield f"{Path(altered.path).name} is that of {winner}: {seen(altered)}"


def _failing_imports(scene: Scene) -> frozenset[str]:
    """The frameworks of which the import alone asks for a library that is not there; on Windows those that may."""
    if scene.platform.is_windows:
        return frozenset(it.libraries.name for it in scene.files.frameworks if it.libraries.on_import)
    return frozenset(
        loading.framework.libraries.name
        for loading in scene.loads.with_path
        for lookup in loading.lookups
        if lookup.path is None and lookup.name in loading.on_import and not is_of_driver(lookup.name)
    )
