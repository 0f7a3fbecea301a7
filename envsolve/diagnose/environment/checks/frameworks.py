"""Frameworks built for the CPU, on a machine that has a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsolve.diagnose.environment.scene import Scene
from envsolve.frameworks import FRAMEWORKS, Framework
from envsolve.model.finding import Finding
from envsolve.validation.installed import Installed


def cpu_builds(scene: Scene) -> Iterator[Finding]:
    """Frameworks without CUDA, on a machine that has a GPU."""
    there = {it.name: it for it in scene.files.frameworks}
    for known in FRAMEWORKS.values() if scene.has_gpu else ():
        shows = _shows_cpu(known, there.get(known.name), scene) if scene.files.is_wanted(known.name) else None
        if shows is not None:
            facts = {"framework": known.title, "name": known.name}
            yield scene.finding("cpu-build", [shows], about=known.name, gpu_is_here=True, **facts)


def _shows_cpu(known: Framework, there: Installed | None, scene: Scene) -> str | None:
    """The evidence that this is a CPU build; None for any other. ``there`` is None if its module is missing."""
    if there is not None:
        if there.says_no_gpu is not None:
            return there.says_no_gpu
        if any("cuda" in file.name for file in there.files(*known.libraries.code)):
            return None
    installed = scene.inventory.distributions
    present = next((it for it in installed if known.is_installed_as(it.name)), None)
    records = (scene.conda.by_name.get(name) for name in known.conda_builds) if there or present else ()
    build = next((it.build for it in records if it is not None), "")
    if re.match(r"(cpu|mkl)", build):
        return f"the build of the conda package is {build}"
    if present is None or known.gpu_packages is None or "cuda" in build:
        return None
    if any(known.has_gpu_code(it.name, it.version) for it in installed):
        return None
    return f"{present.name} {present.version} is installed, and no package with its GPU code"
