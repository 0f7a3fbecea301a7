"""The static checks of an environment's libraries, which validation makes too; nothing is run."""

from __future__ import annotations

from envsolve.diagnose.environment.checks.damage import damaged_libraries
from envsolve.diagnose.environment.checks.frameworks import cpu_builds
from envsolve.diagnose.environment.checks.gpu_code import code_in_libraries
from envsolve.diagnose.environment.checks.library_versions import old_c_library
from envsolve.diagnose.environment.checks.misplaced import foreign_libraries, stubs, two_majors
from envsolve.diagnose.environment.checks.missing import missing_dlls, missing_libraries
from envsolve.diagnose.environment.checks.ownership import two_distributions
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Severity
from envsolve.validation.report import StaticReport

_CHECKS = (
    *(cpu_builds, two_distributions, old_c_library, damaged_libraries, missing_libraries, missing_dlls),
    *(foreign_libraries, two_majors, stubs, code_in_libraries),
)


def examine(scene: Scene) -> StaticReport:
    """Run every check; libraries are read, and the loader is simulated (:mod:`envsolve.binary`)."""
    findings = dict.fromkeys(finding for check in _CHECKS for finding in check(scene))
    ordered = sorted(findings, key=lambda it: list(Severity).index(it.severity))
    found = (scene.files.located(name, path) for paths in scene.loads.found.values() for name, path in paths.items())
    return StaticReport(tuple(ordered), tuple(dict.fromkeys(found)), scene.loads.shadowed)
