"""The way out where LD_LIBRARY_PATH leads frameworks astray, and the driver may be found by it alone."""

from __future__ import annotations

from collections.abc import Iterable

from envsolve.diagnose.environment.reading import real
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.machine.library_variable import without


def way_without(directories: Iterable[str], scene: Scene) -> tuple[str, tuple[str, ...]]:
    """What to do and what to type so that nothing is loaded from ``directories`` of the variable any more."""
    harmful = tuple(dict.fromkeys(directories))
    places = {real(it) for it in harmful}
    loads = scene.loads
    cut = without(loads.library_path or "", loads.driver_directory, lambda entry: real(entry) in places)
    if cut.keeps is None:
        return "start programs of this environment without LD_LIBRARY_PATH", cut.commands
    if cut.commands:
        out = f"take {' and '.join(harmful)} out of LD_LIBRARY_PATH"
        return f"{out}, and keep {cut.keeps}, by which alone the driver's library is found", cut.commands
    until = f"leave LD_LIBRARY_PATH as long as {cut.keeps} is the only way to the driver's library"
    return f"{until}; where a file of /etc/ld.so.conf.d has it and ldconfig has run, unset the variable", ()
