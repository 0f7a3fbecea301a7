"""Commands of findings in their usual form; :mod:`~envsolve.diagnose.environment.commands` adapts them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from envsolve.diagnose.environment.metadata import Package
from envsolve.frameworks import frameworks_among
from envsolve.validation.inventory import Inventory

if TYPE_CHECKING:
    from envsolve.diagnose.environment.scene import Scene


def fix_plan(scene: Scene) -> tuple[str, ...]:
    """The command that plans a fixed environment for this machine; empty if there is no framework.

    It keeps the versions and the Python of the environment if they run here.
    """
    known = {build.name for build in scene.builds} | {it.name for it in frameworks_among(scene.packages.by_name)}
    if not known.intersection(scene.matrix.framework_names):
        return ()
    return (scene.shell_kind.joined(["envsolve", "doctor", *named(scene.inventory), "--fix-plan"]),)


def named(inventory: Inventory) -> tuple[str, str]:
    """The option that names this environment for envsolve's commands."""
    if inventory.owns_prefix:
        return "--prefix", str(inventory.prefix)
    return "--python", str(inventory.executable)


def installer_of(package: Package, scene: Scene) -> str:
    """``conda`` or ``pip``: the installer of a package can install another version of it."""
    return "conda" if package.is_of_conda and package.name in scene.conda.by_name else "pip"


def quoted(path: Path | str) -> str:
    """A path, quoted for a POSIX shell."""
    return shlex.quote(str(path))
