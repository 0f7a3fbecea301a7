"""What a pyproject.toml says beside its dependencies, and a project leaves out: groups, extras, [tool.uv].

https://docs.astral.sh/uv/reference/settings has uv's tables. Its indexes are no matter here: locking reads them itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from envsolve.app.adopting_packages import OF_PYTORCH, counted, is_of_pytorch, table_of, texts_of

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_LEFT_OUT = {
    "constraint-dependencies": 'left out: in a file they count, which constraint-files = ["constraints.txt"] names',
    "override-dependencies": "left out: a lock keeps to what packages require",
    "dev-dependencies": "left out: in [dependency-groups] they can be asked for",
}


def left_of_pyproject(document: Mapping[str, Any]) -> Iterator[str]:
    """What to tell of ``document``, whose [project] dependencies are taken over."""
    extras = table_of(table_of(document.get("project")).get("optional-dependencies"))
    if extras:
        yield f"{counted(extras, 'extra', 'extras')} left out: extras = {_listed(extras)} takes what is in there"
    groups = table_of(document.get("dependency-groups"))
    if groups:
        takes = f"dependency-groups = {_listed(groups)} takes what is in there"
        yield f"{counted(groups, 'group', 'groups')} left out: {takes}"
    tool = table_of(document.get("tool"))
    yield from _of_uv(table_of(tool.get("uv")))
    poetry = [it for it in table_of(table_of(tool.get("poetry")).get("dependencies")) if it != "python"]
    if poetry:
        yield f"[tool.poetry.dependencies] is left out, as [project] has dependencies: {', '.join(poetry)}"


def _of_uv(uv: Mapping[str, Any]) -> Iterator[str]:
    for key, why in _LEFT_OUT.items():
        names = [found[0] for it in texts_of(uv.get(key, [])) if (found := _NAME.match(it)) is not None]
        if names:
            yield f"[tool.uv] {key} ({', '.join(names)}) are {why}"
    listed = uv.get("index")
    indexes = [table_of(it) for it in listed] if isinstance(listed, list) else []
    addresses = {str(it.get("name")): str(it.get("url", "")) for it in indexes}
    told: dict[str, list[str]] = {}
    for name, sources in table_of(uv.get("sources")).items():
        for source in map(table_of, sources if isinstance(sources, list) else [sources]):
            told.setdefault(_place(source, addresses), []).append(name)
    for place, packages in told.items():
        yield f"[tool.uv.sources] takes {', '.join(dict.fromkeys(packages))} from {place}"


def _place(source: Mapping[str, Any], addresses: Mapping[str, str]) -> str:
    """Where a source is, and what becomes of it."""
    index = source.get("index")
    if index is None:
        kind = next((key for key in ("git", "url", "path", "workspace") if key in source), "elsewhere")
        return f"its {kind}, which is left out: a lock takes it from an index"
    if is_of_pytorch(addresses.get(str(index), "")):
        return f"the index {index}, which {OF_PYTORCH}"
    return f"the index {index} alone, which is left out: every index counts for every package"


def _listed(names: Mapping[str, Any]) -> str:
    return json.dumps(list(names), ensure_ascii=False)
