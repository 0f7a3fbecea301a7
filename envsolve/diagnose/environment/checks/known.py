"""What validation looks at in the files of an environment, as findings of the doctor: the same ids and words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from packaging.version import Version

from envsolve.binary.lookup import Rule
from envsolve.diagnose.environment.checks import gpu_code
from envsolve.diagnose.environment.checks.ownership import TWO_DISTRIBUTIONS
from envsolve.diagnose.environment.checks.package_files import seen
from envsolve.diagnose.environment.families import component_in
from envsolve.diagnose.environment.reading import real
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.machine.library_variable import UNSET
from envsolve.findings.catalogue import shipped
from envsolve.lockfile.wheels import requirements_of
from envsolve.model.finding import Finding, Severity
from envsolve.validation.static.installed import is_of_driver
from envsolve.validation.static.packages import cpu_builds

_MISSING, _NO_CODE, _DAMAGED = "library-missing", "no-code-for-gpu", "library-damaged"
_DRIVER = "libcuda"
"""What validation says its findings on stubs are about."""


def static(scene: Scene) -> Iterator[Finding]:
    """The static checks of :mod:`envsolve.validation.static`.

    Where no GPU is, a library that only a GPU needs is missed less than one without which the import fails.
    """
    for finding in scene.static.findings:
        only_for_gpu = finding.id == _MISSING and not scene.has_gpu and finding.about not in _failing_imports(scene)
        if finding.id == TWO_DISTRIBUTIONS:
            yield finding._replace(evidence=(*finding.evidence, *_who_won(finding, scene)))
        elif finding.id == _NO_CODE:
            yield finding._replace(evidence=_shortened(finding, scene))
        elif finding.id == _MISSING and (extra := _of_extra(finding, scene)) is not None:
            yield extra
        elif UNSET in finding.commands:
            fix, commands = shipped().step("own-libraries", scene.loads.facts_without(_harmful(finding, scene)).get)
            yield finding if UNSET in commands else finding._replace(fix=fix, commands=commands)
        else:
            yield finding._replace(severity=Severity.WARNING) if only_for_gpu else finding
    if scene.has_gpu and not scene.host.capabilities:  # a GPU that no table knows
        yield from cpu_builds(scene.files)


def _of_extra(finding: Finding, scene: Scene) -> Finding | None:
    """The finding where pip brings the missing libraries with an extra of the framework, as TensorFlow's and-cuda."""
    build = next((it for it in scene.builds if it.name == finding.about and it.conda is None), None)
    release = build.releases[0] if build is not None and build.releases else None
    if build is None or release is None or not release.extras or any(map(component_in, scene.packages.by_name)):
        return None
    requirement, *_ = requirements_of(release, Version(scene.inventory.python or "3"))
    return scene.finding(
        "library-missing-of-extra",
        finding.evidence,
        about=build,
        severity=finding.severity if scene.has_gpu else Severity.WARNING,
        extra=release.extras[0],
        requirement=requirement,
    )


def _shortened(finding: Finding, scene: Scene) -> tuple[str, ...]:
    """Instead of a line for every file the GPU, and what the build has: of each file the codes stand after its path."""
    gpu = next((it for it in scene.host.capabilities if finding.title.endswith(f" {it}")), None)
    build = next((it for it in scene.builds if it.name == finding.about), None)
    if gpu is None or build is None:
        return finding.evidence
    return gpu_code.seen(gpu, build.label, (line.rpartition(": ")[2] for line in finding.evidence), scene)


def _harmful(finding: Finding, scene: Scene) -> Iterator[str]:
    """The directories of LD_LIBRARY_PATH that a finding is on: those of stubs, or those that its lookups ended at."""
    if finding.id == _DAMAGED:
        failures = (it.failure.path for loading in scene.loads.with_path for it in loading.lookups if it.failure)
        yield from (str(path.parent) for path in failures if f"{path}: " in "".join(finding.evidence))
        return
    if finding.about == _DRIVER:
        entries = re.split("[:;]", scene.loads.library_path or "")
        yield from (it for it in entries if it and "stubs" in Path(real(it)).parts)
        return
    for loading in scene.loads.with_path:
        for lookup in loading.lookups:
            path = lookup.path or (lookup.failure.path if lookup.failure is not None else None)
            is_meant = finding.about in (lookup.name, loading.framework.name) and not is_of_driver(lookup.name)
            if is_meant and path is not None and lookup.rule is Rule.LIBRARY_PATH:
                yield str(Path(path).parent)


def _who_won(finding: Finding, scene: Scene) -> Iterator[str]:
    """Of two packages with the same files the one that these are of."""
    names = set(finding.title.split())
    won = {it.winner.label: it for it in scene.altered if it.winner and {it.package.name, it.winner.name} <= names}
    for winner, altered in won.items():
        yield f"{Path(altered.path).name} is that of {winner}: {seen(altered)}"


def _failing_imports(scene: Scene) -> frozenset[str]:
    """The frameworks of which the import alone needs a library that is not there; on Windows those that may."""
    if scene.platform.is_windows:
        return frozenset(it.name for it in scene.files.frameworks if it.libraries.on_import)
    return frozenset(
        loading.framework.name
        for loading in scene.loads.with_path
        for lookup in loading.lookups
        if lookup.path is None and lookup.name in loading.on_import and not is_of_driver(lookup.name)
    )
