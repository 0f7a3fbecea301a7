"""Nodes of Ray: ``python -c 'import json, ray; ray.init("auto"); print(json.dumps(ray.nodes()))'``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from envsolve.fleet.node import UNNAMED, Node, each, node
from envsolve.model.host import Gpu

_NAMES = ("NodeManagerHostname", "NodeName", "NodeManagerAddress")
_TYPE = "accelerator_type:"


def nodes_of_json(data: object) -> list[Node] | None:
    """The nodes that are alive; None if ``data`` is not a list from Ray."""
    if not isinstance(data, list) or not all(isinstance(it, Mapping) and "NodeManagerHostname" in it for it in data):
        return None
    alive = [it for it in data if it.get("Alive", True)]
    names = [{key: it[key] for key in _NAMES if it.get(key)} for it in alive]
    counts = Counter(value for it in names for value in set(it.values()))
    named = [(it, _name(known, counts)) for it, known in zip(alive, names, strict=True)]
    return list(each(named, lambda it: _node(*it), "nodes"))


def _name(known: Mapping[str, str], counts: Mapping[str, int]) -> str:
    """The first name that no other node has: several nodes on one machine share its host name."""
    return next((it for it in known.values() if counts[it] == 1), known[_NAMES[0]])


def _node(item: Mapping[str, Any], name: str) -> Node:
    resources: Mapping[str, float] = item.get("Resources") or {}
    count = int(resources.get("GPU", 0))
    kind = next((it.removeprefix(_TYPE) for it in resources if it.startswith(_TYPE)), UNNAMED)
    return node(name, [Gpu(kind, None, count=count)] if count else [], "ray")
