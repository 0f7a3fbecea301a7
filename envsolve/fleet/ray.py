"""Nodes of Ray: ``python -c 'import json, ray; ray.init("auto"); print(json.dumps(ray.nodes()))'``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envsolve.fleet.node import UNNAMED, Node, each, node
from envsolve.model.host import Gpu

_TYPE = "accelerator_type:"


def nodes_of_json(data: object) -> list[Node] | None:
    """The nodes that are alive; None if ``data`` is not a list of Ray's."""
    if not isinstance(data, list) or not all(isinstance(it, Mapping) and "NodeManagerHostname" in it for it in data):
        return None
    return list(each((it for it in data if it.get("Alive", True)), _node, "nodes"))


def _node(item: Mapping[str, Any]) -> Node:
    resources: Mapping[str, float] = item.get("Resources") or {}
    count = int(resources.get("GPU", 0))
    kind = next((it.removeprefix(_TYPE) for it in resources if it.startswith(_TYPE)), UNNAMED)
    return node(item["NodeManagerHostname"], [Gpu(kind, None, count=count)] if count else [], "ray")
