"""Kubernetes nodes, ``kubectl get nodes -o json``, by the labels of NVIDIA's GPU Feature Discovery.

https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from envsolve.fleet.node import UNNAMED, Node, each, node, whole_number
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu

_SOURCE = "labels of GPU Feature Discovery"
_ADDED = re.compile(r"(?P<mig>-MIG-[\w.+]+)?(?:-SHARED)?\Z")
"""The suffix of a product whose GPUs are partitioned or shared."""
_MIXED = re.compile(r"mig-[\w.+]+\.count")
"""The labels of instances of different sizes, in addition to those of whole GPUs."""
_DRIVERS = (
    ("cuda.driver-version.full",),
    ("cuda.driver-version.major", "cuda.driver-version.minor", "cuda.driver-version.revision"),
    ("cuda.driver.major", "cuda.driver.minor", "cuda.driver.rev"),
)
"""The labels with the driver's version, those of older releases last."""
_POOLS = ("cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool")


def nodes_of_json(data: object) -> list[Node] | None:
    """The nodes in a Kubernetes list, or the single node in ``data``; None if it is neither."""
    if isinstance(data, Mapping) and data.get("kind") == "Node":
        data = {"items": [data]}
    listed = data.get("items") if isinstance(data, Mapping) else None
    if not isinstance(listed, list) or not all(isinstance(it, Mapping) and it.get("kind") == "Node" for it in listed):
        return None
    return list(each(listed, _node, "items"))


def _node(item: Mapping[str, Any]) -> Node:
    metadata = item["metadata"]
    labels: Mapping[str, str] = metadata.get("labels") or {}
    nvidia = {key.removeprefix("nvidia.com/"): value for key, value in labels.items() if key.startswith("nvidia.com/")}
    return node(
        metadata["name"],
        _gpus(nvidia, item.get("status", {}).get("capacity") or {}),
        _SOURCE,
        driver=_driver(nvidia),
        processor=labels.get("kubernetes.io/arch"),
        groups=[labels[it] for it in _POOLS if it in labels],
    )


def _gpus(nvidia: Mapping[str, str], capacity: Mapping[str, str]) -> list[Gpu]:
    product = nvidia.get("gpu.product")
    if product is None:  # the device plugin alone reports only that there are some
        count = whole_number(capacity.get("nvidia.com/gpu", "0"))
        return [Gpu(UNNAMED, None, count=count)] if count else []
    count = whole_number(nvidia.get("gpu.count", "1"))
    if count < 1:  # if GPUs are partitioned in a way that the strategy does not allow
        return []
    added = _ADDED.search(product)
    assert added is not None
    major, minor = nvidia.get("gpu.compute.major"), nvidia.get("gpu.compute.minor")
    is_known = major is not None and minor is not None
    capability = ComputeCapability(whole_number(major), whole_number(minor)) if is_known else None
    is_mig = added["mig"] is not None or any(_MIXED.fullmatch(key) and it != "0" for key, it in nvidia.items())
    return [Gpu(product[: added.start()].replace("-", " "), capability, count=count, mig=is_mig)]


def _driver(nvidia: Mapping[str, str]) -> str | None:
    for labels in _DRIVERS:
        parts = [nvidia[it] for it in labels if nvidia.get(it)]
        if parts:
            return ".".join(parts)
    return None
