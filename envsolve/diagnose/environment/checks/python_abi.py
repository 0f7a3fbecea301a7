"""Compiled modules for another Python than the environment's, by the tag in their names (PEP 3149, PEP 425)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsolve.boundary.display import listed
from envsolve.diagnose.environment.metadata import Package
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding

_TAGGED = re.compile(r"(?P<stem>.+?)\.(?:cpython-|cp)(?P<tag>3\d+t?)-[\w-]+\.(?:so|pyd)\Z")


def modules_of_another_python(scene: Scene) -> Iterator[Finding]:
    """Packages whose compiled modules are all for another Python; a wheel may contain each for several."""
    here = "".join(scene.inventory.python.split(".")[:2])
    if not here or not scene.inventory.takes_usual_wheels:
        return
    found: dict[str, dict[Package, str]] = {}
    for package in scene.packages.by_name.values():
        modules: dict[str, dict[str, str]] = {}
        for row in scene.packages.record(package) or ():
            match = _TAGGED.match(row.path)
            if match is not None:
                modules.setdefault(match["stem"], {})[match["tag"]] = row.path
        for tags in (it for it in modules.values() if here not in it):
            tag, path = max(tags.items())
            found.setdefault(tag, {}).setdefault(package, path)
    for tag, packages in found.items():
        yield scene.finding(
            "extension-of-other-python",
            (str(package.location / path) for package, path in packages.items()),
            about="python",
            package=next(iter(packages)).name,
            packages=listed(it.name for it in packages),
            pins=" ".join(f"{it.name}=={it.version}" for it in packages),
            module_python=f"3.{tag[1:]}",
            python=".".join(scene.inventory.python.split(".")[:2]),
        )
