"""Which node of Ray a name means; tests/fleet/test_ray.py runs the program on a real Ray."""

from __future__ import annotations

from typing import Any

import pytest

from envsolve.fleet.inside.on_ray import node_id


def node(number: int, *, name: str = "", host: str = "one", gpus: int = 4, alive: bool = True) -> dict[str, Any]:
    return {
        "NodeID": f"id{number}",
        "NodeName": name,
        "NodeManagerHostname": host,
        "NodeManagerAddress": f"10.0.0.{number}",
        "Resources": {"GPU": float(gpus)} if gpus else {},
        "Alive": alive,
    }


@pytest.mark.parametrize("name", ["trainer", "two", "10.0.0.2"])
def test_a_node_is_identified_by_name_host_or_address(name: str) -> None:
    assert node_id([node(1), node(2, name="trainer", host="two")], name, 4) == "id2"


def test_a_living_node_replaces_a_dead_one_of_its_name() -> None:
    assert node_id([node(1, alive=False), node(2)], "one", 4) == "id2"


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ([node(1, host="two")], "Ray has no node of this name"),
        ([node(1, alive=False)], "the node is dead"),
        ([node(1), node(2)], "Ray has 2 nodes of this name"),
        ([node(1, gpus=2)], "Ray has 2 GPUs on the node instead of 4"),
        ([node(1, gpus=0)], "Ray has 0 GPUs on the node instead of 4"),
    ],
)
def test_an_unusable_node_is_named_with_the_reason(nodes: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(LookupError, match=why):
        node_id(nodes, "one", 4)
