"""The parts of a pyproject.toml besides its dependencies that a project leaves out: groups, extras, [tool.uv].

https://docs.astral.sh/uv/reference/settings documents uv's tables. Its indexes are read when locking.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from envsolve.app.project.adopting_packages import OF_PYTORCH, counted, is_of_pytorch, table_of, texts_of

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_LEFT_OUT = {
    "constraint-dependencies": 'ignored: put them into a file and add constraint-files = ["constraints.txt"]',
    "build-constraint-dependencies": (
        'ignored: put them into a file and add build-constraint-files = ["build-constraints.txt"]'
    ),
    "dev-dependencies": "ignored: move them to [dependency-groups] to include them",
}


def overrides_of(document: Mapping[str, Any]) -> list[str]:
    """The overrides of uv in ``document``, without those for a single package, which are tables."""
    return texts_of(table_of(table_of(document.get("tool")).get("uv")).get("override-dependencies", []))


def left_of_pyproject(document: Mapping[str, Any]) -> Iterator[str]:
    """The notes on ``document``, whose [project] dependencies become requirements."""
    extras = table_of(table_of(document.get("project")).get("optional-dependencies"))
    groups = table_of(document.get("dependency-groups"))
    for names, one, key in ((extras, "extra", "extras"), (groups, "group", "dependency-groups")):
        if names:
            them = "it" if len(names) == 1 else "them"
            yield f"{counted(names, one, f'{one}s')} ignored: to include {them}, add {key} = {_listed(names)}"
    tool = table_of(document.get("tool"))
    yield from _of_uv(table_of(tool.get("uv")))
    poetry = [it for it in table_of(table_of(tool.get("poetry")).get("dependencies")) if it != "python"]
    if poetry:
        yield f"[tool.poetry.dependencies] is ignored because [project] has dependencies: {', '.join(poetry)}"


def _of_uv(uv: Mapping[str, Any]) -> Iterator[str]:
    if uv:
        yield "[tool.uv] stays as it is: add uv-settings = true, and envsolve lock writes the locked versions into it"
    for key, why in _LEFT_OUT.items():
        names = [found[0] for it in texts_of(uv.get(key, [])) if (found := _NAME.match(it)) is not None]
        if names:
            yield f"[tool.uv] {key} ({', '.join(names)}) are {why}"
    overrides = uv.get("override-dependencies")
    if isinstance(overrides, list) and len(overrides) > len(texts_of(overrides)):
        yield "[tool.uv] override-dependencies for one package alone are ignored: overrides here are for all packages"
    listed = uv.get("index")
    indexes = [table_of(it) for it in listed] if isinstance(listed, list) else []
    addresses = {str(it.get("name")): str(it.get("url", "")) for it in indexes}
    places: dict[str, list[str]] = {}
    for name, sources in table_of(uv.get("sources")).items():
        for source in map(table_of, sources if isinstance(sources, list) else [sources]):
            places.setdefault(_place(source, addresses), []).append(name)
    for place, packages in places.items():
        yield f"[tool.uv.sources] for {', '.join(dict.fromkeys(packages))}: {place}"


def _place(source: Mapping[str, Any], addresses: Mapping[str, str]) -> str:
    """The place of a source, and how to replace it."""
    index = source.get("index")
    if index is None:
        kind = next((key for key in ("git", "url", "path", "workspace") if key in source), "elsewhere")
        return f"the {kind} is ignored: the lock uses an index"
    if is_of_pytorch(addresses.get(str(index), "")):
        return f"the index {index} {OF_PYTORCH}"
    return f"the restriction to the index {index} is ignored: every index can provide every package"


def _listed(names: Mapping[str, Any]) -> str:
    return json.dumps(list(names), ensure_ascii=False)
