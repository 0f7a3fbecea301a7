"""The way out where LD_LIBRARY_PATH leads frameworks astray, and the driver may be found by it alone."""

from __future__ import annotations

from collections.abc import Iterable

from envsolve.diagnose.environment.reading import real
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.machine.library_variable import Cut, without


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
    harmful = tuple(dict.fromkeys(directories))
    cut = _cut(harmful, scene)
    if cut.keeps is None:
        return "start programs of this environment without LD_LIBRARY_PATH", cut.commands
    if cut.commands:
        out = f"take {' and '.join(harmful)} out of LD_LIBRARY_PATH"
        return f"{out}, and keep {cut.keeps}, by which alone the driver's library is found", cut.commands
    until = f"leave LD_LIBRARY_PATH as long as {cut.keeps} is the only way to the driver's library"
    return f"{until}; where a file of /etc/ld.so.conf.d has it and ldconfig has run, unset the variable", ()
