"""The way out where LD_LIBRARY_PATH leads frameworks astray, and the driver may be found by it alone."""

from __future__ import annotations

from collections.abc import Iterable

from envsolve.diagnose.environment.reading import real
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.machine.library_variable import Cut, without
from envsolve.findings.catalogue import shipped


def facts_without(directories: Iterable[str], scene: Scene) -> dict[str, object]:
    """Facts on how to keep ``directories`` of the variable from programs, for the step ``own-libraries``."""
    harmful = tuple(dict.fromkeys(directories))
    cut = _cut(harmful, scene)
    return {"cut": next(iter(cut.commands), None), "keeps": cut.keeps, "directories": harmful}


def _cut(directories: tuple[str, ...], scene: Scene) -> Cut:
    places = {real(it) for it in directories}
    return without(scene.loads.library_path or "", scene.loads.driver_directory, lambda entry: real(entry) in places)


def way_without(directories: Iterable[str], scene: Scene) -> tuple[str, tuple[str, ...]]:
    """What to do and what to type so that nothing is loaded from ``directories`` of the variable any more."""
    return shipped().step("own-libraries", facts_without(directories, scene).get)
