"""Nodes in the metrics of NVIDIA's dcgm-exporter: its own page, or an answer of Prometheus."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from envsolve.fleet.node import Node, each, node
from envsolve.model.host import Gpu

_SOURCE = "dcgm-exporter"
_SERIES = re.compile(r"^DCGM_\w+\{(.*)\}", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:\\.|[^"\\])*)"')


def nodes_of_text(text: str) -> list[Node] | None:
    """The nodes in the output of an exporter; None if it has no DCGM metric."""
    found = [dict(_LABEL.findall(it)) for it in _SERIES.findall(text)]
    return list(_nodes(it for it in found if "modelName" in it)) or None


def nodes_of_json(data: object) -> list[Node] | None:
    """The nodes in an answer of Prometheus to a query such as ``DCGM_FI_DEV_GPU_TEMP``; None if it is not one."""
    result = data.get("data", {}) if isinstance(data, Mapping) and data.get("status") == "success" else {}
    series = result.get("result") if isinstance(result, Mapping) else None
    if not isinstance(series, list):
        return None
    labels = each(series, lambda it: dict(it["metric"]), "data.result")
    return list(_nodes(it for it in labels if "modelName" in it))


def _nodes(series: Iterable[Mapping[str, str]]) -> Iterable[Node]:
    """The nodes; each GPU has many series, and so does each of its MIG instances."""
    drivers: dict[str, str] = {}
    gpus: dict[str, dict[str, Gpu]] = {}
    for it in series:
        name = it.get("Hostname") or it.get("instance", "")
        drivers.setdefault(name, it.get("DCGM_FI_DRIVER_VERSION", ""))
        gpu = Gpu(it["modelName"], None, mig="GPU_I_PROFILE" in it)
        gpus.setdefault(name, {})[it.get("UUID") or it.get("gpu", "")] = gpu
    for name, found in gpus.items():
        yield node(name, found.values(), _SOURCE, driver=drivers[name])
